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

// late is the median time until a stream asks for its next step where the unit
// that it waited for had other work to go on with; 0 if that was never so. Both
// streams decode at once.
func (p *pairing) late(ctx context.Context) (time.Duration, error) {
	var times []time.Duration
	var shares []float64
	at := [2]int{len(p.streams[0].Tokens()), len(p.streams[1].Tokens())}
	for begin := p.e.Now(); !p.enough(len(times), begin) && p.e.Now().Sub(begin) < 2*p.limits.steps; {
		waited := p.watch()
		streams, err := p.both(ctx)
		if err != nil {
			return 0, err
		}
		share := waited()
		for i, x := range streams {
			for k := 1; k < len(x.asked); k++ {
				if goesOn(x.last[k-1], x.asked[k], streams[1-i].records) {
					times, shares = append(times, x.asked[k].Sub(x.last[k-1].End)), append(shares, share)
				}
			}
		}
		for i, s := range p.streams { // room for more
			if !s.Return(at[i]) {
				s.Return(0)
			}
		}
	}
	kept, _ := probe.Keep(shares, fewest)
	var quiet []time.Duration
	for _, i := range kept {
		quiet = append(quiet, times[i])
	}
	return median(quiet), nil
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
				x.records = append(x.records, s.Records()...)
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
