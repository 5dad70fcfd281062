// Package agreement measures how far two computations of the same positions
// are apart: the logits of one unit and those of another, of one type of KV
// cache and another.
//
// [Compare] measures one position, a [Tally] adds up positions, and [Follow]
// lets one computation answer a prompt and has the other evaluate the same
// tokens beside it, so that both see the same text at every position. Nothing is
// kept but one row of logits of each. [Diverge] finds where two texts part.
//
// All sums are in float64. The Kullback-Leibler divergence is that of the
// reference's distribution p from the tested one's q, in nats:
//
//	KL(p‖q) = Σ p (ln p - ln q) = Σ p (a - b) + ln Σ e^b - ln Σ e^a
//
// with a and b the logits (Kullback and Leibler 1951). It is 0 where both give
// each token the same probability, whatever constant their logits differ by.
//
// A logit that is not a number or infinite agrees with nothing: such a position
// has an infinite KL and no best token.
//
// The package knows no model and no unit. Its functions may be called from
// several goroutines; a Tally is used by one at a time.
package agreement

import (
	"context"
	"errors"
	"fmt"
	"math"
)

// NoToken is the best token of a row with a logit that is not finite.
const NoToken = -1

// A Position is what two rows of logits for one position are to each other.
type Position struct {
	KL         float64 // of the tested row from the reference's; at least 0, +Inf if a logit is not finite
	Difference float64 // largest difference of two logits of one token; +Inf likewise
	// Reference and Tested are the most likely tokens; of equal logits the lower
	// id.
	Reference, Tested int32
	// Lead is by how much the tested row's own best token leads in it before the
	// reference's: little at a near tie, 0 where they are equal or not finite.
	Lead float64
}

// Equal reports whether both have the same most likely token.
func (p Position) Equal() bool { return p.Reference == p.Tested && p.Reference != NoToken }

// Compare compares two rows of logits of the same length, at least 1.
func Compare(reference, tested []float32) Position {
	tested = tested[:len(reference)]
	p := Position{Reference: Best(reference), Tested: Best(tested)}
	if p.Reference == NoToken || p.Tested == NoToken {
		p.KL, p.Difference = math.Inf(1), math.Inf(1)
		return p
	}
	a0, b0 := float64(reference[p.Reference]), float64(tested[p.Tested])
	p.Lead = b0 - float64(tested[p.Reference])
	var ea, eb, apart float64 // Σ e^(a-a0), Σ e^(b-b0), Σ e^(a-a0) (a-b)
	for i, x := range reference {
		a, b := float64(x), float64(tested[i])
		d := a - b
		e := math.Exp(a - a0)
		ea += e
		eb += math.Exp(b - b0)
		apart += e * d
		p.Difference = max(p.Difference, math.Abs(d))
	}
	// Rounding may leave a little less than nothing.
	p.KL = max(0, apart/ea+(b0+math.Log(eb))-(a0+math.Log(ea)))
	return p
}

// Best is the token with the highest logit, of equal ones the lowest, or
// [NoToken] if there is none or a logit is not finite.
func Best(logits []float32) int32 {
	best := int32(NoToken)
	for i, x := range logits {
		if x-x != 0 { // a NaN or an infinity
			return NoToken
		}
		if best == NoToken || x > logits[best] {
			best = int32(i)
		}
	}
	return best
}

// LogProb is the natural logarithm of the probability of a token; NaN if a
// logit is not finite.
func LogProb(logits []float32, token int32) float64 {
	best := Best(logits)
	if best == NoToken {
		return math.NaN()
	}
	top := float64(logits[best])
	var sum float64
	for _, x := range logits {
		sum += math.Exp(float64(x) - top)
	}
	return float64(logits[token]) - top - math.Log(sum)
}

// A Tally adds up positions. Its zero value is empty.
type Tally struct {
	Positions int
	Same      int // positions with the same most likely token
	NotFinite int // positions with a logit that is not finite
	// The sums are over the other positions.
	SumKL, MaxKL, Difference float64
}

// Add adds a position.
func (t *Tally) Add(p Position) {
	t.Positions++
	if p.Equal() {
		t.Same++
	}
	if math.IsInf(p.KL, 0) {
		t.NotFinite++
		return
	}
	t.SumKL += p.KL
	t.MaxKL = max(t.MaxKL, p.KL)
	t.Difference = max(t.Difference, p.Difference)
}

// Merge adds the positions of another tally.
func (t *Tally) Merge(o Tally) {
	t.Positions += o.Positions
	t.Same += o.Same
	t.NotFinite += o.NotFinite
	t.SumKL += o.SumKL
	t.MaxKL = max(t.MaxKL, o.MaxKL)
	t.Difference = max(t.Difference, o.Difference)
}

// TopShare is the share of positions with the same most likely token; 0 of no
// positions.
func (t Tally) TopShare() float64 {
	if t.Positions == 0 {
		return 0
	}
	return float64(t.Same) / float64(t.Positions)
}

// MeanKL is the mean over all positions: +Inf if a logit was not finite, 0 of
// no positions.
func (t Tally) MeanKL() float64 {
	switch {
	case t.NotFinite > 0:
		return math.Inf(1)
	case t.Positions == 0:
		return 0
	}
	return t.SumKL / float64(t.Positions)
}

// A Stream evaluates a text token by token.
type Stream interface {
	// Next evaluates tokens behind those before and returns the logits of the
	// last one. They are valid until the next call.
	Next(ctx context.Context, tokens []int32) ([]float32, error)
}

// Follow lets the reference answer a prompt greedily, and the tested stream
// evaluate the same tokens. It calls each with what they are to each other at
// the prompt's last position and behind each token of the answer, until end is
// true of the reference's choice, or limit positions were compared. It returns
// the reference's choices, that which ended it included: one for each position.
//
// Both streams are empty before. The reference runs first at each position, so
// streams that share cores do not disturb each other.
func Follow(ctx context.Context, reference, tested Stream, prompt []int32, limit int, end func(int32) bool, each func(Position) error) ([]int32, error) {
	if len(prompt) == 0 || limit < 1 {
		return nil, fmt.Errorf("comparing %d positions behind a prompt of %d tokens", limit, len(prompt))
	}
	var answer []int32
	for next := prompt; ; next = answer[len(answer)-1:] {
		a, err := reference.Next(ctx, next)
		if err != nil {
			return answer, fmt.Errorf("the reference, position %d of the answer: %w", len(answer), err)
		}
		b, err := tested.Next(ctx, next)
		if err != nil {
			return answer, fmt.Errorf("position %d of the answer: %w", len(answer), err)
		}
		if len(a) == 0 || len(a) != len(b) {
			return answer, fmt.Errorf("rows of %d and %d logits cannot be compared", len(a), len(b))
		}
		p := Compare(a, b)
		if p.Reference == NoToken {
			return answer, fmt.Errorf("position %d of the answer: %w", len(answer), ErrReference)
		}
		if err := each(p); err != nil {
			return answer, err
		}
		answer = append(answer, p.Reference)
		if len(answer) == limit || end(p.Reference) {
			return answer, nil
		}
	}
}

// ErrReference is the error of a reference that gives no numbers.
var ErrReference = errors.New("the reference has a logit that is not a finite number")

// Diverge is the first index at which two texts differ, or -1 if they are
// equal. A text that is the beginning of the other one differs behind its end.
func Diverge(want, got []int32) int {
	n := min(len(want), len(got))
	for i := range n {
		if want[i] != got[i] {
			return i
		}
	}
	if len(want) != len(got) {
		return n
	}
	return -1
}
