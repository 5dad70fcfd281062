package spike

import (
	"context"
	"fmt"
	"time"

	"github.com/tandemrun/tandem/engine"
	"github.com/tandemrun/tandem/plan"
)

// A turn of a schedule is as many runs as fit into turnTime, at least one and at
// most mostRuns: runs of a small model are over before anything can be told. A
// schedule that took slowTime in slowTurns turns has no more of them.
const (
	turnTime  = 200 * time.Millisecond
	mostRuns  = 8
	slowTime  = 8 * time.Second
	slowTurns = 2
)

// A turn is one of a schedule.
type turn struct {
	r       *Result
	x       *rig
	number  int
	prompts []Prompt
	picks   []int // which prompts they are
	streams []*engine.Stream
	costs   *plan.Costs
}

// turn takes one on a lab. With real units that are measured it is several runs,
// each with a look at the schedule before and one behind the last.
func (s *session) turn(ctx context.Context, t *turn, l Lab, real bool) (err error) {
	own := l == s.lab
	t.costs = s.costs
	if real && t.r.Streams > 1 {
		if t.costs, err = s.contended(ctx, t.x.place); err != nil {
			return fmt.Errorf("contention: %w", err)
		}
	}
	t.streams, err = t.x.prepare(ctx, t.prompts)
	defer func() { closeStreams(t.streams) }()
	if err != nil {
		return err
	}
	is := state{t.costs, true, nil}
	first := len(t.r.runs)
	for n, begin := 0, t.x.e.Now(); n == 0 || real && n < mostRuns && t.x.e.Now().Sub(begin) < turnTime; n++ {
		if real {
			if is, err = s.now(ctx, t, n == 0); err != nil {
				return err
			}
		}
		var f forecast
		var every time.Duration // on another lab times are of no interest
		if own {
			if f, err = s.predict(t, is); err != nil {
				return fmt.Errorf("predicting: %w", err)
			}
			every = f.window(t.r.Streams)
		}
		one, err := s.generate(ctx, t.x, t.streams, t.prompts, s.o.Tokens, t.r.Merge, every)
		if err != nil {
			return err
		}
		one.forecast = f
		t.r.runs, t.r.picks = append(t.r.runs, one), append(t.r.picks, t.picks)
		line := Line{Kind: "decode", Placement: t.r.Placement, Streams: t.r.Streams, Merge: &t.r.Merge, Trial: number(t.number), Category: t.prompts[0].Category,
			MS: number(ms(one.wall)), Rate: &one.rate, Overlap: &one.overlap, DelayMS: number(ms(one.delay)), StallMS: number(ms(one.stalled)), Kept: &one.quiet, Copied: one.copied, Passed: one.passed}
		if !own {
			line.Model = l.Name()
		}
		s.raw.add(line)
	}
	if !real {
		return nil
	}
	next, err := s.now(ctx, t, false)
	if err != nil {
		return err
	}
	for i := len(t.r.runs) - 1; i >= first; i-- {
		f := &t.r.runs[i].forecast
		f.quiet = f.quiet && next.quiet && steady(f.is.by, next.by)
		next = f.is
	}
	return nil
}

// took is what all runs took.
func (r *Result) took() time.Duration {
	var d time.Duration
	for _, x := range r.runs {
		d += x.wall
	}
	return d
}

// A forecast is what a run is predicted to give.
type forecast struct {
	rate    Rate
	overlap float64
	quiet   bool // what it rests on was undisturbed, and as fast in the next look
	is      state
}

// predict predicts a run with the costs as they are now.
func (s *session) predict(t *turn, is state) (forecast, error) {
	r := t.r
	p, err := s.flow(is.costs, r)
	if err != nil {
		return forecast{}, err
	}
	out := forecast{Rate{p.Aggregate, p.Steady}, p.Overlap, is.quiet, is}
	s.raw.add(Line{Kind: "prediction", What: "decode", Placement: r.Placement, Streams: r.Streams, Merge: &r.Merge, Trial: number(t.number), Rate: &out.rate, Overlap: &out.overlap, Kept: &out.quiet})
	return out, nil
}

// flow predicts a run of a schedule.
func (s *session) flow(c *plan.Costs, r *Result) (plan.Prediction, error) {
	return plan.Predict(c, plan.Schedule{Placement: r.place, Block: longestPrompt, Merge: r.Merge}, plan.Work{Streams: r.Streams, Prompt: 1, Tokens: s.o.Tokens})
}

// window is how long the windows of a run are.
func (f forecast) window(streams int) time.Duration {
	step := time.Duration(float64(streams) / f.rate.Steady * 1e9)
	return max(shortWindow, 2*step)
}
