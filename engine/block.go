package engine

import (
	"context"
	"time"

	"github.com/tandemrun/tandem/program"
	"github.com/tandemrun/tandem/unit"
)

// A block is a run of positions of one stream on its way through the chunks,
// with what the chunks hand over for it.
type block struct {
	e        *Engine
	s        *Stream
	ctx      context.Context
	seq      int // number in its stream
	pos      int
	tokens   []int32
	wanted   []int
	logits   []float32
	outputs  [][]unit.Rows // by chunk and port
	copies   map[int]*copied
	records  []Record
	left     int // tasks that are not done
	err      error
	finished gate

	submitted time.Time // for an observer
}

// copied is the new cache rows of a layer on their way to another unit.
type copied struct {
	k, v []byte
}

// stopped returns why a block's remaining tasks are dropped, or nil. e.mu is held.
func (b *block) stopped(e *Engine) error {
	switch {
	case b.err != nil:
		return b.err
	case e.closed:
		return ErrClosed
	case b.s.failed != nil:
		return b.s.failed
	}
	return context.Cause(b.ctx)
}

// submit makes the tasks of a block and queues those that can start.
func (e *Engine) submit(b *block) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := b.stopped(e); err != nil {
		return err
	}
	if e.cfg.Observe != nil {
		b.submitted = b.e.clock.Now()
	}
	tasks := make([]*task, len(e.chunks))
	last := b.s.last
	for i, c := range e.chunks {
		if c.idle && len(b.wanted) == 0 && len(c.copies) == 0 {
			continue
		}
		t := &task{b: b, c: c, after: -1}
		tasks[i] = t
		b.left++
		if !(c.idle && len(b.wanted) == 0) {
			for _, in := range c.inputs {
				t.need(tasks[in.chunk])
			}
		}
		for _, x := range c.p.Caches {
			if !x.Own {
				t.need(tasks[e.owner(x.Layer).index])
			}
		}
		t.need(last[i]) // its cache as the previous block left it
		for _, j := range c.sharers {
			t.need(last[j]) // they read rows this task may overwrite
		}
	}
	for i, t := range tasks {
		if t == nil {
			continue
		}
		last[i] = t
		if t.waits == 0 {
			t.enqueue()
		}
	}
	if b.left > 0 {
		e.flying++
	}
	return nil
}

// part is the block as a chunk takes it.
func (b *block) part(c *chunk) unit.Part {
	p := unit.Part{Slot: b.s.slot, Pos: b.pos, Tokens: b.tokens, Wanted: b.wanted}
	for _, src := range c.inputs {
		from := b.outputs[src.chunk][src.port]
		if len(from.Data) > 0 {
			from.Data = from.Data[src.col:]
		}
		p.In = append(p.In, from)
	}
	p.Out = b.outputs[c.index]
	if c.p.Logits >= 0 {
		p.Logits = b.logits
	}
	return p
}

// room makes room for what the chunks hand over and for the logits.
func (b *block) room() {
	e := b.e
	if b.outputs == nil {
		b.outputs, b.copies = make([][]unit.Rows, len(e.chunks)), map[int]*copied{}
		for i, c := range e.chunks {
			b.outputs[i] = make([]unit.Rows, len(c.p.Outputs))
			for _, layer := range c.exports {
				b.copies[layer] = &copied{}
			}
		}
	}
	for i, c := range e.chunks {
		for k, out := range c.p.Outputs {
			n := len(b.tokens)
			if out.Rows == program.Wanted {
				n = len(b.wanted)
			}
			x := &b.outputs[i][k]
			x.Stride = out.View.Width
			x.Data = grown(x.Data, n*out.View.Width)
		}
	}
	b.logits = grown(b.logits, len(b.wanted)*e.vocab)
}

func grown[T any](x []T, n int) []T {
	if cap(x) < n {
		return make([]T, n)
	}
	return x[:n]
}

// receive writes the cache rows that a chunk keeps a copy of, and counts what
// the chunk takes from other units.
func (b *block) receive(c *chunk, r *Record) error {
	for i, in := range c.p.Inputs {
		if c.inputs[i].away {
			n := len(b.tokens)
			if in.Rows == program.Wanted {
				n = len(b.wanted)
			}
			r.PassedBytes += int64(4 * n * in.View.Width)
		}
	}
	for _, layer := range c.copies {
		x := b.copies[layer]
		start := b.e.clock.Now()
		if err := c.c.WriteKV(layer, b.s.slot, b.pos, len(b.tokens), x.k, x.v); err != nil {
			return err
		}
		r.CopiedBytes += int64(len(x.k) + len(x.v))
		r.CopyTime += b.e.clock.Now().Sub(start)
	}
	return nil
}

// export reads the new cache rows that chunks on other units keep a copy of.
func (b *block) export(c *chunk, r *Record) error {
	for _, layer := range c.exports {
		x := b.copies[layer]
		spec := cacheOf(c.p, layer)
		n := len(b.tokens)
		x.k = grown(x.k, int(b.e.cfg.KV.Size(n*spec.KeyWidth())))
		x.v = grown(x.v, int(b.e.cfg.KV.Size(n*spec.ValueWidth())))
		start := b.e.clock.Now()
		if err := c.c.ReadKV(layer, b.s.slot, b.pos, n, x.k, x.v); err != nil {
			return err
		}
		r.CopiedBytes += int64(len(x.k) + len(x.v))
		took := b.e.clock.Now().Sub(start)
		r.CopyTime += took
		r.CopyOutTime += took
	}
	return nil
}

func cacheOf(p *program.Program, layer int) program.Cache {
	for _, x := range p.Caches {
		if x.Layer == layer {
			return x
		}
	}
	return program.Cache{}
}
