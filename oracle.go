package tandem

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/tandemrun/tandem/agreement"
	"github.com/tandemrun/tandem/engine"
	"github.com/tandemrun/tandem/oracle"
	"github.com/tandemrun/tandem/prompts"
	"github.com/tandemrun/tandem/sampler"
	"github.com/tandemrun/tandem/unit/cpu/kernel"
)

// An OracleRun says how answers to the fixed set of prompts are made: greedily,
// Options.Streams at once.
type OracleRun struct {
	Options Options
	// MaxTokens is the most tokens of an answer that is recorded; 0 is 64. A
	// check makes answers as long as the file's.
	MaxTokens int
	// Loaded, if not nil, is called when the model is loaded, and Progress after
	// each answer.
	Loaded   func(*Engine)
	Progress func(done, total int)
}

// An OracleRecord sums up what was recorded.
type OracleRecord struct {
	File    string  `json:"file"`
	Prompts int     `json:"prompts"`
	Tokens  int     `json:"tokens"`
	Elapsed float64 `json:"elapsed_s"`
	Rate    float64 `json:"tok_s"` // of all streams together, prompts included
}

// An OracleCheck is what a check found.
type OracleCheck struct {
	OracleRecord
	Equal     bool           `json:"equal"`
	Different int            `json:"different"` // prompts with another answer
	First     *Divergence    `json:"first_divergence"`
	Answers   []OracleAnswer `json:"answers"`
}

// An OracleAnswer is one answer of a check.
type OracleAnswer struct {
	Prompt     string      `json:"prompt"`
	Kind       string      `json:"kind"`
	Tokens     int         `json:"tokens"`
	Hash       string      `json:"hash"` // see [oracle.Hash]
	Equal      bool        `json:"equal"`
	Divergence *Divergence `json:"divergence"`
}

// RecordOracle writes the model's answers to the fixed set of prompts into a
// file; docs/oracle.md describes it. The file appears whole, in place of an older
// one, or not at all.
func (m *Model) RecordOracle(ctx context.Context, path string, r OracleRun) (OracleRecord, error) {
	out := OracleRecord{File: path}
	if r.MaxTokens < 0 {
		return out, fmt.Errorf("-n %d: it must be at least 1", r.MaxTokens)
	}
	if r.MaxTokens == 0 {
		r.MaxTokens = answerTokens
	}
	if err := oracle.Replaceable(path); err != nil {
		return out, err
	}
	set, err := m.testPrompts()
	if err != nil {
		return out, err
	}
	answers, took, err := m.answers(ctx, r, set, nil)
	if err != nil {
		return out, err
	}
	f := &oracle.File{Header: oracle.Header{Tandem: Version(), Model: m.oracleModel()}}
	if f.Settings, err = m.oracleSettings(r); err != nil {
		return out, err
	}
	for i, p := range set {
		f.Answers = append(f.Answers, oracle.Answer{Prompt: p.Name, Kind: p.Kind, PromptTokens: p.Tokens, Tokens: answers[i]})
	}
	if err := f.Write(path); err != nil {
		return out, fmt.Errorf("writing the oracle: %w", err)
	}
	out.sum(answers, took)
	return out, nil
}

// CheckOracle makes the answers of a file again and compares them. That they
// differ is no error: see OracleCheck.Equal. A file that is damaged or of
// another model is, before anything is loaded.
func (m *Model) CheckOracle(ctx context.Context, path string, r OracleRun) (OracleCheck, error) {
	out := OracleCheck{OracleRecord: OracleRecord{File: path}}
	f, err := oracle.Read(path)
	if err != nil {
		return out, err
	}
	if mine := m.oracleModel(); f.Model.Fingerprint != mine.Fingerprint {
		return out, fmt.Errorf("%s is of another model: it was recorded of %s (%s), and this is %s (%s)",
			path, f.Model.Name, f.Model.Description, mine.Name, mine.Description)
	}
	set, parted, err := m.recordedPrompts(path, f)
	if err != nil {
		return out, err
	}
	r.MaxTokens = f.Settings.MaxTokens
	var answers [][]int32
	leads := make([]float64, len(set))
	answers, took, err := m.answers(ctx, r, set, func(ctx context.Context, s *engine.Stream, i int, answer []int32) error {
		var err error
		want := f.Answers[i].Tokens
		if at := agreement.Diverge(want, answer); at >= 0 && at < min(len(want), len(answer)) {
			leads[i], err = m.lead(ctx, s, set[i].Tokens, answer, at, want[at])
		}
		return err
	})
	if err != nil {
		return out, err
	}
	for i, got := range answers {
		a := OracleAnswer{Prompt: set[i].Name, Kind: set[i].Kind, Tokens: len(got), Hash: oracle.Hash(got)}
		want := f.Answers[i].Tokens
		if at := agreement.Diverge(want, got); at >= 0 {
			a.Divergence = m.divergence(set[i], at, token(want, at), token(got, at), leads[i])
		}
		if d := parted[set[i].Name]; d != nil {
			a.Divergence = d
		}
		if a.Equal = a.Divergence == nil; !a.Equal {
			out.Different++
			if out.First == nil {
				out.First = a.Divergence
			}
		}
		out.Answers = append(out.Answers, a)
	}
	out.Equal = out.Different == 0
	out.sum(answers, took)
	return out, nil
}

