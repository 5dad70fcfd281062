package tandem

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/tandemrun/tandem/agreement"
	"github.com/tandemrun/tandem/engine"
	"github.com/tandemrun/tandem/prompts"
)

// An AgreementTest compares two layouts of a model on the fixed set of prompts:
// two units, or two types of KV cache. The reference answers each prompt
// greedily and the tested layout is given the same tokens, one by one, so that
// both see the same text at every position.
type AgreementTest struct {
	Reference, Tested Options
	// Positions is how many are compared for each prompt at most, less where the
	// reference ends its turn before; 0 is 64.
	Positions int
	// Progress, if not nil, is called after each prompt.
	Progress func(done, total int)
}

// An Agreement is how far two layouts are apart, over all prompts and for each
// kind of prompt.
type Agreement struct {
	All   AgreementFigures   `json:"all"`
	Kinds []AgreementFigures `json:"kinds"`
}

// AgreementFigures sum up positions. Package agreement says what each is.
type AgreementFigures struct {
	Kind      string `json:"kind"` // chat, code, qa, summary, or "all"
	Prompts   int    `json:"prompts"`
	Positions int    `json:"positions"`
	// NotFinite is how many positions had a logit that is no finite number. The
	// figures below are null if it is not 0.
	NotFinite  int      `json:"not_finite"`
	Top        float64  `json:"top1_agreement"` // share of positions with the same most likely token
	MeanKL     *float64 `json:"mean_kl"`        // in nats
	MaxKL      *float64 `json:"max_kl"`
	Difference *float64 `json:"max_logit_difference"`
	// First is the first position at which the most likely tokens differ, nil
	// if there is none.
	First *Divergence `json:"first_divergence"`
}

// A Divergence is where an answer parts from the one it is compared with.
type Divergence struct {
	Prompt   string `json:"prompt"` // name of the prompt
	Kind     string `json:"kind"`   // its kind
	InPrompt bool   `json:"in_prompt"`
	Position int    `json:"position"` // in the answer, or in the prompt, counted from 0
	Expected *Token `json:"expected"` // nil: the answer should have ended here
	Got      *Token `json:"got"`      // nil: the answer ended here, or a logit was not finite
	// Lead is by how much the logit of Got leads before that of Expected where
	// Got was chosen: little at a near tie.
	Lead float64 `json:"lead"`
}

// A Token is a token with its text as the vocabulary has it.
type Token struct {
	ID   int32  `json:"id"`
	Text string `json:"text"`
}

// String is one line for a person.
func (d Divergence) String() string {
	show := func(t *Token) string {
		if t == nil {
			return "the end"
		}
		return fmt.Sprintf("%d %q", t.ID, t.Text)
	}
	of, lead := "its answer", ""
	if d.InPrompt {
		of = "the prompt itself"
	}
	if d.Lead > 0 {
		lead = fmt.Sprintf(", which leads by %.3g", d.Lead)
	}
	return fmt.Sprintf("prompt %s, token %d of %s: expected %s, got %s%s", d.Prompt, d.Position, of, show(d.Expected), show(d.Got), lead)
}

// divergence describes tokens; those below 0 are none.
func (m *Model) divergence(p testPrompt, position int, expected, got int32, lead float64) *Divergence {
	token := func(id int32) *Token {
		if id < 0 {
			return nil
		}
		return &Token{id, m.Token(id)}
	}
	return &Divergence{Prompt: p.Name, Kind: p.Kind, Position: position, Expected: token(expected), Got: token(got), Lead: lead}
}

// Agreement opens both layouts and compares them. Both are in memory at once.
func (m *Model) Agreement(ctx context.Context, t AgreementTest) (a Agreement, err error) {
	var open [2]*Engine
	for i, o := range []Options{t.Reference, t.Tested} {
		if open[i], err = m.Open(ctx, o); err != nil {
			return a, err
		}
		defer func() { err = errors.Join(err, open[i].Close()) }()
	}
	return m.agreement(ctx, open[0], open[1], t.Positions, t.Progress)
}

