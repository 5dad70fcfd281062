package speed

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/tandemrun/tandem/engine"
	"github.com/tandemrun/tandem/program"
	"github.com/tandemrun/tandem/unit"
)

// A Test is one measurement: the prefill of a prompt, or the decoding of new
// tokens in one or several streams at once, behind Depth tokens that are in
// the caches already.
type Test struct {
	Prompt   int // tokens of the prompt; 0 if tokens are decoded
	Generate int // tokens decoded in each stream, one after the other
	Depth    int
	Streams  int // 0 is 1; a prompt has one
}

// Name is the test's name as in llama-bench: "pp512", "tg128 @ d4096".
func (t Test) Name() string {
	name := fmt.Sprintf("tg%d", t.Generate)
	if t.Prompt > 0 {
		name = fmt.Sprintf("pp%d", t.Prompt)
	}
	if t.Depth > 0 {
		name += fmt.Sprintf(" @ d%d", t.Depth)
	}
	return name
}

// Positions is how many positions of a stream the test takes.
func (t Test) Positions() int { return t.Depth + max(t.Prompt, t.Generate) }

// Tokens is how many tokens a repetition evaluates in all streams.
func (t Test) Tokens() int { return t.Prompt + t.Generate*t.streams() }

// Steps is how many steps a repetition has, a step being a prompt or one
// token of each stream.
func (t Test) Steps() int {
	if t.Prompt > 0 {
		return 1
	}
	return t.Generate
}

func (t Test) streams() int {
	if t.Prompt > 0 {
		return 1
	}
	return max(t.Streams, 1)
}

// A Result is what a test took.
type Result struct {
	Test
	Begin   time.Time
	Samples []time.Duration // one for each repetition
	// Work is what a repetition must do at least: bytes of weights to read when
	// tokens are decoded (once for all streams in a step), operations of a
	// prompt.
	Work int64
	// Read and Multiply are the ceilings, in bytes and operations a second, as
	// measured before each repetition and after the last. Unless operations were
	// timed, only the test's own ceiling is measured.
	Read, Multiply []float64
	// Ops is where the time of all repetitions went, if operations were timed.
	Ops []unit.OpTime
}

// Ceiling is the median of the test's own ceiling, in bytes or operations a
// second.
func (r Result) Ceiling() float64 {
	if r.Prompt > 0 {
		return Median(r.Multiply)
	}
	return Median(r.Read)
}

// Share is the part of the ceiling that was reached on average.
func (r Result) Share() float64 {
	mean := Mean(Nanoseconds(r.Samples)) / 1e9
	if mean == 0 || r.Ceiling() == 0 {
		return 0
	}
	return float64(r.Work) / mean / r.Ceiling()
}

// Rates are tokens a second, one for each repetition.
func (r Result) Rates() []float64 { return Rates(float64(r.Tokens()), r.Samples) }

// A Bench runs tests on an engine.
type Bench struct {
	Engine *engine.Engine
	Gauge  *Gauge // nil measures no ceilings
	// Program is that of all layers; work is counted by it.
	Program     *program.Program
	Repetitions int
	TimeOps     bool // the engine times operations
}

// Run runs a test once to warm up and then as often as asked for.
func (b *Bench) Run(ctx context.Context, t Test) (r Result, err error) {
	if b.Repetitions < 1 || t.Depth < 0 || t.Prompt < 0 || t.Generate < 0 || (t.Prompt > 0) == (t.Generate > 0) {
		return r, fmt.Errorf("%d repetitions of a test with %d prompt tokens, %d new tokens, depth %d", b.Repetitions, t.Prompt, t.Generate, t.Depth)
	}
	r = Result{Test: t, Begin: time.Now()}
	if t.Prompt > 0 {
		r.Work = Operations(b.Program, t.Prompt, 1)
	} else {
		weights, _ := b.Program.Bytes()
		r.Work = weights * int64(t.Generate)
	}
	var runs []*run
	defer func() {
		for _, x := range runs {
			x.s.Close()
		}
	}()
	for i := range t.streams() {
		s, err := b.Engine.Stream(ctx)
		if err != nil {
			return r, err
		}
		runs = append(runs, newRun(s, t, b.Engine.Vocab(), uint64(i)))
	}
	warm := t
	warm.Generate = min(warm.Generate, warmSteps)
	if _, _, err := b.once(ctx, runs, warm); err != nil {
		return r, err
	}
	b.gauge(&r)
	for range b.Repetitions {
		took, ops, err := b.once(ctx, runs, t)
		if err != nil {
			return r, err
		}
		r.Samples = append(r.Samples, took)
		r.Ops = addOps(r.Ops, ops)
		b.gauge(&r)
	}
	return r, nil
}

