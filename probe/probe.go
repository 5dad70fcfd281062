// Package probe measures whether two chunks overlap: each alone, one after the
// other, and both at once, as the seed document did by hand.
//
// The formula and the verdicts are the document's. With a and b the times
// alone and p the time of both at once,
//
//	overlap = (a + b - p) / max(a + b - max(a, b), 1 µs)
//
// is 1 when both together take as long as the longer one, and 0 when they take
// as long as one after the other. Above 0.50 it is called strong, above 0.30
// meaningful, above 0.15 partial.
//
// A pair that overlaps is a capability, not a gain: the chunks of one stream
// wait for each other, whatever units they are on.
//
// Times come from the engine's clock, so a probe of simulated units is exact.
package probe

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tandemrun/tandem/engine"
)

// Disturbed is the share of a trial that threads of this process may have
// waited for a CPU, ready to run, for the trial to be kept. The rule is fixed
// before anything is measured.
const Disturbed = 0.03

// Options say what to measure.
type Options struct {
	A, B   int     // chunks, by index
	Tokens []int32 // what the streams evaluate before the trials
	Trials int     // of each kind; 0 is 10
	// Delay tells how long threads of this process have waited for a CPU so
	// far; nil, or false, if that is not known. Then every trial is kept.
	Delay func() (time.Duration, bool)
}

// Timing is the trials of one kind.
type Timing struct {
	Mean   time.Duration // of all trials, as the seed documents print it
	Median time.Duration // of the trials kept
	Kept   int
	Trials []time.Duration
}

// Result is what a probe found.
type Result struct {
	A, B                 string // names of the chunks
	UnitA, UnitB         string
	ColdA, ColdB         time.Duration // the first run of each chunk since it was loaded
	AloneA, AloneB       Timing
	Sequential, Parallel Timing
	Overlap              float64 // from means over all trials, as in the seed document
	OverlapKept          float64 // from medians over the trials kept
	Verdict              string  // of OverlapKept
	Trials, Kept         int     // of all four kinds
}

// Overlap is the formula above.
func Overlap(a, b, parallel time.Duration) float64 {
	possible := max((a + b - max(a, b)).Seconds(), 1e-6)
	return (a + b - parallel).Seconds() / possible
}

// Verdict names an overlap as the seed documents do.
func Verdict(overlap float64) string {
	switch {
	case overlap > 0.50:
		return "strong"
	case overlap > 0.30:
		return "meaningful"
	case overlap > 0.15:
		return "partial"
	}
	return "none"
}

// Pair measures two chunks of an engine with at least two free streams, which
// it takes and gives back. The engine must be fresh for the cold times to be
// those of the first runs.
func Pair(ctx context.Context, e *engine.Engine, o Options) (Result, error) {
	chunks := e.Chunks()
	if o.A < 0 || o.A >= len(chunks) || o.B < 0 || o.B >= len(chunks) || o.A == o.B {
		return Result{}, fmt.Errorf("chunks %d and %d of %d: a probe needs two different ones", o.A+1, o.B+1, len(chunks))
	}
	if len(o.Tokens) < 2 {
		return Result{}, fmt.Errorf("%d tokens: a probe needs two at least", len(o.Tokens))
	}
	if o.Trials == 0 {
		o.Trials = 10
	}
	r := Result{A: chunks[o.A].Name, B: chunks[o.B].Name, UnitA: chunks[o.A].Unit, UnitB: chunks[o.B].Unit}
	var streams [2]*engine.Stream
	for i := range streams {
		s, err := e.Stream(ctx)
		if err != nil {
			return Result{}, err
		}
		defer s.Close()
		streams[i] = s
		if err := r.begin(ctx, s, o, i == 0); err != nil {
			return Result{}, err
		}
	}
	a, b := engine.Rerun{Stream: streams[0], Chunk: o.A}, engine.Rerun{Stream: streams[1], Chunk: o.B}
	kinds := []struct {
		to    *Timing
		steps [][]engine.Rerun
	}{
		{&r.AloneA, [][]engine.Rerun{{a}}},
		{&r.AloneB, [][]engine.Rerun{{b}}},
		{&r.Sequential, [][]engine.Rerun{{a}, {b}}},
		{&r.Parallel, [][]engine.Rerun{{a, b}}},
	}
	kept := make([][]time.Duration, len(kinds))
	for trial := -1; trial < o.Trials; trial++ {
		// The kinds take turns, so that a drift of the machine meets all alike.
		for i, k := range kinds {
			took, quiet, err := o.measure(ctx, e, k.steps)
			if err != nil {
				return Result{}, err
			}
			if trial < 0 {
				continue // warm-up
			}
			k.to.Trials = append(k.to.Trials, took)
			if quiet {
				kept[i] = append(kept[i], took)
			}
		}
	}
	for i, k := range kinds {
		k.to.finish(kept[i])
		r.Trials += len(k.to.Trials)
		r.Kept += k.to.Kept
	}
	r.Overlap = Overlap(r.AloneA.Mean, r.AloneB.Mean, r.Parallel.Mean)
	r.OverlapKept = Overlap(r.AloneA.Median, r.AloneB.Median, r.Parallel.Median)
	r.Verdict = Verdict(r.OverlapKept)
	return r, nil
}

