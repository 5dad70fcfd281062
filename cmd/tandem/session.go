package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/tandemrun/tandem"
)

// session is a model with one stream over it.
type session struct {
	model  *tandem.Model
	engine *tandem.Engine
	stream *tandem.Stream
	load   time.Duration // reading the file and preparing the weights
	plan   *tandem.UsedPlan
	begun  bool // the first token of an answer, which the prompt made, has come
}

// prepare loads the model and calls text, which finds out what to do with it
// before the weights are prepared; then it opens an engine with one stream.
func (c *console) prepare(ctx context.Context, f modelFlags, l layoutFlags, text func(*tandem.Model) error) (*session, error) {
	o, err := l.options()
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	m, err := f.load()
	if err != nil {
		return nil, err
	}
	s := &session{model: m, load: time.Since(begin)}
	if err := text(m); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	begin = time.Now()
	if s.plan, o, err = c.lay(ctx, m, l, o, 1); err != nil {
		return nil, errors.Join(cause(ctx, err), m.Close())
	}
	p := c.progress()
	o.Progress = p.update
	s.engine, err = m.Open(ctx, o)
	p.clear()
	if err != nil {
		return nil, errors.Join(cause(ctx, err), m.Close())
	}
	s.load += time.Since(begin)
	for _, note := range s.engine.Notes() {
		fmt.Fprintf(c.err, "tandem: note: %s\n", note)
	}
	if s.stream, err = s.engine.NewStream(ctx); err != nil {
		return nil, errors.Join(cause(ctx, err), s.engine.Close(), m.Close())
	}
	return s, nil
}

func (s *session) close() error {
	s.stream.Close()
	return errors.Join(s.engine.Close(), s.model.Close())
}

// rehearse answers a prompt to no one: up to 16 tokens to warm up, and then the
// whole answer as often as one more after it still fits into a time, by what the
// last one took. Each answer has a stream of its own, so that none finds its
// prompt in the caches.
func (s *session) rehearse(ctx context.Context, prompt []int32, g tandem.Generation, d time.Duration) error {
	g.Emit = nil
	answer := func(g tandem.Generation) (took time.Duration, err error) {
		begin := time.Now()
		if _, err := s.stream.Generate(ctx, prompt, g); err != nil {
			return 0, err
		}
		took = time.Since(begin)
		s.stream.Close()
		s.stream, err = s.engine.NewStream(ctx)
		return took, err
	}
	const some = 16
	warm := g
	warm.MaxTokens = some
	took, err := answer(warm)
	took *= time.Duration(max(1, g.MaxTokens/some))
	for begin := time.Now(); err == nil && time.Since(begin)+2*took < d; {
		took, err = answer(g)
	}
	return err
}

// fits refuses a prompt that is longer than the context.
func (s *session) fits(prompt []int32) error {
	if n := s.engine.Context(); len(prompt) > n {
		return fmt.Errorf("the prompt has %d tokens, but the context has room for %d; give a larger --ctx or a shorter prompt", len(prompt), n)
	}
	return nil
}

// needsText explains to a person why text cannot be used.
func needsText(m *tandem.Model, err error) error {
	if errors.Is(err, tandem.ErrNoVocab) {
		return fmt.Errorf("%s has no vocabulary (tokenizer.ggml.model is no_vocab), so it cannot take or give text; use `tandem logits --tokens 1,2,3`", m.Name())
	}
	return err
}

// chunk is a chunk of a layout in JSON output.
type chunk struct {
	Name  string `json:"name"`
	First int    `json:"first_layer"`
	Last  int    `json:"last_layer"`
	Unit  string `json:"unit"`
	// Prefill is the unit of prefill, where that is another.
	Prefill string `json:"prefill_unit,omitempty"`
}

func chunksOf(e *tandem.Engine) []chunk {
	var out []chunk
	for _, c := range e.Chunks() {
		out = append(out, chunk{c.Name, c.First, c.Last, c.Unit, ""})
	}
	for _, c := range e.PrefillChunks() {
		for i := range out {
			if out[i].Name == c.Name {
				out[i].Prefill = c.Unit
			}
		}
	}
	return out
}

// answer is what a generation did, in JSON output.
type answer struct {
	PromptTokens int              `json:"prompt_tokens"`
	Tokens       []int32          `json:"tokens"`
	Text         string           `json:"text"`
	End          tandem.EndReason `json:"end_reason"`
	Load         float64          `json:"load_s"`
	Prefill      float64          `json:"prefill_s"`
	Decode       float64          `json:"decode_s"`
	PrefillRate  float64          `json:"prefill_tok_s"`
	DecodeRate   float64          `json:"decode_tok_s"`
	Chunks       []chunk          `json:"chunks"`
}

func (s *session) answer(r tandem.Result) answer {
	a := answer{
		r.PromptTokens, r.Tokens, r.Text, r.End, s.load.Seconds(),
		r.Prefill.Seconds(), r.Decode.Seconds(), r.PrefillRate(), r.DecodeRate(), chunksOf(s.engine),
	}
	if a.Tokens == nil {
		a.Tokens = []int32{}
	}
	return a
}

// summary is one line about a generation.
func summary(r tandem.Result) string {
	return fmt.Sprintf("%d prompt tokens (%d reused), prefill %.1f tok/s; %d new tokens, decode %.1f tok/s; %s",
		r.PromptTokens, r.Reused, r.PrefillRate(), len(r.Tokens), r.DecodeRate(), r.End)
}

// loads is a line for each chunk that was loaded, in the form of the seeds.
func (s *session) loads() string {
	var b strings.Builder
	line := func(c tandem.Chunk, note string) {
		fmt.Fprintf(&b, "[Load] chunk%s done in %.1fs (%s%s)\n", strings.TrimPrefix(c.Name, "c"), c.Load.Seconds(), c.Unit, note)
	}
	for _, c := range s.engine.Chunks() {
		line(c, "")
	}
	for _, c := range s.engine.PrefillChunks() {
		line(c, ", prefill")
	}
	return b.String()
}

// profiler prints what decode steps took: the first, the mean of those up to
// each tenth, or all if LLM_PROFILE_EVERY_STEP is 1.
type profiler struct {
	profile *tandem.Profile
	print   func(lines string)
	always  bool
	begun   bool // the first token, which the prompt made, has come
	step    int
}

const profileEvery = 10

func (s *session) profiler(print func(lines string)) *profiler {
	return &profiler{profile: tandem.NewProfile(s.engine), print: print, always: os.Getenv("LLM_PROFILE_EVERY_STEP") == "1"}
}

// printProfile prints lines of a profiler, between pieces of an answer.
func (c *console) printProfile(lines string) {
	if isTerminal(c.out) && isTerminal(c.err) {
		lines = "\n" + lines // the text has not ended its line
	}
	fmt.Fprintln(c.err, lines)
}

// again begins another answer, whose steps are counted anew.
func (p *profiler) again() {
	p.profile.Reset()
	p.begun, p.step = false, 0
}

// add takes the next piece of a generation.
func (p *profiler) add(piece tandem.Piece) {
	if piece.Token < 0 {
		return // text that was held back, not a step
	}
	if !p.begun {
		p.begun = true
		return
	}
	p.step++
	p.profile.Add(piece.Took, piece.Records)
	if p.always || p.step == 1 || p.step%profileEvery == 0 {
		p.print(p.profile.String())
		p.profile.Reset()
	}
}
