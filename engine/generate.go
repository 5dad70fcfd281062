package engine

import (
	"context"
	"errors"
	"time"
)

// EndReason says why a generation ended.
type EndReason string

const (
	EndOfTurn  EndReason = "end_of_turn"  // the model ended its turn or the text
	EndLength  EndReason = "max_tokens"   // as many tokens as asked for
	EndContext EndReason = "context_full" // no position left
	EndStop    EndReason = "stop"         // the caller saw enough, such as a stop string
	EndCancel  EndReason = "cancelled"    // the context was cancelled
)

// A Picker chooses the next token from a row of logits, which it may change.
type Picker interface {
	Pick(logits []float32) int32
}

// Generation says what to generate.
type Generation struct {
	Prompt []int32
	Max    int              // most new tokens; 0 means until something else ends it
	Picker Picker           // see package sampler
	End    func(int32) bool // tokens that end the turn; they are not emitted
}

// A Token is a new token and what it took.
type Token struct {
	ID   int32
	Took time.Duration // since the token before, or since the begin of Generate
	// Records are the tasks of the step that made its logits, valid until the
	// next step.
	Records []Record
}

// Result is what a generation did.
type Result struct {
	PromptTokens int
	Reused       int // of them, found in the caches
	Tokens       []int32
	End          EndReason
	EndToken     int32 // the token that ended the turn; -1 if none did
	Prefill      time.Duration
	Decode       time.Duration   // after the first token
	Took         []time.Duration // by token: the first is the TTFT, the others ITLs
}

// Generate evaluates the prompt, reusing what the caches have of it, and then
// one token after the other, calling emit with each until emit returns false.
// A prompt that does not fit is an error ([ErrContext]). A cancelled context
// ends it with EndCancel and the context's error; the result is valid then.
func (s *Stream) Generate(ctx context.Context, g Generation, emit func(Token) bool) (Result, error) {
	r := Result{PromptTokens: len(g.Prompt), EndToken: -1}
	if len(g.Prompt) == 0 {
		return r, errors.New("the prompt has no tokens")
	}
	if len(g.Prompt) > s.e.cfg.Context {
		s.Return(0)
		return r, s.Forward(ctx, g.Prompt, None, nil)
	}
	start := s.e.clock.Now()
	r.Reused = s.Reuse(g.Prompt)
	next := g.Prompt[r.Reused:]
	mark := start
	for {
		var id int32
		err := s.Forward(ctx, next, Last, func(_ int, logits []float32) error {
			id = g.Picker.Pick(logits)
			return nil
		})
		t := s.e.clock.Now()
		if len(r.Tokens) == 0 {
			r.Prefill = t.Sub(start)
		} else {
			r.Decode = t.Sub(start) - r.Prefill
		}
		switch {
		case errors.Is(err, ErrContext):
			r.End = EndContext
			return r, nil
		case err != nil:
			if ctx.Err() != nil {
				r.End = EndCancel
			}
			return r, err
		case g.End != nil && g.End(id):
			r.End, r.EndToken = EndOfTurn, id
			return r, nil
		}
		r.Tokens = append(r.Tokens, id)
		r.Took = append(r.Took, t.Sub(mark))
		if !emit(Token{id, t.Sub(mark), s.recent}) {
			r.End = EndStop
			return r, nil
		}
		mark = t
		if len(r.Tokens) == g.Max {
			r.End = EndLength
			return r, nil
		}
		next = []int32{id}
	}
}
