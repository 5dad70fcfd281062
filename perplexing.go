package tandem

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/tandemrun/tandem/agreement"
	"github.com/tandemrun/tandem/engine"
	"github.com/tandemrun/tandem/perplexity"
)

// A PerplexityTest says which text's perplexity to measure.
type PerplexityTest struct {
	Text string
	// Options lay the model out. Context is the length of a window; 0 is 512.
	Options Options
	// Loaded, if not nil, is called when the model is loaded, and Progress after
	// each window with the estimate so far.
	Loaded   func(*Engine)
	Progress func(Perplexity)
}

// A Perplexity is how well a model predicts a text: the exponential of the mean
// negative log-probability of the scored tokens. Package perplexity says which
// are scored.
type Perplexity struct {
	Perplexity float64 `json:"perplexity"`
	Error      float64 `json:"standard_error"`
	MeanNLL    float64 `json:"mean_nll"` // in nats a token
	Tokens     int     `json:"tokens"`   // of the text
	Window     int     `json:"window"`
	Windows    int     `json:"windows"` // of the text
	Done       int     `json:"windows_done"`
	Scored     int     `json:"scored_tokens"`
	Elapsed    float64 `json:"elapsed_s"`
	Rate       float64 `json:"tok_s"` // tokens evaluated
}

// Perplexity measures the perplexity of a text. A cancelled context ends it with
// the estimate so far and the context's error.
func (m *Model) Perplexity(ctx context.Context, t PerplexityTest) (p Perplexity, err error) {
	tokens, err := m.Tokenize(t.Text, false, true)
	if err != nil {
		return p, err
	}
	p.Tokens, p.Window = len(tokens), t.Options.Context
	if p.Window == 0 {
		p.Window = min(perplexity.DefaultWindow, m.model.Context)
	}
	t.Options.Context, t.Options.Streams = p.Window, 1
	bos := int32(-1)
	if first, err := m.Tokenize("", false, true); err == nil && len(first) == 1 {
		bos = first[0] // the file's rule adds it
	}
	windows, err := perplexity.Windows(tokens, p.Window, bos)
	if err != nil {
		return p, err
	}
	p.Windows = len(windows)
	e, err := m.Open(ctx, t.Options)
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	s, err := e.e.Stream(ctx)
	if err != nil {
		return p, err
	}
	defer s.Close()
	if t.Loaded != nil {
		t.Loaded(e)
	}
	var sum perplexity.Estimate
	begin := time.Now()
	for _, w := range windows {
		if err := score(ctx, s, w, &sum); err != nil {
			return p, err
		}
		p.Done++
		took := time.Since(begin)
		p.Perplexity, p.Error, p.MeanNLL, p.Scored = sum.Perplexity(), sum.Error(), sum.Mean(), sum.Scored()
		p.Elapsed, p.Rate = took.Seconds(), rate(p.Done*p.Window, took)
		if t.Progress != nil {
			t.Progress(p)
		}
	}
	return p, nil
}

// score evaluates a window and adds its scored tokens. Of the others no logits
// are computed.
func score(ctx context.Context, s *engine.Stream, w perplexity.Window, sum *perplexity.Estimate) error {
	s.Return(0)
	if err := s.Forward(ctx, w.Tokens[:w.First], engine.None, nil); err != nil {
		return err
	}
	last := len(w.Tokens) - 1
	return s.Forward(ctx, w.Tokens[w.First:last], engine.Every, func(pos int, logits []float32) error {
		l := -agreement.LogProb(logits, w.Tokens[pos+1])
		if math.IsNaN(l) {
			return fmt.Errorf("position %d of a window has a logit that is no finite number", pos)
		}
		sum.Add(l)
		return nil
	})
}
