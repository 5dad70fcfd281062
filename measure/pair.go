package measure

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/tandemrun/tandem/engine"
	"github.com/tandemrun/tandem/model"
	"github.com/tandemrun/tandem/plan"
	"github.com/tandemrun/tandem/probe"
)

// pair measures two units together, with the model in three chunks, of which the
// middle one is on b and the others on a.
func (c Config) pair(ctx context.Context, a, b string, out *plan.Costs) error {
	all := Ranges(c.Model)
	n := min(len(all), 3)
	if n < 2 {
		return nil // what cannot be cut is on one unit
	}
	balanced, err := c.Model.Balanced(n)
	if err != nil {
		return err
	}
	// The pieces that are nearest to that.
	ranges := []model.Range{{First: 0}}
	var cuts []int
	for i, r := range balanced[1:] {
		at := slices.IndexFunc(all, func(x model.Range) bool { return x.First >= r.First })
		if at < 0 {
			at = len(all)
		}
		at = min(at, len(all)-(n-1-i)) // every later chunk has a piece
		cuts = append(cuts, at)
		ranges[i].Last = all[at].First
		ranges = append(ranges, model.Range{First: all[at].First})
	}
	ranges[n-1].Last = len(c.Model.Layers)
	units := []string{a, b, a}[:n]
	c.say("%s beside %s", a, b)
	return c.open(ctx, ranges, units, 2, func(e *engine.Engine) error {
		p := &pairing{bench: bench{Config: c, e: e, chunks: n}, cuts: cuts}
		return p.all(ctx, a, b, out)
	})
}

type pairing struct {
	bench
	cuts    []int // first piece of each later chunk
	streams [2]*engine.Stream
}

func (p *pairing) all(ctx context.Context, a, b string, out *plan.Costs) error {
	for i := range p.streams {
		s, err := p.e.Stream(ctx)
		if err != nil {
			return err
		}
		defer s.Close()
		p.streams[i] = s
		if err := p.reach(ctx, s, min(shallow, p.Depth)); err != nil {
			return err
		}
		if _, err := p.forward(ctx, s, 1, engine.Last); err != nil {
			return err
		}
	}
	few, wakes, err := p.single(ctx, out)
	if err != nil {
		return err
	}
	x, y := plan.Contention{Unit: a, With: b, Prefill: 1}, plan.Contention{Unit: b, With: a, Prefill: 1}
	if x.Decode, y.Decode, err = p.contention(ctx, groupSteps); err != nil {
		return err
	}
	beside, err := p.together(ctx)
	if err != nil {
		return err
	}
	out.Late = max(out.Late, beside.late-out.Host)
	many, err := p.several(ctx, p.rows(out, a, b), out)
	if err != nil {
		return err
	}
	if len(many) > 0 {
		if x.Prefill, y.Prefill, err = p.contention(ctx, fewest-1); err != nil {
			return err
		}
	}
	out.Contention = append(out.Contention, x, y)
	for _, z := range [][2]string{{a, b}, {b, a}} {
		h := plan.Handoff{From: z[0], To: z[1]}
		h.Call, h.PerByte = fit(middle(few, h.To), middle(many, h.To))
		out.Handoffs = append(out.Handoffs, h)
		i := slices.IndexFunc(out.Units, func(u plan.Unit) bool { return u.Name == h.To })
		out.Units[i].Wake = max(out.Units[i].Wake, median(wakes[h.To]))
		out.Units[i].Next = max(out.Units[i].Next, beside.next[h.To])
	}
	return nil
}

// contention is how many times as long the first chunk takes while the second
// one is at work, and the second one beside the first. The blocks are the last
// ones of the streams. Alone and beside take turns.
func (p *pairing) contention(ctx context.Context, trials int) (first, second float64, err error) {
	a, b := engine.Rerun{Stream: p.streams[0], Chunk: 0}, engine.Rerun{Stream: p.streams[1], Chunk: 1}
	var times [4][]turn
	for range fewest {
		for i, x := range []struct {
			who    engine.Rerun
			beside *engine.Rerun
		}{{a, nil}, {a, &b}, {b, nil}, {b, &a}} {
			more, err := p.repeat(ctx, trials, x.who, x.beside)
			if err != nil {
				return 1, 1, err
			}
			times[i] = append(times[i], more...)
		}
	}
	ratio := func(beside, alone []turn) float64 {
		x, y := typical(beside).total.Seconds(), typical(alone).total.Seconds()
		if y <= 0 {
			return 1
		}
		return max(x/y, 1)
	}
	return ratio(times[1], times[0]), ratio(times[3], times[2]), nil
}

// repeat runs a chunk so many times at most, while another one is at work beside it if
// there is one.
func (p *pairing) repeat(ctx context.Context, trials int, who engine.Rerun, beside *engine.Rerun) ([]turn, error) {
	var wg sync.WaitGroup
	var failed error
	stop := make(chan struct{})
	if beside != nil {
		begun := make(chan struct{})
		wg.Go(func() {
			first := sync.OnceFunc(func() { close(begun) })
			defer first()
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, failed = p.e.Again(ctx, *beside); failed != nil {
					return
				}
				first()
			}
		})
		<-begun
	}
	var group []turn
	waited := p.watch()
	var err error
	for begin := p.e.Now(); len(group) < trials && !p.enough(len(group), begin); {
		var r []engine.Record
		if r, err = p.e.Again(ctx, who); err != nil {
			break
		}
		group = append(group, turn{total: r[0].End.Sub(r[0].Start)})
	}
	share := waited()
	close(stop)
	wg.Wait()
	for i := range group {
		group[i].waited = share
	}
	if err == nil {
		err = failed
	}
	return group, err
}

