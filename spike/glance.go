package spike

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/tandemrun/tandem/engine"
	"github.com/tandemrun/tandem/plan"
)

// A glance is what the tasks of a schedule take, and what lies between them, in
// some steps of it right before it is measured. A task of microseconds takes half
// as long again where its unit has slept, or done something else, as where it has
// just done the same for another stream; so times are told apart by that. Handing
// over is in them. Times are in milliseconds.
type glance struct {
	other, same, merged [][]float64         // by chunk: of one row behind another chunk, behind the same one, and of all streams at once
	blocks              []map[int][]float64 // by chunk and rows: of a block of a prompt
	// By unit: from when a task could start until it did where the unit slept; and
	// that where who woke it went on with other work, see plan.Costs.Late.
	wake, late     map[string][]float64
	between        map[string][]float64 // by unit: from a task's end to the next one's start, which waited
	host, hostLate []float64            // from a stream's token to when it asked for the next
	quiet          bool
}

// How long a glance is: so many steps, or as many as take so long, and so many at
// least.
const (
	glanceSteps = 48
	glanceTime  = 50 * time.Millisecond
	glanceLeast = 3
)

// seldom is what is not enough to tell something from.
const seldom = 3

// glance runs some steps of a schedule, until they were undisturbed. So many steps
// lead to them that do not count.
func (s *session) glance(ctx context.Context, x *rig, streams []*engine.Stream, prompts []Prompt, k several, lead int) (*glance, error) {
	p := s.paces[x.place[0]]
	steps, room := max(min(glanceSteps, int(glanceTime/s.stepOf(x, k))), glanceLeast), x.e.Context()
	for _, x := range prompts { // there is room for two steps at least
		steps = min(steps, room-len(x.Tokens)-1)
		lead = min(lead, room-len(x.Tokens)-steps)
	}
	var g *glance
	for try := 0; try < driftTries && (g == nil || !g.quiet); try++ {
		if err := x.back(ctx, streams, prompts); err != nil {
			return nil, err
		}
		r, err := s.generate(ctx, x, streams, prompts, lead+steps, k.merge, 0)
		if err != nil {
			return nil, err
		}
		g = newGlance(len(x.place))
		g.quiet = r.quiet
		records := x.record.Records()
		g.add(s.costs, x.place, records, len(records)*lead/(lead+steps), k.streams)
		if p.least < windowLeast {
			break
		}
		lead = 1
	}
	return g, x.back(ctx, streams, prompts)
}

// stepOf is about what a step of a schedule takes.
func (s *session) stepOf(x *rig, k several) time.Duration {
	sum := time.Microsecond
	for _, t := range s.paces[x.place[0]].took {
		sum += milliseconds(t)
	}
	if k.merge == 1 {
		sum *= time.Duration(k.streams)
	}
	return sum
}

func newGlance(chunks int) *glance {
	g := &glance{wake: map[string][]float64{}, late: map[string][]float64{}, between: map[string][]float64{}}
	for _, list := range []*[][]float64{&g.other, &g.same, &g.merged} {
		*list = make([][]float64, chunks)
	}
	for range chunks {
		g.blocks = append(g.blocks, map[int][]float64{})
	}
	return g
}