// warmSteps is how many tokens are decoded to warm up.
const warmSteps = 8

func (b *Bench) gauge(r *Result) {
	if b.Gauge == nil {
		return
	}
	if r.Prompt == 0 || b.TimeOps {
		r.Read = append(r.Read, b.Gauge.Read())
	}
	if r.Prompt > 0 || b.TimeOps {
		r.Multiply = append(r.Multiply, b.Gauge.Multiply())
	}
}

// once brings the streams to the test's depth and then times the test.
func (b *Bench) once(ctx context.Context, runs []*run, t Test) (time.Duration, []unit.OpTime, error) {
	for _, x := range runs {
		if err := x.rewind(ctx); err != nil {
			return 0, nil, err
		}
	}
	if b.TimeOps {
		b.Engine.OpTimes() // forgets what led up to here
	}
	errs := make([]error, len(runs))
	var wg sync.WaitGroup
	begin := time.Now()
	for i, x := range runs[1:] {
		wg.Go(func() { errs[i+1] = x.do(ctx, t) })
	}
	errs[0] = runs[0].do(ctx, t)
	wg.Wait()
	took := time.Since(begin)
	if b.TimeOps {
		return took, b.Engine.OpTimes(), errors.Join(errs...)
	}
	return took, nil, errors.Join(errs...)
}

// run is a stream with the tokens it is given.
type run struct {
	s             *engine.Stream
	depth, tokens []int32
}

func newRun(s *engine.Stream, t Test, vocab int, seed uint64) *run {
	rng := rand.New(rand.NewPCG(1, seed))
	draw := func(n int) []int32 {
		out := make([]int32, n)
		for i := range out {
			out[i] = rng.Int32N(int32(vocab))
		}
		return out
	}
	return &run{s, draw(t.Depth), draw(max(t.Prompt, t.Generate))}
}

// rewind brings the stream to its depth, by dropping what is behind it or, if
// a sliding window has forgotten what it needs, by evaluating all again.
func (x *run) rewind(ctx context.Context) error {
	if len(x.s.Tokens()) >= len(x.depth) && x.s.Return(len(x.depth)) {
		return nil
	}
	x.s.Return(0)
	return x.s.Forward(ctx, x.depth, engine.None, nil)
}

// do evaluates the prompt, or the new tokens one by one, with the logits of
// the last as somebody who generates needs them.
func (x *run) do(ctx context.Context, t Test) error {
	each := func(int, []float32) error { return nil }
	if t.Prompt > 0 {
		return x.s.Forward(ctx, x.tokens[:t.Prompt], engine.Last, each)
	}
	for i := range t.Generate {
		if err := x.s.Forward(ctx, x.tokens[i:i+1], engine.Last, each); err != nil {
			return err
		}
	}
	return nil
}

// addOps adds operations to a list that has one of each kind.
func addOps(to, ops []unit.OpTime) []unit.OpTime {
	for _, x := range ops {
		i := slices.IndexFunc(to, func(y unit.OpTime) bool { return y.Name == x.Name && y.Rows == x.Rows })
		if i < 0 {
			to = append(to, x)
			continue
		}
		to[i].Calls += x.Calls
		to[i].Time += x.Time
		to[i].Bytes += x.Bytes
		to[i].Ops += x.Ops
	}
	return to
}
