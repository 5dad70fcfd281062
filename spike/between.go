package spike

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tandemrun/tandem/engine"
	"github.com/tandemrun/tandem/plan"
)

// A Contention is how units slow each other because they share the memory.
type Contention struct {
	Unit   string  `json:"unit"`
	With   string  `json:"with"`
	Rows   int     `json:"rows"`   // of the tasks: 1 is decode steps, more are blocks of a prompt
	Factor float64 `json:"factor"` // how many times as long its tasks take while the other is at work
	Trials int     `json:"trials"`
	Kept   int     `json:"kept"`
}

// How contention is measured: in turns in which each unit works alone and then
// both together, for a short while, until some were undisturbed.
const (
	contentionTime  = 25 * time.Millisecond
	contentionLaps  = 50 // at most
	contentionLeast = 6  // turns
	contentionTurns = 16
	contentionMost  = 4 * time.Second
)

// between measures what is between the units of the moved placement: waking,
// handoffs, and how they slow each other.
func (s *session) between(ctx context.Context) error {
	if s.known {
		s.r.Prefill.Tokens, s.r.Prefill.Block = shortestPrompt, shortestPrompt/blocksOfPrompt
		return nil
	}
	x, err := s.rigs.get(ctx, s.o.Moved, longestPrompt)
	if err != nil {
		return err
	}
	s.stage("handoffs of %s", Placement(s.o.Moved))
	c, later, err := s.handovers(ctx, x)
	if err != nil {
		return err
	}
	s.wake(c)
	s.handoffs(c, later, x.place)
	units := x.units
	for i, a := range units {
		for _, b := range units[i+1:] {
			s.stage("how %s and %s slow each other", a, b)
			if err := s.contention(ctx, x, a, b, 1); err != nil {
				return fmt.Errorf("contention of %s and %s: %w", a, b, err)
			}
		}
	}
	return nil
}

// handovers measures steps of one stream on the moved placement, in turn with
// steps on each of its units alone. Later is, by chunk, for how much longer its
// task took than on its unit alone, copies aside: what a chunk on another unit
// gives is in that one's caches.
func (s *session) handovers(ctx context.Context, x *rig) (c chain, later []float64, err error) {
	p, err := s.paceOf(ctx, x)
	if err != nil {
		return c, nil, err
	}
	all := newChains(len(x.place))
	differences := make([][]float64, len(x.place))
	begin := x.e.Now()
	for round := 0; round < windows && (round < p.least || p.least == windowLeast && x.e.Now().Sub(begin) < stepsTime); round++ {
		by, calm := map[string]float64{}, true
		for _, name := range x.units {
			var quiet bool
			if by[name], quiet, err = s.drift(ctx, name); err != nil {
				return c, nil, fmt.Errorf("steps on %s: %w", name, err)
			}
			calm = calm && quiet
		}
		one := newChains(len(x.place))
		quiet, err := s.window(ctx, x, p, round, &one)
		if err != nil {
			return c, nil, err
		}
		all.all.join(one.all)
		if !quiet {
			continue
		}
		all.quiet.join(one.quiet)
		if !calm {
			continue
		}
		for i, unit := range x.place {
			took := one.all.median(i) - median(one.all.in[i]) - median(one.all.out[i])
			differences[i] = append(differences[i], took-by[unit]*s.paces[unit].took[i])
		}
	}
	later = make([]float64, len(x.place))
	for i, d := range differences {
		if len(d) > 0 { // else all rounds were disturbed, and it is not told from noise
			later[i] = max(median(d), 0)
		}
	}
	return all.result(), later, nil
}

// handoffs takes from the steps of one stream what one handoff costs, by
// direction: what the taker spent on its begin and the giver at its end, and for
// how much longer the taker's task took.
func (s *session) handoffs(c chain, later []float64, place []string) {
	type way struct{ from, to string }
	calls, took, slower := map[way]int{}, map[way]float64{}, map[way]float64{}
	var ways []way
	for i, x := range s.costs.Chunks {
		var away []way
		for _, src := range slices.Concat(x.Takes, x.Reads) {
			if place[src.From] != place[i] {
				w := way{place[src.From], place[i]}
				away = append(away, w)
				if calls[w] == 0 {
					ways = append(ways, w)
				}
				calls[w]++
			}
		}
		for _, w := range away {
			took[w] += median(c.in[i]) / float64(len(away))
			slower[w] += later[i] / float64(len(away))
		}
		var readers []way
		for j := i + 1; j < len(place); j++ {
			for _, src := range slices.Concat(s.costs.Chunks[j].Takes, s.costs.Chunks[j].Reads) {
				if w := (way{place[i], place[j]}); src.From == i && place[j] != place[i] && !slices.Contains(readers, w) {
					readers = append(readers, w)
				}
			}
		}
		for _, w := range readers {
			took[w] += median(c.out[i]) / float64(len(readers))
		}
	}
	for _, w := range ways {
		h := plan.Handoff{From: w.from, To: w.to, Call: milliseconds((took[w] + slower[w]) / float64(calls[w]))}
		s.costs.Handoffs = append(s.costs.Handoffs, h)
		s.r.Handoffs = append(s.r.Handoffs, Handoff{w.from, w.to, calls[w], took[w], slower[w]})
	}
}

