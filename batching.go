package tandem

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/tandemrun/tandem/batch"
)

// A Batch is a file of prompts to be answered into a file of answers, with
// Options.Streams prompts at once. docs/batch.md describes both files.
type Batch struct {
	Input, Output string
	Options       Options
	// MaxTokens and Sampling hold for the prompts that do not say otherwise.
	MaxTokens int
	Sampling  Sampling
	// Loaded, if not nil, is called before the first prompt is answered.
	Loaded func(*Engine)
	// Progress, if not nil, is called after each answer, from one goroutine.
	Progress func(BatchSummary)
}

// A BatchSummary counts what has been answered.
type BatchSummary = batch.Summary

// Batch answers the prompts that have no answer yet. It can be ended at any
// moment, by killing the process as well, and called again with the same input,
// model, sampling, MaxTokens, Context and KV: at the end each prompt has one
// line in the output. The number of streams and the layout may be others each
// time; they do not change an answer.
//
// A prompt that cannot be answered, because it is longer than the context, say,
// has its error in the output. Other errors, a line of the input that is not of
// the form above all, end the call; nothing is loaded before all lines have
// been checked, nor when all have their answers.
func (m *Model) Batch(ctx context.Context, b Batch) (sum BatchSummary, err error) {
	switch {
	case m.vocab == nil:
		return sum, m.noVocab()
	case b.MaxTokens < 0:
		return sum, fmt.Errorf("-n %d: it must be 0 (no limit) or more", b.MaxTokens)
	}
	if err := b.Sampling.Check(); err != nil {
		return sum, err
	}
	settings, err := m.settings(b)
	if err != nil {
		return sum, err
	}
	j, err := batch.Open(ctx, batch.Config{Input: b.Input, Output: b.Output, Settings: settings})
	if err != nil {
		return sum, err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	sum = j.Summary()
	if sum.Left() == 0 {
		return sum, nil
	}
	// Streams that would have nothing to do need no memory.
	b.Options.Streams = min(max(b.Options.Streams, 1), sum.Left())
	e, err := m.Open(ctx, b.Options)
	if err != nil {
		return sum, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	var streams []batch.Answerer
	for range b.Options.Streams {
		s, err := e.NewStream(ctx)
		if err != nil {
			return sum, err
		}
		defer s.Close()
		streams = append(streams, &answerer{s, b, e.Context()})
	}
	if b.Loaded != nil {
		b.Loaded(e)
	}
	return j.Run(ctx, streams, b.Progress)
}

// settings names all that answers depend on beside their prompts.
func (m *Model) settings(b Batch) (string, error) {
	l, err := m.layout(b.Options)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%x %+v %d %d %s", m.fingerprint(), b.Sampling, b.MaxTokens, l.o.Context, l.o.KV), nil
}

// fingerprint tells models apart wherever their files are: it hashes the
// metadata and, of each tensor, its form and the first few weights. Hashing all
// of them would take as long as loading.
func (m *Model) fingerprint() []byte {
	const some = 256
	h := sha256.New()
	for _, key := range m.file.Keys() {
		v, _ := m.file.Value(key)
		fmt.Fprintf(h, "%q %v\n", key, v.Any())
	}
	for _, t := range m.file.Tensors() {
		fmt.Fprintf(h, "%q %s %d %x\n", t.Name, t.Type, t.Dims, t.Data[:min(some, len(t.Data))])
	}
	return h.Sum(nil)
}

// answerer answers prompts on one stream, which keeps what consecutive ones
// have in common.
type answerer struct {
	s       *Stream
	b       Batch
	context int
}

func (a *answerer) Answer(ctx context.Context, q batch.Request) (batch.Answer, error) {
	var prompt []int32
	var err error
	if q.Raw {
		prompt, err = a.s.m.Tokenize(q.Prompt, true, true)
	} else {
		prompt, err = a.s.m.Prompt(q.Conversation())
	}
	switch {
	case err != nil && !q.Raw && a.s.m.chatErr != nil:
		return batch.Answer{}, err // it lies in the model: no other prompt would do better
	case err != nil:
	case len(prompt) == 0:
		err = errors.New("the prompt has no tokens")
	case len(prompt) > a.context:
		err = fmt.Errorf("the prompt has %d tokens, but the context has room for %d", len(prompt), a.context)
	}
	if err != nil {
		return batch.Answer{PromptTokens: len(prompt)}, &batch.Refusal{Err: err}
	}
	g := Generation{MaxTokens: a.b.MaxTokens, Sampling: a.b.Sampling}
	if q.MaxTokens != nil {
		g.MaxTokens = *q.MaxTokens
	}
	if q.Seed != nil {
		g.Sampling.Seed = *q.Seed
	}
	if q.Temperature != nil {
		g.Sampling.Temperature = *q.Temperature
	}
	r, err := a.s.Generate(ctx, prompt, g)
	return batch.Answer{
		Text: r.Text, PromptTokens: r.PromptTokens, Reused: r.Reused, Tokens: len(r.Tokens), End: string(r.End),
		Prefill: r.Prefill, Decode: r.Decode,
	}, err
}
