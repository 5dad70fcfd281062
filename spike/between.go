package spike

import (
	"context"
	"errors"
	"fmt"
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
	contentionLeast = 6 // turns
	contentionTurns = 40
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
	c, err := s.steps(ctx, x)
	if err != nil {
		return err
	}
	s.wake(c)
	s.handoffs(c, x.place)
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

// handoffs takes from the steps of one stream what one handoff costs, by
// direction: what the taker spent on its begin and the giver at its end.
func (s *session) handoffs(c chain, place []string) {
	type way struct{ from, to string }
	calls, took := map[way]int{}, map[way]float64{}
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
		h := plan.Handoff{From: w.from, To: w.to, Call: milliseconds(took[w] / float64(calls[w]))}
		s.costs.Handoffs = append(s.costs.Handoffs, h)
		s.r.Handoffs = append(s.r.Handoffs, Handoff{w.from, w.to, calls[w], took[w]})
	}
}

// A Handoff is what went from one unit to another in a decode step of one stream.
type Handoff struct {
	From  string  `json:"from"`
	To    string  `json:"to"`
	Calls int     `json:"calls"` // inputs and layers of cache rows
	MS    float64 `json:"ms"`    // that copying took; 0 where rows are read where they are
}

// contention runs the tasks of two units over and over, each alone and both
// together: of decode steps with one row, of blocks of a prompt with more.
func (s *session) contention(ctx context.Context, x *rig, a, b string, rows int) error {
	p := Prompt{Tokens: s.promptOf(rows + 1)}
	streams, err := x.prepare(ctx, []Prompt{{Tokens: p.Tokens[:1]}, {Tokens: p.Tokens[:1]}})
	defer closeStreams(streams)
	if err != nil {
		return err
	}
	for _, st := range streams {
		if err := st.Forward(ctx, p.Tokens[1:], engine.Last, func(int, []float32) error { return nil }); err != nil {
			return err
		}
	}
	laps := [2]*lap{{e: x.e, s: streams[0], unit: a, chunks: s.on(x.place, a, rows)}, {e: x.e, s: streams[1], unit: b, chunks: s.on(x.place, b, rows)}}
	if len(laps[0].chunks) == 0 || len(laps[1].chunks) == 0 {
		return nil
	}
	out := [2]Contention{{Unit: a, With: b, Rows: rows}, {Unit: b, With: a, Rows: rows}}
	begin := x.e.Now()
	for turn := range contentionTurns {
		if turn >= contentionLeast && (x.e.Now().Sub(begin) > contentionMost || min(laps[0].beside.kept, laps[1].beside.kept) >= contentionLeast) {
			break
		}
		for _, l := range laps {
			if err := s.phase(ctx, x, "alone", turn, rows, l); err != nil {
				return err
			}
		}
		if err := s.phase(ctx, x, "beside", turn, rows, laps[:]...); err != nil {
			return err
		}
	}
	for i, l := range laps {
		c := out[i]
		c.Factor = max(l.beside.sum()/l.alone.sum(), 1)
		c.Trials, c.Kept = l.beside.turns, l.beside.kept
		s.r.Contention = append(s.r.Contention, c)
		s.slow(c)
		s.raw.add(Line{Kind: "contention", Rows: rows, Unit: c.Unit, With: c.With, Factor: &c.Factor})
	}
	return nil
}

// phase lets units do laps, all at once.
func (s *session) phase(ctx context.Context, x *rig, what string, turn, rows int, laps ...*lap) error {
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
		return err
	}
	delay, quiet := done(x.e.Now().Sub(begin))
	for i, l := range laps {
		t := &l.alone
		if len(laps) > 1 {
			t = &l.beside
		}
		t.add(took[i], quiet)
		sum := 0.0
		for _, chunk := range took[i] {
			sum += median(chunk)
		}
		s.raw.add(Line{Kind: "lap", What: what, Unit: l.unit, Rows: rows, Trial: number(turn), MS: &sum, DelayMS: number(ms(delay)), Kept: &quiet})
	}
	return nil
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

	alone, beside laps
}

// laps are what the tasks of a lap took, in milliseconds, by chunk.
type laps struct {
	quiet, all  [][]float64
	turns, kept int
}

func (l *laps) add(took [][]float64, quiet bool) {
	l.turns++
	merge := func(to *[][]float64) {
		if *to == nil {
			*to = make([][]float64, len(took))
		}
		for i, x := range took {
			(*to)[i] = append((*to)[i], x...)
		}
	}
	merge(&l.all)
	if quiet {
		l.kept++
		merge(&l.quiet)
	}
}

// sum is what a lap takes: the sum of the chunks' medians.
func (l *laps) sum() float64 {
	from := l.quiet
	if l.kept == 0 {
		from = l.all
	}
	var sum float64
	for _, x := range from {
		sum += median(x)
	}
	return sum
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
		if n > first && l.e.Now().Sub(begin) >= contentionTime {
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
				took[i] = append(took[i], ms(r[0].End.Sub(r[0].Start)))
			}
		}
	}
}