// add takes the tasks of records from one on, and what lies before each. Tasks are
// told as they would be without the other unit at work, by the contention in the
// costs.
func (g *glance) add(c *plan.Costs, place []string, records []engine.Record, from, streams int) {
	type before struct {
		r     engine.Record
		known bool
	}
	units, ended := map[int]before{}, map[int]engine.Record{} // by unit, and by stream: the newest one
	givers := map[int]engine.Record{}                         // by task
	for i, r := range records {
		p, unit, last := r.Parts[0], place[r.Chunk], units[r.Unit]
		if last.known && i >= from {
			switch giver, ok := givers[p.After]; {
			case !p.Ready.After(last.r.End), ok && giver.Unit == r.Unit: // no sleep
				g.between[unit] = append(g.between[unit], ms(r.Start.Sub(last.r.End)))
			case ok && goesOn(records, giver):
				g.late[unit] = append(g.late[unit], ms(r.Start.Sub(p.Ready)))
			default:
				g.wake[unit] = append(g.wake[unit], ms(r.Start.Sub(p.Ready)))
			}
		}
		if i >= from && r.Rows > 0 { // else cache rows were brought, and nothing computed
			prefill := r.Rows > len(r.Parts)
			took := ms(r.End.Sub(r.Start))
			for _, beside := range records[max(0, i-len(place)):min(i+len(place), len(records))] {
				if beside.Unit != r.Unit {
					took -= ms(common(r, beside)) * (1 - 1/slowed(c, unit, place[beside.Chunk], prefill))
				}
			}
			switch {
			case prefill && !c.Chunks[r.Chunk].WantedOnly:
				g.blocks[r.Chunk][r.Rows] = append(g.blocks[r.Chunk][r.Rows], took)
			case streams > 1 && len(r.Parts) == streams:
				g.merged[r.Chunk] = append(g.merged[r.Chunk], took)
			case len(r.Parts) > 1: // some have parted
			case last.known && last.r.Chunk == r.Chunk:
				g.same[r.Chunk] = append(g.same[r.Chunk], took)
			default:
				g.other[r.Chunk] = append(g.other[r.Chunk], took)
			}
		}
		for n, p := range r.Parts {
			if end, ok := ended[p.Stream]; ok && r.Chunk == 0 && i >= from {
				to := &g.host
				if goesOn(records, end) || n > 0 {
					to = &g.hostLate
				}
				*to = append(*to, ms(p.Submitted.Sub(end.End)))
			}
			ended[p.Stream], givers[p.Task] = r, r
		}
		units[r.Unit] = before{r, true}
	}
}

// goesOn reports whether the unit of a task had another one waiting when it ended.
func goesOn(records []engine.Record, r engine.Record) bool {
	return slices.ContainsFunc(records, func(next engine.Record) bool {
		return next.Unit == r.Unit && next.Start.After(r.Start) && !next.Parts[0].Ready.After(r.End)
	})
}

// common is for how long two tasks ran at once.
func common(a, b engine.Record) time.Duration {
	start, end := a.Start, a.End
	if b.Start.After(start) {
		start = b.Start
	}
	if b.End.Before(end) {
		end = b.End
	}
	return max(end.Sub(start), 0)
}

// typical is the mean without what is more than three times as long as the median,
// as where something else had the CPU: what follows waits for the long ones too.
func typical(x []float64) float64 {
	limit := 3 * median(x)
	var sum float64
	n := 0
	for _, v := range x {
		if v <= limit {
			sum, n = sum+v, n+1
		}
	}
	return sum / float64(max(n, 1))
}

// put returns costs as a glance at a schedule found them, and how many times as
// long the tasks of each unit take as in the costs.
func (g *glance) put(c *plan.Costs, place []string, k several) (*plan.Costs, speeds) {
	out := *c
	out.Handoffs = nil // they are in the tasks' times
	by := speeds{}
	for _, unit := range distinct(place) {
		by[unit] = g.speed(c, place, unit, k)
	}
	out.Chunks = slices.Clone(c.Chunks)
	for i, unit := range place {
		on := maps.Clone(c.Chunks[i].On)
		on[unit] = g.cost(i, scaledCost(on[unit], by[unit]), k)
		out.Chunks[i].On = on
	}
	g.gaps(&out)
	return &out, by
}

// speed is how many times as long a unit's own tasks take as in the costs.
func (g *glance) speed(c *plan.Costs, place []string, unit string, k several) float64 {
	var now, before float64
	add := func(seen []float64, was time.Duration) {
		if len(seen) > 0 && was > 0 {
			now, before = now+typical(seen), before+ms(was)
		}
	}
	for i, x := range c.Chunks {
		if place[i] != unit {
			continue
		}
		cost := x.On[unit]
		add(g.merged[i], together(cost, k.streams))
		add(g.other[i], cost.Rows[0].Time)
		add(g.same[i], cost.Next)
		for rows, seen := range g.blocks[i] {
			if at, ok := sample(cost.Rows, rows); ok {
				add(seen, cost.Rows[at].Time)
			}
		}
	}
	if before == 0 {
		return 1
	}
	return now / before
}