// token is the token at an index, or none.
func token(ids []int32, at int) int32 {
	if at >= len(ids) {
		return agreement.NoToken
	}
	return ids[at]
}

// recordedPrompts are a file's prompts. Where this version of the set has a
// prompt of that name and it now has other tokens, they part there.
func (m *Model) recordedPrompts(path string, f *oracle.File) ([]testPrompt, map[string]*Divergence, error) {
	now, err := m.testPrompts()
	if err != nil {
		return nil, nil, err
	}
	var set []testPrompt
	parted := map[string]*Divergence{}
	for _, a := range f.Answers {
		p := testPrompt{prompts.Prompt{Kind: a.Kind, Name: a.Prompt}, a.PromptTokens}
		for _, ids := range [][]int32{a.PromptTokens, a.Tokens} {
			for _, id := range ids {
				if int(id) >= m.model.Vocab {
					return nil, nil, fmt.Errorf("%s: prompt %q has token %d, but the model has only %d", path, a.Prompt, id, m.model.Vocab)
				}
			}
		}
		for _, q := range now {
			if at := agreement.Diverge(a.PromptTokens, q.Tokens); q.Name == a.Prompt && at >= 0 {
				d := m.divergence(p, at, token(a.PromptTokens, at), token(q.Tokens, at), 0)
				d.InPrompt = true
				parted[p.Name] = d
			}
		}
		set = append(set, p)
	}
	return set, parted, nil
}

// answers makes the answers to prompts, several streams at once, and calls then,
// if it is not nil, from several goroutines with each and the stream that has made it.
func (m *Model) answers(ctx context.Context, r OracleRun, set []testPrompt, then func(context.Context, *engine.Stream, int, []int32) error) (out [][]int32, took time.Duration, err error) {
	r.Options.Streams = min(max(r.Options.Streams, 1), len(set))
	e, err := m.Open(ctx, r.Options)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	if err := fitting(set, r.MaxTokens, e.Context()); err != nil {
		return nil, 0, err
	}
	if r.Loaded != nil {
		r.Loaded(e)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int)
	out = make([][]int32, len(set))
	begin := time.Now()
	var mu sync.Mutex // of done
	done := 0
	var wg sync.WaitGroup
	for range r.Options.Streams {
		s, err := e.e.Stream(ctx)
		if err != nil {
			cancel(err)
			break
		}
		wg.Go(func() {
			defer s.Close()
			for i := range next {
				answer, err := m.greedy(ctx, s, set[i].Tokens, r.MaxTokens)
				if err == nil && then != nil {
					err = then(ctx, s, i, answer)
				}
				if err != nil {
					cancel(fmt.Errorf("prompt %s: %w", set[i].Name, err))
					return
				}
				out[i] = answer
				mu.Lock()
				if done++; r.Progress != nil {
					r.Progress(done, len(set))
				}
				mu.Unlock()
			}
		})
	}
feed:
	for i := range set {
		select {
		case next <- i:
		case <-ctx.Done():
			break feed
		}
	}
	close(next)
	wg.Wait()
	return out, time.Since(begin), context.Cause(ctx)
}

// greedy answers a prompt; the token that ends the turn is the last.
func (m *Model) greedy(ctx context.Context, s *engine.Stream, prompt []int32, most int) ([]int32, error) {
	g := engine.Generation{Prompt: prompt, Max: most, Picker: sampler.New(Sampling{}), End: m.ends}
	r, err := s.Generate(ctx, g, func(engine.Token) bool { return true })
	if r.EndToken >= 0 {
		r.Tokens = append(r.Tokens, r.EndToken)
	}
	return r.Tokens, err
}

// lead is by how much the logit of an answer's token at an index leads before
// that of another one.
func (m *Model) lead(ctx context.Context, s *engine.Stream, prompt, answer []int32, at int, other int32) (lead float64, err error) {
	s.Return(0)
	text := append(append([]int32{}, prompt...), answer[:at]...)
	err = s.Forward(ctx, text, engine.Last, func(_ int, logits []float32) error {
		lead = float64(logits[answer[at]]) - float64(logits[other])
		return nil
	})
	return lead, err
}

func (r *OracleRecord) sum(answers [][]int32, took time.Duration) {
	r.Prompts, r.Elapsed = len(answers), took.Seconds()
	for _, a := range answers {
		r.Tokens += len(a)
	}
	r.Rate = rate(r.Tokens, took)
}

func (m *Model) oracleModel() oracle.Model {
	return oracle.Model{Name: m.Name(), Description: m.describe(), Fingerprint: fmt.Sprintf("%x", m.fingerprint())}
}

func (m *Model) oracleSettings(r OracleRun) (oracle.Settings, error) {
	l, err := m.layout(r.Options)
	return oracle.Settings{
		MaxTokens: r.MaxTokens, Units: strings.ReplaceAll(placement(l.names), ",", " "), Kernels: kernel.Best().String(),
		KV: l.o.KV.String(), Streams: max(r.Options.Streams, 1),
	}, err
}
