package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// A Stream is one sequence: its tokens so far and its slot in every chunk's
// cache. It is used by one goroutine at a time.
type Stream struct {
	e      *Engine
	id     int // counted from 0 as streams are opened
	slot   int
	tokens []int32 // evaluated so far; the next position is their number
	held   []span  // by store
	before []span  // held when the Forward in hand began
	uses   []uses  // by chunk
	lines  []line  // by unit
	failed error   // why the blocks in flight are dropped
	spare  []*block
	recent []Record
	blocks int // so far
	closed bool

	company *company // that its newest step made; nil if none
	left    bool     // it has gone on since
}

// ErrContext is the error of a call that would take a stream past its context.
var ErrContext = errors.New("the context is full")

// A seeker waits for a slot.
type seeker struct {
	slot int // -1 until it has one
	gate gate
}

// Stream takes a free slot, waiting for one until ctx is done; who asks first
// gets one first.
func (e *Engine) Stream(ctx context.Context) (*Stream, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, ErrClosed
	}
	if n := len(e.free); n > 0 {
		slot := e.free[n-1]
		e.free = e.free[:n-1]
		return e.stream(slot), nil
	}
	w := &seeker{-1, newGate()}
	e.seekers = append(e.seekers, w)
	err := e.wait(ctx, &w.gate)
	switch {
	case w.slot >= 0:
		return e.stream(w.slot), nil
	case e.closed:
		return nil, ErrClosed
	}
	e.seekers = slices.DeleteFunc(e.seekers, func(x *seeker) bool { return x == w })
	return nil, fmt.Errorf("waiting for a free stream of %d: %w", e.cfg.Slots, err)
}

// stream makes a stream in a slot. e.mu is held.
func (e *Engine) stream(slot int) *Stream {
	e.opened++
	return &Stream{e: e, id: e.opened - 1, slot: slot, held: make([]span, e.stores), uses: make([]uses, len(e.chunks)), lines: make([]line, len(e.queues))}
}

// Close gives the slot back.
func (s *Stream) Close() {
	if s.closed {
		return
	}
	s.closed = true
	e := s.e
	e.mu.Lock()
	defer e.mu.Unlock()
	s.leaveCompany()
	if len(e.seekers) == 0 || e.closed {
		e.free = append(e.free, s.slot)
		return
	}
	w := e.seekers[0]
	e.seekers = e.seekers[1:]
	w.slot = s.slot
	e.open(&w.gate)
}

// Tokens are the tokens evaluated so far. The slice is the stream's own.
func (s *Stream) Tokens() []int32 { return s.tokens }

// Records are what the tasks of the last Forward took, in order of their end.
func (s *Stream) Records() []Record { return s.recent }

// Want says which logits a Forward computes.
type Want uint8

const (
	// Last wants the logits of the last token.
	Last Want = iota
	// Every wants those of all tokens.
	Every
	// None wants none: the tokens only fill the caches.
	None
)