// cost is a chunk's with what was seen in the place of what was measured.
func (g *glance) cost(chunk int, c plan.Cost, k several) plan.Cost {
	other, same, merged := g.other[chunk], g.same[chunk], g.merged[chunk]
	if len(other) >= seldom || len(other) > 0 && len(same) == 0 {
		c.Rows[0].Time = milliseconds(typical(other))
	}
	if len(same) >= seldom {
		c.Next = milliseconds(typical(same))
	}
	if at, ok := sample(c.Streams, k.streams); ok && len(merged) > 0 {
		c.Streams[at].Time = milliseconds(typical(merged))
	}
	for rows, seen := range g.blocks[chunk] {
		at, ok := sample(c.Rows, rows)
		if !ok {
			c.Rows = slices.Insert(c.Rows, at, plan.Sample{N: rows})
		}
		c.Rows[at].Time = milliseconds(typical(seen))
	}
	return c
}

// gaps puts into costs what lies between tasks. What comes late does so by as much
// on average, streams and units together.
func (g *glance) gaps(c *plan.Costs) {
	var late float64
	n := 0
	add := func(tardy, prompt []float64) {
		if len(tardy) >= seldom && len(prompt) >= seldom {
			late, n = late+float64(len(tardy))*(typical(tardy)-typical(prompt)), n+len(tardy)
		}
	}
	if host := slices.Concat(g.host, g.hostLate); len(host) > 0 {
		c.Host = milliseconds(typical(host))
	}
	if add(g.hostLate, g.host); n > 0 {
		c.Host = milliseconds(typical(g.host))
	}
	for _, u := range c.Units {
		add(g.late[u.Name], g.wake[u.Name])
	}
	if c.Late = 0; n > 0 {
		c.Late = max(milliseconds(late/float64(n)), 0)
	}
	c.Units = slices.Clone(c.Units)
	for i := range c.Units {
		u := &c.Units[i]
		prompt, tardy := g.wake[u.Name], g.late[u.Name]
		switch {
		case len(prompt) >= seldom || len(prompt) > 0 && len(tardy) == 0:
			u.Wake = milliseconds(typical(prompt))
		case len(tardy) > 0:
			u.Wake = max(milliseconds(typical(tardy))-c.Late, 0)
		}
		if t := g.between[u.Name]; len(t) > 0 {
			u.Between = milliseconds(typical(t))
		}
	}
}

// sample is the index of the sample of n rows or streams, or where it would be.
func sample(x []plan.Sample, n int) (at int, ok bool) {
	return slices.BinarySearchFunc(x, n, func(s plan.Sample, n int) int { return s.N - n })
}

// together is what a task of one row of each of some streams takes.
func together(c plan.Cost, streams int) time.Duration {
	if at, ok := sample(c.Streams, streams); ok {
		return c.Streams[at].Time
	}
	return c.Rows[0].Time
}

// glanced puts a glance into the raw record.
func (s *session) glanced(g *glance, place []string, k several, by speeds) {
	line := func(l Line, what string, seen []float64) {
		if len(seen) == 0 {
			return
		}
		l.Placement, l.Streams, l.Merge, l.Kept = Placement(place), k.streams, &k.merge, &g.quiet
		l.What, l.MS = what, number(typical(seen))
		s.raw.add(l)
	}
	for _, unit := range distinct(place) {
		s.raw.add(Line{Kind: "drift", Unit: unit, Placement: Placement(place), Streams: k.streams, Merge: &k.merge, Factor: number(by[unit]), Kept: &g.quiet})
		gap := Line{Kind: "gap", Unit: unit}
		line(gap, "wake", g.wake[unit])
		line(gap, "late", g.late[unit])
		line(gap, "between", g.between[unit])
	}
	for i, unit := range place {
		task := Line{Kind: "task", Chunk: s.chunk(i), Unit: unit}
		line(task, "other", g.other[i])
		line(task, "same", g.same[i])
		line(task, "merged", g.merged[i])
		for _, rows := range slices.Sorted(maps.Keys(g.blocks[i])) {
			task.Rows = rows
			line(task, "block", g.blocks[i][rows])
		}
	}
}
