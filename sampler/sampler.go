// Package sampler chooses the next token from a row of logits.
//
// The steps are applied in one fixed order: repetition penalty, temperature,
// top-k, top-p, min-p, then a draw. Temperature 0 takes the largest logit, the
// lowest id on ties, whatever the other settings but the penalty are. The same
// seed and the same logits give the same tokens on every machine.
//
// A Sampler is used by one goroutine at a time.
package sampler

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Options are the settings of a Sampler. The zero value is greedy.
type Options struct {
	Temperature float64 // 0 is greedy
	TopK        int     // keep the k most likely tokens; 0 keeps all
	TopP        float64 // keep the most likely tokens whose sum reaches p (Holtzman et al. 2019); 0 or 1 keeps all
	MinP        float64 // keep tokens at least p times as likely as the most likely one (Nguyen et al. 2024); 0 keeps all
	Repeat      float64 // divide positive logits of recent tokens by it, multiply negative ones (Keskar et al. 2019); 0 or 1 is off
	RepeatLast  int     // how many recent tokens that concerns; 0 means 64
	Seed        uint64
}

// Check reports a setting that is out of range by the name it has on the
// command line.
func (o Options) Check() error {
	switch {
	case !(o.Temperature >= 0) || math.IsInf(o.Temperature, 0):
		return fmt.Errorf("--temp %g: it must be 0 or more", o.Temperature)
	case o.TopK < 0:
		return fmt.Errorf("--top-k %d: it must be 0 or more", o.TopK)
	case !(o.TopP >= 0 && o.TopP <= 1):
		return fmt.Errorf("--top-p %g: it must be between 0 and 1", o.TopP)
	case !(o.MinP >= 0 && o.MinP <= 1):
		return fmt.Errorf("--min-p %g: it must be between 0 and 1", o.MinP)
	case !(o.Repeat >= 0) || math.IsInf(o.Repeat, 0):
		return fmt.Errorf("--repeat-penalty %g: it must be 0 or more", o.Repeat)
	case o.RepeatLast < 0:
		return fmt.Errorf("--repeat-last %d: it must be 0 or more", o.RepeatLast)
	}
	return nil
}

// Sampler picks tokens. It remembers recent ones for the repetition penalty.
type Sampler struct {
	o      Options
	rng    *rand.Rand
	recent []int32
	cand   []candidate
}

type candidate struct {
	id int32
	p  float64 // probability up to a factor
}

// New makes a Sampler.
func New(o Options) *Sampler {
	if o.RepeatLast == 0 {
		o.RepeatLast = 64
	}
	return &Sampler{o: o, rng: rand.New(rand.NewPCG(o.Seed, o.Seed^0x9e3779b97f4a7c15))}
}

// Pick chooses a token and remembers it. It changes logits.
func (s *Sampler) Pick(logits []float32) int32 {
	s.penalise(logits)
	id := s.pick(logits)
	s.recent = append(s.recent, id)
	if len(s.recent) > s.o.RepeatLast {
		s.recent = slices.Delete(s.recent, 0, len(s.recent)-s.o.RepeatLast)
	}
	return id
}

func (s *Sampler) penalise(logits []float32) {
	r := float32(s.o.Repeat)
	if r == 0 || r == 1 {
		return
	}
	for i, id := range s.recent {
		if slices.Contains(s.recent[:i], id) || int(id) >= len(logits) {
			continue
		}
		if logits[id] > 0 {
			logits[id] /= r
		} else {
			logits[id] *= r
		}
	}
}

func (s *Sampler) pick(logits []float32) int32 {
	best := Best(logits)
	if s.o.Temperature == 0 || !(logits[best] > float32(math.Inf(-1))) {
		return best
	}
	// Probabilities up to a factor: that of the most likely token is 1.
	p := func(x float32) float64 { return math.Exp((float64(x) - float64(logits[best])) / s.o.Temperature) }
	switch {
	case s.o.TopK > 0 && s.o.TopK < len(logits):
		s.rank(logits, p, func(ranked []candidate) bool { return len(ranked) >= s.o.TopK })
		s.cand = s.cand[:min(len(s.cand), s.o.TopK)]
		s.cutTopP(total(s.cand))
	case s.o.TopP > 0 && s.o.TopP < 1:
		var sum float64
		for _, x := range logits {
			if x == x {
				sum += p(x)
			}
		}
		s.rank(logits, p, func(ranked []candidate) bool { return total(ranked) >= s.o.TopP*sum })
		s.cutTopP(sum)
	default:
		s.cand = s.cand[:0]
		for id, x := range logits {
			if x == x { // a NaN is never a candidate
				s.cand = append(s.cand, candidate{int32(id), p(x)})
			}
		}
	}
	if s.o.MinP > 0 {
		s.cand = slices.DeleteFunc(s.cand, func(c candidate) bool { return c.p < s.o.MinP })
	}
	draw := s.rng.Float64() * total(s.cand)
	for _, c := range s.cand {
		if draw -= c.p; draw < 0 {
			return c.id
		}
	}
	return s.cand[len(s.cand)-1].id
}

// rank makes candidates of the most likely tokens, in order, as many as are
// enough. Of a large vocabulary only few are worth sorting.
func (s *Sampler) rank(logits []float32, p func(float32) float64, enough func([]candidate) bool) {
	for least := 1e-3; ; least *= least {
		s.cand = s.cand[:0]
		all := true
		for id, x := range logits {
			if x != x {
				continue
			}
			if q := p(x); q >= least {
				s.cand = append(s.cand, candidate{int32(id), q})
			} else {
				all = false
			}
		}
		slices.SortFunc(s.cand, func(a, b candidate) int {
			return cmp.Or(cmp.Compare(b.p, a.p), cmp.Compare(a.id, b.id))
		})
		if all || enough(s.cand) {
			return
		}
	}
}

// cutTopP keeps the most likely candidates up to a share of sum.
func (s *Sampler) cutTopP(sum float64) {
	if s.o.TopP <= 0 || s.o.TopP >= 1 {
		return
	}
	var kept float64
	for i, c := range s.cand {
		if kept += c.p; kept >= s.o.TopP*sum {
			s.cand = s.cand[:i+1]
			return
		}
	}
}

func total(cand []candidate) float64 {
	var sum float64
	for _, c := range cand {
		sum += c.p
	}
	return sum
}

// Best is the id of the largest logit, the lowest on ties. NaNs are passed
// over.
func Best(logits []float32) int32 {
	best, at := float32(math.Inf(-1)), 0
	for i, x := range logits {
		if x > best {
			best, at = x, i
		}
	}
	return int32(at)
}