func (m *Model) agreement(ctx context.Context, reference, tested *Engine, positions int, progress func(done, total int)) (Agreement, error) {
	if positions == 0 {
		positions = answerTokens
	}
	set, err := m.testPrompts()
	if err != nil {
		return Agreement{}, err
	}
	if err := fitting(set, positions, min(reference.Context(), tested.Context())); err != nil {
		return Agreement{}, err
	}
	a, err := reference.NewStream(ctx)
	if err != nil {
		return Agreement{}, err
	}
	defer a.Close()
	b, err := tested.NewStream(ctx)
	if err != nil {
		return Agreement{}, err
	}
	defer b.Close()

	var out Agreement
	tallies := map[string]*agreement.Tally{}
	figures := map[string]*AgreementFigures{}
	var kinds []string
	for i, p := range set {
		f := figures[p.Kind]
		if f == nil {
			f = &AgreementFigures{Kind: p.Kind}
			kinds, figures[p.Kind], tallies[p.Kind] = append(kinds, p.Kind), f, &agreement.Tally{}
		}
		f.Prompts++
		a.s.Return(0)
		b.s.Return(0)
		position := 0
		_, err := agreement.Follow(ctx, &follower{s: a.s}, &follower{s: b.s}, p.Tokens, positions, m.ends, func(x agreement.Position) error {
			tallies[p.Kind].Add(x)
			if !x.Equal() && f.First == nil {
				f.First = m.divergence(p, position, x.Reference, x.Tested, x.Lead)
			}
			position++
			return nil
		})
		if err != nil {
			return Agreement{}, fmt.Errorf("prompt %s: %w", p.Name, err)
		}
		if progress != nil {
			progress(i+1, len(set))
		}
	}
	var all agreement.Tally
	out.All.Kind = "all"
	for _, kind := range kinds {
		f := figures[kind]
		f.fill(*tallies[kind])
		all.Merge(*tallies[kind])
		out.All.Prompts += f.Prompts
		if out.All.First == nil {
			out.All.First = f.First
		}
		out.Kinds = append(out.Kinds, *f)
	}
	out.All.fill(all)
	return out, nil
}

func (f *AgreementFigures) fill(t agreement.Tally) {
	f.Positions, f.NotFinite, f.Top = t.Positions, t.NotFinite, t.TopShare()
	if mean := t.MeanKL(); !math.IsInf(mean, 0) {
		f.MeanKL, f.MaxKL, f.Difference = &mean, &t.MaxKL, &t.Difference
	}
}

// follower is a stream that gives the logits of its last token. It keeps a row,
// because an engine's is valid only during a call.
type follower struct {
	s   *engine.Stream
	row []float32
}

func (f *follower) Next(ctx context.Context, tokens []int32) ([]float32, error) {
	err := f.s.Forward(ctx, tokens, engine.Last, func(_ int, logits []float32) error {
		f.row = append(f.row[:0], logits...)
		return nil
	})
	return f.row, err
}

// answerTokens is the most tokens of an answer to a prompt of the set.
const answerTokens = 64

// testPrompt is a prompt of the fixed set as this model's tokens.
type testPrompt struct {
	prompts.Prompt
	Tokens []int32
}

// testPrompts are the fixed set in the model's chat form, as plain text where
// its template cannot be used, or made-up tokens where it has no vocabulary.
func (m *Model) testPrompts() ([]testPrompt, error) {
	if m.vocab == nil {
		return m.madeUpPrompts(), nil
	}
	var out []testPrompt
	for _, p := range prompts.All() {
		var tokens []int32
		var err error
		if m.chatErr == nil {
			tokens, err = m.Prompt([]Message{{Role: "user", Content: p.Text}})
		} else {
			tokens, err = m.Tokenize(p.Text, false, true)
		}
		if err != nil {
			return nil, fmt.Errorf("prompt %s: %w", p.Name, err)
		}
		out = append(out, testPrompt{p, tokens})
	}
	return out, nil
}

// madeUpPrompts are tokens by a fixed rule.
func (m *Model) madeUpPrompts() []testPrompt {
	var out []testPrompt
	for i := range 8 {
		tokens := make([]int32, 8+5*i)
		for p := range tokens {
			tokens[p] = int32((p*p*31 + p*97 + i*53 + 7) % m.model.Vocab)
		}
		out = append(out, testPrompt{prompts.Prompt{Kind: "ids", Name: fmt.Sprintf("ids-%d", i+1)}, tokens})
	}
	return out
}

// ends reports whether a token ends the model's turn.
func (m *Model) ends(id int32) bool { return m.vocab != nil && m.vocab.EndOfGeneration(id) }

// fitting refuses prompts whose answers do not fit into a context.
func fitting(set []testPrompt, answer, context int) error {
	longest := slices.MaxFunc(set, func(a, b testPrompt) int { return len(a.Tokens) - len(b.Tokens) })
	if need := len(longest.Tokens) + answer; need > context {
		return fmt.Errorf("prompt %s has %d tokens and its answer up to %d, but the context has room for %d; give --ctx %d or more",
			longest.Name, len(longest.Tokens), answer, context, need)
	}
	return nil
}
