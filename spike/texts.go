package spike

import (
	"context"
	"slices"
)

// A TextResult is whether a schedule gave the same tokens on the model that has
// something to say.
type TextResult struct {
	Placement   string      `json:"placement"`
	Streams     int         `json:"streams"`
	Merge       int         `json:"merge"`
	TokensEqual bool        `json:"tokens_equal"`
	LogitsEqual bool        `json:"logits_equal"`
	Divergence  *Divergence `json:"first_divergence"`
	Runs        int         `json:"runs"`
}

// An Answer is what a single stream on the base placement said.
type Answer struct {
	Category string `json:"category"`
	Prompt   string `json:"prompt"`
	Text     string `json:"text"`
}

// Texts are the comparison of tokens on a model that has something to say.
type Texts struct {
	Model   string       `json:"model"`
	Results []TextResult `json:"results"`
	Answers []Answer     `json:"answers"`
}

// texts decodes by all schedules on the lab of Options.Texts, once for each
// prompt. Its times are of no interest.
func (s *session) texts(ctx context.Context) (err error) {
	rigs := s.engines(s.o.Texts)
	defer func() {
		if e := rigs.close(); err == nil {
			err = e
		}
	}()
	all := s.schedules()
	want, err := s.turns(ctx, &rigs, all, len(rigs.lab.Prompts()))
	if err != nil {
		return err
	}
	s.r.Texts = &Texts{Model: rigs.lab.Name(), Answers: answers(rigs.lab, want)}
	for _, r := range all {
		r.compare(rigs.lab, want)
		s.r.Texts.Results = append(s.r.Texts.Results, TextResult{r.Placement, r.Streams, r.Merge, r.TokensEqual, r.LogitsEqual, r.Divergence, len(r.runs)})
	}
	return nil
}

// answers are the texts of tokens, one for each prompt; none without a
// vocabulary.
func answers(l Lab, want [][]mark) []Answer {
	var out []Answer
	for i, p := range l.Prompts() {
		var ids []int32
		for _, m := range want[i] {
			ids = append(ids, m.token)
		}
		if text := l.Text(ids); text != "" {
			out = append(out, Answer{p.Category, p.Name, text})
		}
	}
	return slices.Clip(out)
}
