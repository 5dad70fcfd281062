package tandem

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tandemrun/tandem/engine"
	"github.com/tandemrun/tandem/machine"
	"github.com/tandemrun/tandem/probe"
	"github.com/tandemrun/tandem/sampler"
)

// verifyTrials is how often a plan is run, after a run to warm up.
const verifyTrials = 5

// verify runs plans, which take turns, and notes the medians of what they do in
// trials that were undisturbed, or of all if none was.
func (m *Model) verify(ctx context.Context, plans []*Plan, o Planning) (err error) {
	var runs []*verified
	defer func() {
		for _, r := range runs {
			err = errors.Join(err, r.close())
		}
	}()
	for _, p := range plans {
		if o.Progress != nil {
			o.Progress("verifying: loading " + p.String())
		}
		e, err := m.Open(ctx, p.options(o))
		if err != nil {
			return err
		}
		r := &verified{plan: p, engine: e}
		runs = append(runs, r)
		for range p.Streams {
			s, err := e.e.Stream(ctx)
			if err != nil {
				return err
			}
			r.streams = append(r.streams, s)
		}
	}
	var delay machine.DelayMeter
	defer delay.Close()
	for i := range verifyTrials + 1 {
		if o.Progress != nil {
			o.Progress(fmt.Sprintf("verifying: trial %d of %d", i, verifyTrials))
		}
		for _, r := range runs {
			first, rate, err := once(ctx, r.streams, o, i == 0, &delay)
			if err != nil {
				return err
			}
			if i > 0 {
				r.rates, r.firsts = append(r.rates, rate), append(r.firsts, first)
			}
		}
	}
	for _, r := range runs {
		r.note(o)
	}
	return nil
}

// verified is a plan that is being run.
type verified struct {
	plan          *Plan
	engine        *Engine
	streams       []*engine.Stream
	rates, firsts []trial
}

func (r *verified) close() error {
	for _, s := range r.streams {
		s.Close()
	}
	return r.engine.Close()
}

// note writes what was found into the plan. Sequences beyond those at once wait
// for the ones before.
func (r *verified) note(o Planning) {
	p := r.plan
	rate, kept := middle(r.rates)
	first, _ := middle(r.firsts)
	toks := float64(p.Streams*o.Tokens) / rate.Seconds()
	rounds := (o.Streams + p.Streams - 1) / p.Streams
	ttft := (first + time.Duration(rounds-1)*(first+rate)).Seconds() * 1e3
	p.MeasuredTokS, p.MeasuredTTFT, p.Trials, p.Kept = &toks, &ttft, len(r.rates), kept
}

// A trial is what something took, and the share of it in which the units' threads
// waited for a CPU.
type trial struct {
	took   time.Duration
	waited float64
}

// once lets streams evaluate their prompts and then decode, all at once.
func once(ctx context.Context, streams []*engine.Stream, o Planning, warm bool, delay *machine.DelayMeter) (first, rate trial, err error) {
	each := func(f func(*engine.Stream) error) (trial, error) {
		errs := make([]error, len(streams))
		before, _ := delay.Read()
		start := time.Now()
		var wg sync.WaitGroup
		for i, s := range streams {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * stagger)
				errs[i] = f(s)
			})
		}
		wg.Wait()
		t := trial{took: time.Since(start)}
		after, known := delay.Read()
		if known {
			t.waited = float64(after-before) / float64(t.took)
		}
		return t, errors.Join(errs...)
	}
	pick := func(_ int, logits []float32) error {
		sampler.Best(logits)
		return nil
	}
	if warm {
		o.Tokens = min(o.Tokens, 8)
	}
	prompt := make([]int32, o.Prompt)
	for i := range prompt {
		prompt[i] = int32(i%7 + 1)
	}
	first, err = each(func(s *engine.Stream) error {
		s.Return(0)
		return s.Forward(ctx, prompt, engine.Last, pick)
	})
	if err != nil {
		return first, rate, err
	}
	rate, err = each(func(s *engine.Stream) error {
		for i := range o.Tokens {
			if err := s.Forward(ctx, []int32{int32(i%7 + 1)}, engine.Last, pick); err != nil {
				return err
			}
		}
		return nil
	})
	return first, rate, err
}

// middle is the median of the trials that are kept by the rule of package probe,
// and how many of them were undisturbed.
func middle(all []trial) (time.Duration, int) {
	shares := make([]float64, len(all))
	for i, t := range all {
		shares[i] = t.waited
	}
	kept, quiet := probe.Keep(shares, 1)
	var took []time.Duration
	for _, i := range kept {
		took = append(took, all[i].took)
	}
	slices.Sort(took)
	return (took[(len(took)-1)/2] + took[len(took)/2]) / 2, quiet
}
