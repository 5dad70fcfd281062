package spike

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/tandemrun/tandem/engine"
	"github.com/tandemrun/tandem/plan"
	"github.com/tandemrun/tandem/trace"
)

// A Prefill is what a prompt takes on one unit, and flowing in blocks through
// chunks on several.
type Prefill struct {
	Tokens int `json:"tokens"` // of the prompt
	Block  int `json:"block"`  // of the prompt in blocks
	// Results are empty, and Why says the reason, if there is nothing to pipeline.
	Results []PrefillResult `json:"results"`
	Why     string          `json:"why,omitempty"`
}

// A PrefillResult is one way to evaluate the prompt.
type PrefillResult struct {
	Role        string  `json:"role"` // serial, pipelined, single
	Placement   string  `json:"placement"`
	Block       int     `json:"block"`
	PredictedMS float64 `json:"predicted_ms"`
	MeasuredMS  float64 `json:"measured_ms"`
	Predicted   float64 `json:"predicted_tok_s"`
	Measured    float64 `json:"measured_tok_s"`
	Overlap     float64 `json:"realised_overlap"`
	LogitsEqual bool    `json:"logits_equal"` // of the last position, with the serial ones
	Trials      int     `json:"trials"`
	Kept        int     `json:"kept"`

	place []string // where the prompt is evaluated
	runs  []prefillRun
	line  *trace.Timeline // of the median run
}

type prefillRun struct {
	ms, overlap float64
	predicted   float64 // milliseconds
	bits        uint32
	quiet       bool
	line        *trace.Timeline
	records     []engine.Record
}

// Roles of a prompt's evaluation.
const (
	roleSerial    = "serial"
	rolePipelined = "pipelined"
)

// prefill predicts and measures a prompt on the base placement, on the fastest
// other unit, and flowing through two units.
func (s *session) prefill(ctx context.Context) error {
	p := &s.r.Prefill
	all := []*PrefillResult{{Role: roleSerial, place: s.o.Base, Block: p.Tokens}}
	if s.known {
		all[0].Block = p.Block // a profile's rows take as long in any block
	}
	if other := s.single(); other != "" {
		all = append(all, &PrefillResult{Role: roleSingle, place: slices.Repeat([]string{other}, len(s.o.Base)), Block: all[0].Block})
	}
	place := s.o.Prefill
	if place == nil {
		var err error
		if place, err = s.pipeline(); err != nil {
			return err
		}
	}
	if place == nil {
		p.Why = "no two units can share the chunks that compute all rows of a prompt"
	} else {
		all = append(all, &PrefillResult{Role: rolePipelined, place: place, Block: p.Block})
		if err := s.prefillContention(ctx, place); err != nil {
			return err
		}
	}
	for _, r := range all {
		r.Placement = Placement(r.place)
	}
	for t := range s.o.Trials {
		for _, r := range all {
			s.stage("prompt of %d tokens, turn %d of %d: %s, %s", p.Tokens, t+1, s.o.Trials, r.Role, r.Placement)
			is, err := s.nowPrompt(ctx, r)
			if err != nil {
				return fmt.Errorf("a prompt on %s: %w", r.Placement, err)
			}
			predicted, err := s.predictPrefill(is.costs, r.place, r.Block)
			if err != nil {
				return err
			}
			s.raw.add(Line{Kind: "prediction", What: "prefill", Placement: r.Placement, Rows: p.Tokens, Block: r.Block, Trial: number(t), MS: &predicted, Kept: &is.quiet})
			one, err := s.prompt(ctx, r)
			if err != nil {
				return fmt.Errorf("a prompt on %s: %w", r.Placement, err)
			}
			one.predicted, one.quiet = predicted, one.quiet && is.quiet
			r.runs = append(r.runs, one)
			s.raw.add(Line{Kind: "prefill", Placement: r.Placement, Rows: p.Tokens, Block: r.Block, Trial: number(t), MS: &one.ms, Overlap: &one.overlap, Kept: &one.quiet})
		}
	}
	for _, r := range all {
		r.finish(p.Tokens, all[0].runs[0].bits)
		p.Results = append(p.Results, *r)
		if r.Role == rolePipelined {
			line := r.line
			line.Name = fmt.Sprintf("prompt of %d tokens in blocks of %d, %s", p.Tokens, r.Block, r.Placement)
			s.r.Timelines = append(s.r.Timelines, line)
		}
	}
	return nil
}

// predictPrefill predicts what the prompt takes, in milliseconds.
func (s *session) predictPrefill(c *plan.Costs, place []string, block int) (float64, error) {
	p, err := plan.Predict(c, plan.Schedule{Placement: place, Block: block}, plan.Work{Streams: 1, Prompt: s.r.Prefill.Tokens, Tokens: 1})
	if err != nil {
		return 0, fmt.Errorf("predicting a prompt on %s: %w", Placement(place), err)
	}
	return ms(p.TTFT), nil
}

