package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// A Rerun is one chunk of one stream to be run again.
type Rerun struct {
	Stream *Stream
	Chunk  int // index
}

// Again runs chunks again on the last block that their streams evaluated, on
// the units that they were on, with what was handed to them then, all at once: none waits for another but in its
// unit's queue. The same rows are computed and cached once more, so the streams
// stay as they are. It is for measuring. Each stream may be named once; streams
// that are at work elsewhere must not be.
//
// The records are in the order of the reruns.
func (e *Engine) Again(ctx context.Context, reruns ...Rerun) ([]Record, error) {
	e.mu.Lock()
	var blocks []*block
	var err error
	for _, r := range reruns {
		var b *block
		if b, err = r.check(e); err != nil {
			break
		}
		b.ctx, b.err = ctx, nil
		if err = b.stopped(e); err != nil {
			break
		}
		b.records = b.records[:0]
		blocks = append(blocks, b)
	}
	if err != nil {
		e.mu.Unlock()
		return nil, err
	}
	for i, b := range blocks {
		b.left, b.step = 1, false
		e.flying++
		t := b.task(b.route[reruns[i].Chunk].chunk)
		t.at = b.route[reruns[i].Chunk]
		t.enqueue()
	}
	e.mu.Unlock()
	out := make([]Record, len(blocks))
	for i, b := range blocks {
		e.await(b)
		if b.err != nil {
			err = errors.Join(err, b.err)
			continue
		}
		out[i] = b.records[0]
	}
	return out, err
}

// check returns the block that a rerun is about. e.mu is held.
func (r Rerun) check(e *Engine) (*block, error) {
	s := r.Stream
	switch {
	case r.Chunk < 0 || r.Chunk >= e.runs:
		return nil, fmt.Errorf("there is no chunk %d; there are %d", r.Chunk+1, e.runs)
	case s.closed:
		return nil, errors.New("the stream is closed")
	case len(s.spare) == 0:
		return nil, errors.New("the stream has evaluated nothing that could run again")
	}
	b := s.spare[len(s.spare)-1]
	if b.pos+len(b.tokens) != len(s.tokens) {
		return nil, errors.New("the stream was brought back since its last block")
	}
	if e.chunks[r.Chunk].idle && len(b.wanted) == 0 {
		return nil, fmt.Errorf("chunk %d has nothing to do in a block without wanted logits", r.Chunk+1)
	}
	return b, nil
}

// Now is the time of the engine's clock.
func (e *Engine) Now() time.Time { return e.clock.Now() }

// SetMerge changes [Config.Merge] from the next task on, so that both rules can
// be measured on one engine.
func (e *Engine) SetMerge(n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.cfg.Merge = n
	for _, c := range e.chunks {
		c.limit(cmp.Or(n, e.cfg.Slots))
	}
}