// Forward evaluates tokens behind those evaluated so far and calls each with
// the logits of the wanted positions in ascending order. The slice of logits
// is valid during the call; an error of each ends the Forward.
//
// After an error the stream has the tokens whose blocks were done, or none if
// the caches can no longer be brought back to there. Forward returns
// [ErrContext], with nothing done, if the tokens do not fit.
func (s *Stream) Forward(ctx context.Context, tokens []int32, want Want, each func(pos int, logits []float32) error) error {
	if s.closed {
		return errors.New("the stream is closed")
	}
	if len(s.tokens)+len(tokens) > s.e.cfg.Context {
		return fmt.Errorf("%w: %d tokens behind %d do not fit into %d positions", ErrContext, len(tokens), len(s.tokens), s.e.cfg.Context)
	}
	s.recent = s.recent[:0]
	s.before = append(s.before[:0], s.held...)
	step := len(tokens) == 1
	route := s.e.prefill
	if step {
		route = s.e.decode
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var flying []*block
	var failure error
	fail := func(err error) {
		if failure == nil && err != nil {
			failure = err
			s.e.mu.Lock()
			s.failed = err // drops the tasks of the blocks behind
			s.e.mu.Unlock()
		}
	}
	begin := len(s.tokens)
	pos := begin
	for rest := tokens; len(rest) > 0 || len(flying) > 0; {
		// A block behind another can only overlap it if there is another unit.
		for len(rest) > 0 && len(flying) < len(s.e.queues) && failure == nil {
			n := min(len(rest), s.blockSize(want))
			b := s.block(ctx, route, pos, rest[:n], want, n == len(rest))
			b.step = step
			if err := s.e.submit(b); err != nil {
				fail(err)
				break
			}
			flying, rest, pos = append(flying, b), rest[n:], pos+n
		}
		if len(flying) == 0 {
			break
		}
		b := flying[0]
		flying = flying[1:]
		s.e.await(b)
		fail(b.err)
		s.recent = append(s.recent, b.records...)
		if failure == nil {
			s.tokens = append(s.tokens, b.tokens...)
			for i, at := range b.wanted {
				if err := each(b.pos+at, b.logits[i*s.e.vocab:(i+1)*s.e.vocab]); err != nil {
					fail(err)
					break
				}
			}
		}
		s.spare = append(s.spare, b)
	}
	if failure != nil {
		s.e.mu.Lock()
		s.failed = nil
		s.e.mu.Unlock()
		s.settle(begin)
	}
	return failure
}

// blockSize is how many tokens the next block has at most.
func (s *Stream) blockSize(want Want) int {
	e := s.e
	n := e.cfg.Block
	if want == Every {
		n = min(n, e.wanted)
	}
	if e.cfg.BlockBeside > 0 && s.beside() {
		n = min(n, e.cfg.BlockBeside)
	}
	return n
}

// A step is when a stream had its newest step of decode.
type step struct {
	stream int // number
	at     time.Time
}

// recently is for how long a stream counts as decoding after a step: its caller
// may do something with the token before it asks for the next.
const recently = time.Second

// beside reports whether other streams decode.
func (s *Stream) beside() bool {
	e := s.e
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, x := range e.stepped {
		if x.stream != s.id && e.clock.Now().Sub(x.at) < recently {
			return true
		}
	}
	return e.stepping > 0
}

// noteStep notes that a step of the stream is done. e.mu is held.
func (s *Stream) noteStep() {
	e := s.e
	e.stepping--
	if e.cfg.BlockBeside == 0 {
		return
	}
	if e.stepped[0].stream != s.id {
		e.stepped[1] = e.stepped[0]
	}
	e.stepped[0] = step{s.id, e.clock.Now()}
}

func (s *Stream) block(ctx context.Context, route route, pos int, tokens []int32, want Want, final bool) *block {
	b := &block{e: s.e, s: s, finished: newGate()}
	if n := len(s.spare); n > 0 {
		b, s.spare = s.spare[n-1], s.spare[:n-1]
	}
	b.ctx, b.route, b.pos, b.err, b.left = ctx, route, pos, nil, 0
	b.seq = s.blocks
	s.blocks++
	b.records = b.records[:0]
	b.tokens = append(b.tokens[:0], tokens...)
	b.wanted = b.wanted[:0]
	for i := range tokens {
		if want == Every || want == Last && final && i == len(tokens)-1 {
			b.wanted = append(b.wanted, i)
		}
	}
	b.room()
	return b
}

// settle makes what is known of the caches true again after a Forward that
// failed, which began at a position.
func (s *Stream) settle(begin int) {
	n := len(s.tokens)
	if n == begin {
		// Nothing is known of what its first block did but where it may have been.
		for i, x := range s.before {
			x.high = max(x.high, s.held[i].high)
			s.held[i] = x
		}
	}
	if !s.canReturn(n) {
		s.reset()
		return
	}
	s.cut(n)
}

// canReturn reports whether the caches still hold what a token at position n
// sees. A sliding window's ring has forgotten what newer rows replaced.
func (s *Stream) canReturn(n int) bool {
	for _, stores := range s.e.layers {
		held := len(stores) == 0
		for _, x := range stores {
			held = held || s.held[x.id].has(x, x.first(n), n)
		}
		if !held {
			return false
		}
	}
	return true
}

func (s *Stream) reset() {
	s.tokens = s.tokens[:0]
	clear(s.held)
}

// cut forgets the rows of positions from n on.
func (s *Stream) cut(n int) {
	s.tokens = s.tokens[:n]
	for i := range s.held {
		s.held[i].upto = min(s.held[i].upto, n)
	}
}

// Return makes the stream as it was when it had n tokens, and reports whether
// it could; if not, it is empty now: the window of a sliding layer has moved on
// and the tokens must be evaluated again.
func (s *Stream) Return(n int) bool {
	if n >= len(s.tokens) {
		return n == len(s.tokens)
	}
	switch {
	case n == 0:
		s.reset()
	case !s.canReturn(n):
		s.reset()
		return false
	}
	s.cut(n)
	return true
}

// Reuse keeps what the stream has in common with a prompt, but never all of
// it, and returns how many of the prompt's tokens need not be evaluated again.
func (s *Stream) Reuse(prompt []int32) int {
	n := 0
	for n < len(prompt)-1 && n < len(s.tokens) && prompt[n] == s.tokens[n] {
		n++
	}
	s.Return(n)
	return len(s.tokens)
}
