package tandem

import (
	"context"
	"strings"
	"time"

	"github.com/tandemrun/tandem/engine"
	"github.com/tandemrun/tandem/sampler"
	"github.com/tandemrun/tandem/tokenizer"
)

type (
	// Sampling says how tokens are chosen. The zero value is greedy.
	Sampling = sampler.Options
	// EndReason says why a generation ended.
	EndReason = engine.EndReason
)

// Why a generation ended.
const (
	EndOfTurn  = engine.EndOfTurn  // the model ended its turn or the text
	EndLength  = engine.EndLength  // as many tokens as asked for
	EndContext = engine.EndContext // no position left
	EndStop    = engine.EndStop    // a stop string, or the caller
	EndCancel  = engine.EndCancel  // the context was cancelled
)

// ErrContext is the error of a prompt that does not fit into the context.
var ErrContext = engine.ErrContext

// A Generation says how to go on from a prompt. The zero value is greedy until
// the turn ends or the context is full.
type Generation struct {
	MaxTokens int      // most new tokens; 0 is as many as fit
	Stop      []string // the text ends before the first of these
	Sampling  Sampling
	// Emit, if not nil, is called with each piece of new text and the tokens it
	// took, in order. A piece holds only whole characters and may be empty.
	// False ends the generation.
	Emit func(Piece) bool
}

// A Piece is what one new token added.
type Piece struct {
	Text  string
	Token int32
	Took  time.Duration // since the token before, or since the begin
	// Records are the tasks that made the token, valid during the call.
	Records []Record
}

// A Result is what a generation did.
type Result struct {
	PromptTokens int     // tokens of the prompt
	Reused       int     // of them, found in the caches
	Tokens       []int32 // new tokens, without the one that ended the turn
	Text         string  // their text, up to a stop string
	End          EndReason
	Prefill      time.Duration   // to the first token (TTFT)
	Decode       time.Duration   // after it
	Took         []time.Duration // by token: TTFT, then ITLs
}

// PrefillRate is prompt tokens evaluated a second.
func (r Result) PrefillRate() float64 { return rate(r.PromptTokens-r.Reused, r.Prefill) }

// DecodeRate is tokens after the first a second; 0 if there was none.
func (r Result) DecodeRate() float64 { return rate(len(r.Tokens)-1, r.Decode) }

func rate(n int, d time.Duration) float64 {
	if n <= 0 || d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}

// A Stream is one sequence. Its caches keep what was evaluated, so a prompt
// that begins like what came before is evaluated only from where it differs.
type Stream struct {
	m *Model
	s *engine.Stream
}

// Close gives the stream's place back.
func (s *Stream) Close() { s.s.Close() }

// Chat renders a conversation and generates the next turn.
func (s *Stream) Chat(ctx context.Context, messages []Message, g Generation) (Result, error) {
	prompt, err := s.m.Prompt(messages)
	if err != nil {
		return Result{}, err
	}
	return s.Generate(ctx, prompt, g)
}

// Generate goes on from a prompt of tokens. Of a file without a vocabulary the
// result has no text. After an error the result holds what was generated.
func (s *Stream) Generate(ctx context.Context, prompt []int32, g Generation) (Result, error) {
	if err := g.Sampling.Check(); err != nil {
		return Result{}, err
	}
	w := &writer{stop: g.Stop, emit: g.Emit}
	end := func(int32) bool { return false }
	if v := s.m.vocab; v != nil {
		w.decoder = v.Decoder(false)
		end = v.EndOfGeneration
	}
	r, err := s.s.Generate(ctx, engine.Generation{
		Prompt: prompt, Max: g.MaxTokens, Picker: sampler.New(g.Sampling), End: end,
	}, w.token)
	w.flush()
	return Result{
		PromptTokens: r.PromptTokens, Reused: r.Reused, Tokens: r.Tokens, Text: w.text.String(), End: r.End,
		Prefill: r.Prefill, Decode: r.Decode, Took: r.Took,
	}, err
}

// Logits evaluates tokens from the beginning of the sequence and calls each
// with the logits of the last position, or of all of them in order. The slice
// is valid during the call.
func (s *Stream) Logits(ctx context.Context, tokens []int32, all bool, each func(pos int, logits []float32) error) error {
	want := engine.Last
	if all {
		want = engine.Every
	}
	s.s.Return(0)
	return s.s.Forward(ctx, tokens, want, each)
}

// writer turns tokens into text and holds back what may be the beginning of a
// stop string.
type writer struct {
	decoder *tokenizer.Decoder
	stop    []string
	emit    func(Piece) bool
	held    string
	text    strings.Builder
	stopped bool
}

func (w *writer) token(t engine.Token) bool {
	out := ""
	if w.decoder != nil {
		out = w.release(w.decoder.Write(t.ID))
	}
	w.text.WriteString(out)
	if w.emit != nil && !w.emit(Piece{out, t.ID, t.Took, t.Records}) {
		w.stopped = true
	}
	return !w.stopped
}

// release adds new text to what is held back and returns what can be shown.
func (w *writer) release(text string) string {
	w.held += text
	keep := 0
	for _, stop := range w.stop {
		if stop == "" {
			continue
		}
		if i := strings.Index(w.held, stop); i >= 0 {
			w.held, w.stopped = w.held[:i], true
		}
		for n := min(len(stop)-1, len(w.held)); n > keep; n-- {
			if strings.HasSuffix(w.held, stop[:n]) {
				keep = n
			}
		}
	}
	if w.stopped {
		keep = 0
	}
	out := w.held[:len(w.held)-keep]
	w.held = w.held[len(out):]
	return out
}

// flush shows what is held back when no more tokens come.
func (w *writer) flush() {
	if w.stopped {
		return
	}
	out := w.held
	if w.decoder != nil {
		out += w.decoder.Flush()
	}
	w.held = ""
	if out == "" {
		return
	}
	w.text.WriteString(out)
	if w.emit != nil {
		w.emit(Piece{Text: out, Token: -1})
	}
}