// pipeline finds the placement on which blocks of a prompt are predicted to flow
// fastest through at least two of the units of the base and the moved placement.
// It is nil if there is none.
func (s *session) pipeline() ([]string, error) {
	var units []string
	for _, u := range slices.Concat(s.o.Base, s.o.Moved) {
		if !slices.Contains(units, u) {
			units = append(units, u)
		}
	}
	var best []string
	var least float64
	place := slices.Clone(s.o.Moved)
	var search func(i int) error
	search = func(i int) error {
		if i < len(place) && s.costs.Chunks[i].WantedOnly {
			return search(i + 1)
		}
		if i < len(place) {
			for _, u := range units {
				if _, ok := s.costs.Chunks[i].On[u]; !ok {
					continue
				}
				place[i] = u
				if err := search(i + 1); err != nil {
					return err
				}
			}
			return nil
		}
		used := map[string]bool{}
		for k, u := range place {
			used[u] = used[u] || !s.costs.Chunks[k].WantedOnly
		}
		two := 0
		for _, at := range used {
			if at {
				two++
			}
		}
		if two < 2 {
			return nil
		}
		took, err := s.predictPrefill(s.costs, place, s.r.Prefill.Block)
		if err != nil {
			return err
		}
		if best == nil || took < least {
			best, least = slices.Clone(place), took
		}
		return nil
	}
	return best, search(0)
}

// prefillContention measures how the units of a placement slow each other with
// blocks of a prompt.
func (s *session) prefillContention(ctx context.Context, place []string) error {
	if s.known {
		return nil
	}
	x, err := s.rigs.getFor(ctx, s.o.Moved, place, s.r.Prefill.Block)
	if err != nil {
		return err
	}
	units := distinct(place)
	for i, a := range units {
		for _, b := range units[i+1:] {
			s.stage("how %s and %s slow each other in a prompt", a, b)
			if err := s.contention(ctx, x, a, b, s.r.Prefill.Block); err != nil {
				return fmt.Errorf("contention of %s and %s: %w", a, b, err)
			}
		}
	}
	return nil
}

// prompt evaluates the prompt once.
func (s *session) prompt(ctx context.Context, r *PrefillResult) (prefillRun, error) {
	var one prefillRun
	block := longestPrompt // engines for decoding have blocks of that, and the prompt is not longer
	if r.Block < s.r.Prefill.Tokens {
		block = r.Block
	}
	decode := r.place
	if r.Role == rolePipelined {
		decode = s.o.Moved // the prompt has a placement of its own
	}
	x, err := s.rigs.getFor(ctx, decode, r.place, block)
	if err != nil {
		return one, err
	}
	st, err := x.e.Stream(ctx)
	if err != nil {
		return one, err
	}
	defer st.Close()
	x.record.Reset()
	alone, done, begin := s.alone(), s.watch(), x.e.Now()
	if err := s.lab.Host(ctx); err != nil {
		return one, err
	}
	err = st.Forward(ctx, s.promptOf(s.r.Prefill.Tokens), engine.Last, func(_ int, logits []float32) error {
		one.bits = checksum(logits)
		return nil
	})
	if err != nil {
		return one, err
	}
	took := x.e.Now().Sub(begin)
	one.ms = ms(took)
	_, one.quiet = done(took)
	one.quiet = one.quiet && alone(took)
	one.records = x.record.Records()
	if one.line, err = x.timeline(""); err != nil {
		return one, err
	}
	one.overlap, _ = one.line.Overlap()
	return one, nil
}

// finish takes the medians of the runs kept.
func (r *PrefillResult) finish(tokens int, bits uint32) {
	r.LogitsEqual = true
	for _, one := range r.runs {
		r.LogitsEqual = r.LogitsEqual && one.bits == bits
	}
	kept := slices.DeleteFunc(slices.Clone(r.runs), func(x prefillRun) bool { return !x.quiet })
	r.Trials, r.Kept = len(r.runs), len(kept)
	if r.Kept == 0 {
		kept = slices.Clone(r.runs)
	}
	var took, predicted, overlap []float64
	for _, x := range kept {
		took, predicted, overlap = append(took, x.ms), append(predicted, x.predicted), append(overlap, x.overlap)
	}
	r.MeasuredMS, r.PredictedMS, r.Overlap = median(took), median(predicted), median(overlap)
	slices.SortStableFunc(kept, func(a, b prefillRun) int { return cmp.Compare(a.ms, b.ms) })
	r.line = kept[(len(kept)-1)/2].line
	r.Measured, r.Predicted = float64(tokens)/r.MeasuredMS*1e3, float64(tokens)/r.PredictedMS*1e3
}
