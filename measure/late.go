package measure

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/tandemrun/tandem/engine"
	"github.com/tandemrun/tandem/probe"
)

// together is what a step takes beside its tasks while both streams decode.
type together struct {
	// late is until a stream asks for its next step where the unit that it waited
	// for had other work to go on with; 0 if that was never so.
	late time.Duration
	// next is from the end of a task until one begins on the same unit that was
	// ready before, by unit.
	next map[string]time.Duration
}

// together measures that: medians of what is kept by the rule of package probe.
func (p *pairing) together(ctx context.Context) (together, error) {
	var late gaps
	next := map[string]*gaps{}
	at := [2]int{len(p.streams[0].Tokens()), len(p.streams[1].Tokens())}
	for begin := p.e.Now(); !p.enough(len(late.times), begin) && p.e.Now().Sub(begin) < 2*p.limits.steps; {
		waited := p.watch()
		streams, err := p.both(ctx)
		if err != nil {
			return together{}, err
		}
		share := waited()
		for i, x := range streams {
			for k := 1; k < len(x.asked); k++ {
				if goesOn(x.last[k-1], x.asked[k], streams[1-i].records) {
					late.add(x.asked[k].Sub(x.last[k-1].End), share)
				}
			}
		}
		all := slices.Concat(streams[0].records, streams[1].records)
		slices.SortFunc(all, func(a, b engine.Record) int { return a.Start.Compare(b.Start) })
		last := map[int]engine.Record{} // by unit
		for _, r := range all {
			if before, ok := last[r.Unit]; ok && r.Start.After(before.Start) && !r.Parts[0].Ready.After(before.End) {
				name := p.e.Units()[r.Unit]
				if next[name] == nil {
					next[name] = &gaps{}
				}
				next[name].add(r.Start.Sub(before.End), share)
			}
			last[r.Unit] = r
		}
		for i, s := range p.streams { // room for more
			if !s.Return(at[i]) {
				s.Return(0)
			}
		}
	}
	out := together{late: late.typical(), next: map[string]time.Duration{}}
	for name, g := range next {
		out.next[name] = g.typical()
	}
	return out, nil
}

// gaps are times between tasks, each with the share of its time in which threads
// waited for a CPU.
type gaps struct {
	times  []time.Duration
	shares []float64
}

func (g *gaps) add(d time.Duration, share float64) {
	g.times, g.shares = append(g.times, d), append(g.shares, share)
}

func (g *gaps) typical() time.Duration {
	kept, _ := probe.Keep(g.shares, fewest)
	var quiet []time.Duration
	for _, i := range kept {
		quiet = append(quiet, g.times[i])
	}
	return median(quiet)
}

// decoded is some decode steps of a stream.
type decoded struct {
	records []engine.Record // all tasks
	last    []engine.Record // last task of each step
	asked   []time.Time     // when each step was asked for
}

// both lets both streams decode at once, as long as there is room.
func (p *pairing) both(ctx context.Context) (out [2]decoded, err error) {
	var errs [2]error
	var wg sync.WaitGroup
	for i, s := range p.streams {
		wg.Go(func() {
			x := &out[i]
			for range min(groupSteps, p.Context-len(s.Tokens())) {
				t, err := p.forward(ctx, s, 1, engine.Last)
				if errs[i] = err; err != nil {
					return
				}
				for _, r := range s.Records() {
					r.Parts = slices.Clone(r.Parts) // the next step reuses them
					x.records = append(x.records, r)
				}
				x.last = append(x.last, x.records[len(x.records)-1])
				x.asked = append(x.asked, t.submitted)
			}
		})
	}
	wg.Wait()
	return out, errors.Join(errs[:]...)
}

// goesOn reports whether the unit of a task began one of others between the
// task's end and a time.
func goesOn(last engine.Record, until time.Time, others []engine.Record) bool {
	return slices.ContainsFunc(others, func(r engine.Record) bool {
		return r.Unit == last.Unit && !r.Start.Before(last.End) && r.Start.Before(until)
	})
}