// begin evaluates the tokens, the first one apart to see the cold times, and
// the last one apart so that what runs again is a decode step.
func (r *Result) begin(ctx context.Context, s *engine.Stream, o Options, cold bool) error {
	ignore := func(int, []float32) error { return nil }
	if err := s.Forward(ctx, o.Tokens[:1], engine.Last, ignore); err != nil {
		return err
	}
	if cold {
		for _, x := range s.Records() {
			switch x.Chunk {
			case o.A:
				r.ColdA = x.End.Sub(x.Start)
			case o.B:
				r.ColdB = x.End.Sub(x.Start)
			}
		}
	}
	n := len(o.Tokens)
	if n > 2 {
		if err := s.Forward(ctx, o.Tokens[1:n-1], engine.None, nil); err != nil {
			return err
		}
	}
	return s.Forward(ctx, o.Tokens[n-1:], engine.Last, ignore)
}

// measure runs one trial and tells whether it was undisturbed.
func (o Options) measure(ctx context.Context, e *engine.Engine, steps [][]engine.Rerun) (time.Duration, bool, error) {
	delay := func() (time.Duration, bool) { return 0, false }
	if o.Delay != nil {
		delay = o.Delay
	}
	before, _ := delay()
	start := e.Now()
	for _, s := range steps {
		if _, err := e.Again(ctx, s...); err != nil {
			return 0, false, err
		}
	}
	took := e.Now().Sub(start)
	after, known := delay()
	return took, !known || float64(after-before) <= Disturbed*float64(took), nil
}

func (t *Timing) finish(kept []time.Duration) {
	var sum time.Duration
	for _, x := range t.Trials {
		sum += x
	}
	t.Mean = sum / time.Duration(len(t.Trials))
	t.Kept = len(kept)
	if len(kept) == 0 {
		kept = t.Trials // nothing was quiet; Kept says so
	}
	t.Median = median(kept)
}

func median(x []time.Duration) time.Duration {
	x = slices.Sorted(slices.Values(x))
	n := len(x)
	return (x[(n-1)/2] + x[n/2]) / 2
}

// Lines are the two lines that the seed documents print.
func (r Result) Lines() string {
	ms := func(d time.Duration) float64 { return d.Seconds() * 1e3 }
	a, b := r.AloneA.Mean, r.AloneB.Mean
	return fmt.Sprintf("[Spike] %s_serial=%.2fms %s_serial=%.2fms seq_both=%.2fms parallel=%.2fms\n"+
		"[Spike] ideal_parallel=%.2fms sum=%.2fms overlap_factor=%.2f (1.0=full, 0.0=serial)",
		r.A, ms(a), r.B, ms(b), ms(r.Sequential.Mean), ms(r.Parallel.Mean), ms(max(a, b)), ms(a+b), r.Overlap)
}
