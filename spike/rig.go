package spike

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tandemrun/tandem/engine"
	"github.com/tandemrun/tandem/trace"
)

// A rig is an open engine and what it did first.
type rig struct {
	e      *engine.Engine
	place  []string
	prompt []string // where prompts are evaluated
	block  int
	record *trace.Recorder
	units  []string        // of the engine
	cold   time.Duration   // the first token since it was loaded
	first  []time.Duration // of that, by chunk
}

// rigs keeps engines open, as many as fit into the memory; the one that was used
// least recently is closed for the next.
type rigs struct {
	lab     Lab
	streams int
	context int
	open    []*rig // the most recently used last
	opening func(place []string)
}

// get returns an engine on a placement with blocks of so many rows, opening it
// and running one token through it if need be.
func (r *rigs) get(ctx context.Context, place []string, block int) (*rig, error) {
	return r.getFor(ctx, place, place, block)
}

// getFor is get with a placement of its own for prompts.
func (r *rigs) getFor(ctx context.Context, place, prompt []string, block int) (*rig, error) {
	i := slices.IndexFunc(r.open, func(x *rig) bool {
		return x.block == block && slices.Equal(x.place, place) && slices.Equal(x.prompt, prompt)
	})
	if i >= 0 {
		x := r.open[i]
		r.open = append(slices.Delete(r.open, i, i+1), x)
		return x, nil
	}
	for len(r.open) >= r.lab.Most() {
		if err := r.open[0].e.Close(); err != nil {
			return nil, err
		}
		r.open = slices.Delete(r.open, 0, 1)
	}
	if r.opening != nil {
		r.opening(place)
	}
	x := &rig{place: slices.Clone(place), prompt: slices.Clone(prompt), block: block, record: &trace.Recorder{}}
	l := Layout{Place: place, Streams: r.streams, Context: r.context, Block: block, Observe: x.record.Observe}
	if !slices.Equal(place, prompt) {
		l.Prefill = prompt
	}
	var err error
	x.e, err = r.lab.Open(ctx, l)
	if err != nil {
		return nil, err
	}
	r.open = append(r.open, x)
	x.units = x.e.Units()
	if err := x.begin(ctx, r.lab.Prompts()[0].Tokens[:1]); err != nil {
		return nil, err
	}
	if l.Prefill != nil { // its chunks are others, which have not run yet
		st, err := x.e.Stream(ctx)
		if err != nil {
			return nil, err
		}
		defer st.Close()
		two := slices.Repeat(r.lab.Prompts()[0].Tokens[:1], 2)
		if err := st.Forward(ctx, two, engine.Last, func(int, []float32) error { return nil }); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// begin runs the first token.
func (x *rig) begin(ctx context.Context, token []int32) error {
	s, err := x.e.Stream(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	start := x.e.Now()
	err = s.Forward(ctx, token, engine.Last, func(int, []float32) error { return nil })
	x.cold = x.e.Now().Sub(start)
	x.first = make([]time.Duration, len(x.place))
	for _, r := range s.Records() {
		x.first[r.Chunk] = r.End.Sub(r.Start)
	}
	return err
}

// prepare opens streams and evaluates all but the last token of their prompts.
// The streams are closed by the caller, also after an error.
func (x *rig) prepare(ctx context.Context, prompts []Prompt) ([]*engine.Stream, error) {
	var out []*engine.Stream
	for _, p := range prompts {
		s, err := x.e.Stream(ctx)
		if err != nil {
			return out, err
		}
		out = append(out, s)
		if n := len(p.Tokens) - 1; n > 0 {
			if err := s.Forward(ctx, p.Tokens[:n], engine.None, nil); err != nil {
				return out, fmt.Errorf("prompt %s: %w", p.Name, err)
			}
		}
	}
	return out, nil
}

// back brings streams back to all but the last token of their prompts, evaluating
// them again where a sliding window has moved on.
func (x *rig) back(ctx context.Context, streams []*engine.Stream, prompts []Prompt) error {
	for i, s := range streams {
		tokens := prompts[i].Tokens
		if n := len(tokens) - 1; !s.Return(n) && n > 0 {
			if err := s.Forward(ctx, tokens[:n], engine.None, nil); err != nil {
				return fmt.Errorf("prompt %s: %w", prompts[i].Name, err)
			}
		}
	}
	return nil
}

func closeStreams(streams []*engine.Stream) {
	for _, s := range streams {
		s.Close()
	}
}

// timeline is what the engine did since its recorder was reset, with its streams
// numbered from 0.
func (x *rig) timeline(name string) (*trace.Timeline, error) {
	records := x.record.Records()
	number := map[int]int{}
	var ids []int
	for _, r := range records {
		for _, p := range r.Parts {
			if !slices.Contains(ids, p.Stream) {
				ids = append(ids, p.Stream)
			}
		}
	}
	slices.Sort(ids)
	for i, id := range ids {
		number[id] = i
	}
	for i, r := range records {
		records[i].Parts = slices.Clone(r.Parts)
		for k := range r.Parts {
			records[i].Parts[k].Stream = number[r.Parts[k].Stream]
		}
	}
	return trace.New(trace.LayoutOf(name, x.e), records)
}

// close closes all engines.
func (r *rigs) close() error {
	var errs []error
	for _, x := range r.open {
		errs = append(errs, x.e.Close())
	}
	r.open = nil
	return errors.Join(errs...)
}