// A Handoff is what went from one unit to another in a decode step of one stream.
type Handoff struct {
	From  string  `json:"from"`
	To    string  `json:"to"`
	Calls int     `json:"calls"` // inputs and layers of cache rows
	MS    float64 `json:"ms"`    // that copying took; 0 where rows are read where they are
	// Slower is for how much longer the tasks took that took the rows, beside
	// copying, than with everything on their unit.
	Slower float64 `json:"slower_ms"`
}

// A couple is two units and their tasks, of decode steps with one row, of blocks
// of a prompt with more.
type couple struct {
	rig  *rig
	rows int
	laps [2]*lap
}

// contention runs the tasks of two units over and over, each alone and both
// together.
func (s *session) contention(ctx context.Context, x *rig, a, b string, rows int) error {
	place := x.place
	if rows > 1 {
		place = x.prompt
	}
	c := &couple{x, rows, [2]*lap{
		s.lap(x, place, a, rows), s.lap(x, place, b, rows),
	}}
	if len(c.laps[0].chunks) == 0 || len(c.laps[1].chunks) == 0 {
		return nil
	}
	if err := s.race(ctx, c, contentionLeast, contentionTurns); err != nil {
		return err
	}
	if rows == 1 && len(x.units) == 2 {
		s.pairs[Placement(x.place)] = c
	}
	for i, l := range c.laps {
		out := Contention{Unit: l.unit, With: c.laps[1-i].unit, Rows: rows, Factor: l.factor(contentionTurns), Trials: len(l.beside)}
		for _, t := range l.beside {
			if t.quiet {
				out.Kept++
			}
		}
		s.r.Contention = append(s.r.Contention, out)
		s.slow(out)
		s.raw.add(Line{Kind: "contention", Rows: rows, Unit: out.Unit, With: out.With, Factor: &out.Factor})
	}
	return nil
}

// race adds turns to a couple until so many were undisturbed: at least as many,
// most at most.
func (s *session) race(ctx context.Context, c *couple, least, most int) error {
	x, p := c.rig, s.promptOf(c.rows+1)
	streams, err := x.prepare(ctx, []Prompt{{Tokens: p[:1]}, {Tokens: p[:1]}})
	defer closeStreams(streams)
	if err != nil {
		return err
	}
	for i, st := range streams {
		if err := st.Forward(ctx, p[1:], engine.Last, func(int, []float32) error { return nil }); err != nil {
			return err
		}
		c.laps[i].s = st
	}
	begin, kept := x.e.Now(), 0
	for turn := range most {
		if turn >= least && (x.e.Now().Sub(begin) > contentionMost || kept >= least) {
			break
		}
		quiet := true
		for _, laps := range [][]*lap{c.laps[:1], c.laps[1:], c.laps[:]} {
			q, err := s.phase(ctx, x, turn, c.rows, laps...)
			if err != nil {
				return err
			}
			quiet = quiet && q
		}
		if quiet {
			kept++
		}
	}
	return nil
}

// phase lets units do laps, all at once, and tells whether nothing disturbed them.
func (s *session) phase(ctx context.Context, x *rig, turn, rows int, laps ...*lap) (quiet bool, err error) {
	done, begin := s.watch(), x.e.Now()
	var working atomic.Int64
	working.Store(int64(len(laps)))
	errs, took := make([]error, len(laps)), make([][][]float64, len(laps))
	var fs []func()
	for i, l := range laps {
		fs = append(fs, func() { took[i], errs[i] = l.run(ctx, &working, len(laps) > 1) })
	}
	s.lab.All(fs...)
	if err := errors.Join(errs...); err != nil {
		return false, err
	}
	delay, quiet := done(x.e.Now().Sub(begin))
	for i, l := range laps {
		t, what := &l.alone, "alone"
		if len(laps) > 1 {
			t, what = &l.beside, "beside"
		}
		*t = append(*t, lapTurn{took[i], quiet})
		all := 0.0
		for _, chunk := range took[i] {
			all += median(chunk)
		}
		s.raw.add(Line{Kind: "lap", What: what, Unit: l.unit, Rows: rows, Trial: number(turn), MS: &all, DelayMS: number(ms(delay)), Kept: &quiet})
	}
	return quiet, nil
}