// single takes decode steps of one stream: what handing over one row takes, and
// how long a unit that had nothing to do takes to begin.
func (p *pairing) single(ctx context.Context, out *plan.Costs) ([]map[string]seen, map[string][]time.Duration, error) {
	whole, err := out.Join(p.cuts)
	if err != nil {
		return nil, nil, err
	}
	var few []map[string]seen
	var shares []float64
	s := p.streams[0]
	var waits []map[string][]time.Duration // by step
	for begin := p.e.Now(); len(s.Tokens()) < p.Context && !p.enough(len(few), begin); {
		waited := p.watch()
		from := len(few)
		for len(s.Tokens()) < p.Context && len(few)-from < groupSteps && !p.enough(len(few), begin) {
			if _, err := p.forward(ctx, s, 1, engine.Last); err != nil {
				return nil, nil, err
			}
			few = append(few, p.taken(s, whole, 1))
			wait := map[string][]time.Duration{}
			for _, r := range s.Records()[1:] {
				name := p.e.Units()[r.Unit]
				wait[name] = append(wait[name], r.Start.Sub(r.Parts[0].Ready))
			}
			waits = append(waits, wait)
		}
		shares = append(shares, slices.Repeat([]float64{waited()}, len(few)-from)...)
	}
	kept, _ := probe.Keep(shares, fewest)
	var quiet []map[string]seen
	wakes := map[string][]time.Duration{}
	for _, i := range kept {
		quiet = append(quiet, few[i])
		for name, x := range waits[i] {
			wakes[name] = append(wakes[name], x...)
		}
	}
	return quiet, wakes, nil
}

// rows are how many a block has that is measured beside another: fewer on units
// that are so slow that it would take longer than the pair's time. A block is
// evaluated 3 times, and a third of it in 4 x fewest x (fewest-1) trials.
func (p *pairing) rows(out *plan.Costs, units ...string) int {
	const blocks = 3 + 4*fewest*(fewest-1)/3
	var slowest float64 // seconds a row
	for _, name := range units {
		var row float64
		for _, x := range out.Chunks {
			samples := x.On[name].Rows
			last := samples[len(samples)-1]
			row += last.Time.Seconds() / float64(last.N)
		}
		slowest = max(slowest, row)
	}
	rows := beside
	for rows > 2 && float64(rows*blocks)*slowest > 4*p.limits.block.Seconds() {
		rows /= 2
	}
	return rows
}

// several lets both streams evaluate blocks of a prompt and sees what handing
// over takes then.
func (p *pairing) several(ctx context.Context, most int, out *plan.Costs) ([]map[string]seen, error) {
	whole, err := out.Join(p.cuts)
	if err != nil {
		return nil, err
	}
	var many []map[string]seen
	for i, s := range []*engine.Stream{p.streams[0], p.streams[0], p.streams[1]} {
		rows := min(most, p.Block, p.Context-len(s.Tokens()))
		if rows < 2 {
			return nil, nil // there is no room
		}
		if _, err := p.forward(ctx, s, rows, engine.Last); err != nil {
			return nil, err
		}
		if i > 0 { // the first one warms up
			many = append(many, p.taken(s, whole, rows))
		}
	}
	return many, nil
}

// seen is what handing over to a unit took in one step.
type seen struct {
	calls int
	bytes int64
	time  time.Duration
}

// taken adds up the handoffs of a stream's last step, by the unit they went to.
func (p *pairing) taken(s *engine.Stream, c *plan.Costs, rows int) map[string]seen {
	out := map[string]seen{}
	names := p.e.Units()
	for _, r := range s.Records() {
		to := names[r.Unit]
		x := out[to]
		x.time += r.CopyTime - r.CopyOutTime
		n := rows
		if c.Chunks[r.Chunk].WantedOnly {
			n = 1
		}
		for _, src := range c.Chunks[r.Chunk].Takes {
			if p.unitOf(src.From) != to {
				x.calls++
				x.bytes += src.Bytes * int64(n)
			}
		}
		for _, src := range c.Chunks[r.Chunk].Reads {
			if p.unitOf(src.From) != to {
				x.calls++
				x.bytes += src.Bytes * int64(rows)
			}
		}
		out[to] = x
		// Copies out of this unit's caches are for the other one.
		for _, other := range names {
			if other != to {
				y := out[other]
				y.time += r.CopyOutTime
				out[other] = y
			}
		}
	}
	return out
}

func (p *pairing) unitOf(chunk int) string { return p.e.Chunks()[chunk].Unit }

// middle is the step with the median time.
func middle(all []map[string]seen, to string) seen {
	var x []seen
	for _, m := range all {
		x = append(x, m[to])
	}
	if len(x) == 0 {
		return seen{}
	}
	slices.SortFunc(x, func(a, b seen) int { return int(a.time - b.time) })
	return x[len(x)/2]
}

// fit finds what a call and a byte take from two measurements.
func fit(few, many seen) (call time.Duration, perByte float64) {
	if few.calls == 0 {
		return 0, 0
	}
	if more := many.bytes - few.bytes; more > 0 && many.time > few.time {
		perByte = float64(many.time-few.time) / float64(more)
	}
	call = (few.time - time.Duration(perByte*float64(few.bytes))) / time.Duration(few.calls)
	return max(call, 0), perByte
}
