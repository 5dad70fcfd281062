// Package perplexity holds the arithmetic of a text's perplexity: which tokens
// are scored, and the estimate with its uncertainty. It knows no model.
//
// The procedure is that of llama.cpp's perplexity tool by default. The tokens
// are cut into windows of equal length that do not overlap; what is left behind
// the last whole window is not used. Each window is evaluated on its own, with
// the token of the beginning in place of its first where the model's tokenizer
// adds one. A window's second half is scored, so that every scored token has at
// least half a window before it: with a window of n tokens, the logits at
// positions [n/2, n-1) give the probability of the token behind each.
//
// With l = -ln p of each of N scored tokens, the perplexity is exp(mean l), and
// its standard error exp(mean l) · sqrt(var l / (N - 1)), var being the mean
// square less the square of the mean. It takes scored tokens for independent, so
// it says how much another part of the same kind of text would differ, and
// nothing about differences of two models on one text, which are far surer.
package perplexity

import (
	"fmt"
	"math"
	"slices"
)

// DefaultWindow is the length of a window.
const DefaultWindow = 512

// MinWindow is the least that has a scored token.
const MinWindow = 3

// A Window is tokens to be evaluated from an empty context. The logits at
// positions [First, len(Tokens)-1) are scored, each by the token behind.
type Window struct {
	Tokens []int32
	First  int
}

// Scored is how many tokens a window scores.
func (w Window) Scored() int { return len(w.Tokens) - 1 - w.First }

// Windows cuts tokens into windows of a length. With a bos that is not negative
// each begins with it, in place of its own first token.
func Windows(tokens []int32, length int, bos int32) ([]Window, error) {
	if length < MinWindow {
		return nil, fmt.Errorf("a window of %d tokens; it must have at least %d", length, MinWindow)
	}
	if len(tokens) < length {
		return nil, fmt.Errorf("the text has %d tokens, fewer than a window of %d; give a longer text or a smaller --ctx", len(tokens), length)
	}
	var out []Window
	for ; len(tokens) >= length; tokens = tokens[length:] {
		w := Window{slices.Clone(tokens[:length]), length / 2}
		if bos >= 0 {
			w.Tokens[0] = bos
		}
		out = append(out, w)
	}
	return out, nil
}

// An Estimate adds up scored tokens. Its zero value is empty.
type Estimate struct {
	n            int
	sum, squares float64
}

// Add adds -ln p of a token.
func (e *Estimate) Add(l float64) {
	e.n++
	e.sum += l
	e.squares += l * l
}

// Scored is how many tokens were added.
func (e Estimate) Scored() int { return e.n }

// Mean is the mean of -ln p; NaN of nothing.
func (e Estimate) Mean() float64 { return e.sum / float64(e.n) }

// Perplexity is exp of the mean; NaN of nothing.
func (e Estimate) Perplexity() float64 { return math.Exp(e.Mean()) }

// Error is the standard error of the perplexity; 0 of fewer than two tokens.
func (e Estimate) Error() float64 {
	if e.n < 2 {
		return 0
	}
	n, mean := float64(e.n), e.Mean()
	return math.Exp(mean) * math.Sqrt(max(0, e.squares/n-mean*mean)/(n-1))
}
