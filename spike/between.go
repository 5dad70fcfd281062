package spike

import (
	"context"
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

// How contention is measured: turns of so long, in each of which each unit works
// alone and both together.
const (
	contentionTurns = 4
	contentionTime  = 120 * time.Millisecond
	contentionLaps  = 3
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
			for _, src := range s.costs.Chunks[j].Reads {
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
	laps := [2]*lap{{e: x.e, s: streams[0], chunks: s.on(x.place, a, rows)}, {e: x.e, s: streams[1], chunks: s.on(x.place, b, rows)}}
	if len(laps[0].chunks) == 0 || len(laps[1].chunks) == 0 {
		return nil
	}
	var factors, all [2][]float64
	out := [2]Contention{{Unit: a, With: b, Rows: rows}, {Unit: b, With: a, Rows: rows}}
	for turn := range contentionTurns {
		var alone, beside [2]float64
		var quiet [2]bool
		for i, l := range laps {
			done, begin := s.watch(), x.e.Now()
			if alone[i], err = l.run(ctx, contentionTime, nil); err != nil {
				return err
			}
			_, quiet[i] = done(x.e.Now().Sub(begin))
		}
		done, begin := s.watch(), x.e.Now()
		var working atomic.Int64
		working.Store(2)
		var errs [2]error
		var fs []func()
		for i, l := range laps {
			fs = append(fs, func() { beside[i], errs[i] = l.run(ctx, contentionTime, &working) })
		}
		s.lab.All(fs...)
		delay, calm := done(x.e.Now().Sub(begin))
		for i := range laps {
			if errs[i] != nil {
				return errs[i]
			}
			f := max(beside[i]/alone[i], 1)
			kept := calm && quiet[i]
			all[i] = append(all[i], f)
			if kept {
				factors[i] = append(factors[i], f)
			}
			s.raw.add(Line{Kind: "contention", Rows: rows, Unit: out[i].Unit, With: out[i].With, Trial: number(turn), Factor: &f, DelayMS: number(ms(delay)), Kept: &kept})
		}
	}
	for i, c := range out {
		c.Trials, c.Kept = len(all[i]), len(factors[i])
		if c.Kept == 0 {
			factors[i] = all[i]
		}
		c.Factor = median(factors[i])
		s.r.Contention = append(s.r.Contention, c)
		s.slow(c)
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

// lap is the tasks of one unit in turn.
type lap struct {
	e      *engine.Engine
	s      *engine.Stream
	chunks []int
}

// run runs laps for at least so long and returns what the tasks of one take, in
// milliseconds: the sum of the chunks' medians. With others at work it goes on,
// uncounted, until all have what they need.
func (l *lap) run(ctx context.Context, least time.Duration, working *atomic.Int64) (float64, error) {
	took := make([][]float64, len(l.chunks))
	begin, counting := l.e.Now(), true
	finish := func() {
		if counting && working != nil {
			working.Add(-1)
		}
		counting = false
	}
	defer finish()
	for n := 0; ; n++ {
		if n >= contentionLaps && l.e.Now().Sub(begin) >= least {
			finish()
			if working == nil || working.Load() <= 0 {
				break
			}
		}
		for i, chunk := range l.chunks {
			r, err := l.e.Again(ctx, engine.Rerun{Stream: l.s, Chunk: chunk})
			if err != nil {
				return 0, err
			}
			if counting && n > 0 { // the others may not have begun in the first
				took[i] = append(took[i], ms(r[0].End.Sub(r[0].Start)))
			}
		}
	}
	var sum float64
	for _, x := range took {
		sum += median(x)
	}
	return sum, nil
}