// slow puts a contention into the costs. What was not measured of blocks is
// taken to be as in decode steps.
func (s *session) slow(c Contention) {
	i := slices.IndexFunc(s.costs.Contention, func(x plan.Contention) bool { return x.Unit == c.Unit && x.With == c.With })
	if i < 0 {
		s.costs.Contention = append(s.costs.Contention, plan.Contention{Unit: c.Unit, With: c.With, Decode: c.Factor, Prefill: c.Factor})
		return
	}
	if c.Rows == 1 {
		s.costs.Contention[i].Decode = c.Factor
	} else {
		s.costs.Contention[i].Prefill = c.Factor
	}
}

// lap is the tasks of a unit for contentionTime, or contentionLaps of short ones.
func (s *session) lap(x *rig, place []string, unit string, rows int) *lap {
	l := &lap{e: x.e, unit: unit, chunks: s.on(place, unit, rows)}
	var once time.Duration
	for _, i := range l.chunks {
		once += time.Duration(rows) * s.costs.Chunks[i].On[unit].Rows[0].Time
	}
	l.time = min(contentionTime, contentionLaps*once)
	return l
}

// on lists the chunks of a unit that have something to do in a block of rows.
func (s *session) on(place []string, unit string, rows int) []int {
	var out []int
	for i, u := range place {
		if u == unit && (rows == 1 || !s.costs.Chunks[i].WantedOnly) {
			out = append(out, i)
		}
	}
	return out
}

// lap is the tasks of one unit in turn, again and again.
type lap struct {
	e      *engine.Engine
	s      *engine.Stream
	unit   string
	chunks []int
	time   time.Duration // at least

	alone, beside []lapTurn
}

// A lapTurn is what tasks took in one turn, in milliseconds, by chunk.
type lapTurn struct {
	took  [][]float64
	quiet bool
}

// factor is how many times as long tasks take beside the other unit's, by the
// newest undisturbed turns, so many at most.
func (l *lap) factor(newest int) float64 {
	return max(lapTime(l.beside, newest)/lapTime(l.alone, newest), 1)
}

// lapTime is what a lap takes: the sum of the chunks' medians, over the newest
// turns that were undisturbed. If none was, it is the sum of the first quartiles of
// all: other processes take the CPUs from both units at work sooner than from one,
// which is no contention of the units, and spare some tasks.
func lapTime(turns []lapTurn, newest int) float64 {
	middle := median
	kept := slices.DeleteFunc(slices.Clone(turns), func(t lapTurn) bool { return !t.quiet })
	if len(kept) == 0 {
		kept, middle = turns, quartile
	}
	kept = kept[max(0, len(kept)-newest):]
	var out float64
	for chunk := range kept[0].took {
		var all []float64
		for _, t := range kept {
			all = append(all, t.took[chunk]...)
		}
		out += middle(all)
	}
	return out
}

// quartile is the first one.
func quartile(x []float64) float64 {
	if len(x) == 0 {
		return math.NaN()
	}
	return slices.Sorted(slices.Values(x))[(len(x)-1)/4]
}

// run does laps for a while and returns what their tasks took. Beside others the
// first lap is not counted, since they may not have begun; and when it has
// enough it goes on, uncounted, until all have.
func (l *lap) run(ctx context.Context, working *atomic.Int64, beside bool) ([][]float64, error) {
	took := make([][]float64, len(l.chunks))
	begin, counting := l.e.Now(), true
	finish := func() {
		if counting {
			working.Add(-1)
		}
		counting = false
	}
	defer finish()
	first := 0
	if beside {
		first = 1
	}
	for n := 0; ; n++ {
		if n > first && l.e.Now().Sub(begin) >= l.time {
			finish()
			if working.Load() <= 0 {
				return took, nil
			}
		}
		for i, chunk := range l.chunks {
			r, err := l.e.Again(ctx, engine.Rerun{Stream: l.s, Chunk: chunk})
			if err != nil {
				return nil, err
			}
			if counting && n >= first {
				took[i] = append(took[i], ms(r[0].End.Sub(r[0].Start)-r[0].CopyTime)) // handoffs are counted apart
			}
		}
	}
}
