package engine

import (
	"context"
	"fmt"
	"slices"
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
	seq      int  // number in its stream
	step     bool // of decode
	pos      int
	tokens   []int32
	wanted   []int
	logits   []float32
	route    route
	outputs  [][]unit.Rows // by run of layers and port
	copies   map[int]*rows // by layer: its new rows, for chunks on other units
	records  []Record
	tasks    []*task
	computes []*task // those that compute, by run of layers
	left     int     // tasks that are not done
	err      error
	finished gate

	submitted time.Time
}

// rows are cache rows of a layer on their way to another unit.
type rows struct {
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
	if !b.s.canReturn(b.pos) {
		return fmt.Errorf("stream %d: the caches no longer hold what position %d sees; begin it anew", b.s.id, b.pos)
	}
	b.submitted = e.clock.Now()
	b.s.leaveCompany()
	b.tasks, b.computes = b.tasks[:0], append(b.computes[:0], make([]*task, len(b.route))...)
	for i, at := range b.route {
		b.plan(i, at)
	}
	if b.left = len(b.tasks); b.left == 0 {
		return nil
	}
	e.flying++
	if b.step {
		e.stepping++
	}
	for _, t := range b.tasks {
		if t.waits == 0 && !t.done {
			t.enqueue()
		}
	}
	return nil
}

// plan makes the task of a stop and what it depends on. e.mu is held.
func (b *block) plan(i int, at *stop) {
	work := !at.idle || len(b.wanted) > 0
	if !work && len(at.copies) == 0 {
		return
	}
	t := b.task(at.chunk)
	t.at = at
	b.computes[i] = t
	if work {
		for _, in := range at.inputs {
			t.take(b.computes[in.chunk], in.away)
		}
	}
	for _, s := range at.stores {
		b.fetch(s) // all of them before the task uses any: a chunk may keep several
	}
	for k, s := range at.stores {
		switch {
		case s.Own && s.keeper == at.chunk:
			b.s.wrote(s, b.pos, len(b.tokens))
		case slices.Contains(at.copies, k):
			t.take(b.computes[b.route.owner(s.Layer).index], true)
			t.touch(s.keeper, true)
			b.s.wrote(s, b.pos, len(b.tokens))
		default:
			t.touch(s.keeper, false)
		}
	}
	// Blocks of a stream pass a chunk one after the other, and of course those
	// that read what it keeps are done with it then.
	t.touch(at.chunk, true)
	b.tasks = append(b.tasks, t)
}

// task makes a task of the block. e.mu is held.
func (b *block) task(c *chunk) *task {
	t := &task{id: b.e.made, b: b, c: c, after: -1}
	b.e.made++
	return t
}

// part is the block as a chunk takes it.
func (b *block) part(at *stop) unit.Part {
	p := unit.Part{Slot: b.s.slot, Pos: b.pos, Tokens: b.tokens, Wanted: b.wanted, InFrom: at.inFrom}
	for _, src := range at.inputs {
		from := b.outputs[src.chunk][src.port]
		if len(from.Data) > 0 {
			from.Data = from.Data[src.col:]
		}
		p.In = append(p.In, from)
	}
	p.Out = b.outputs[at.index]
	if at.p.Logits >= 0 {
		p.Logits = b.logits
	}
	return p
}

// room makes room for what the chunks hand over and for the logits.
func (b *block) room() {
	if b.outputs == nil {
		b.outputs, b.copies = make([][]unit.Rows, len(b.route)), map[int]*rows{}
		for i, at := range b.route {
			b.outputs[i] = make([]unit.Rows, len(at.p.Outputs))
		}
	}
	for i, at := range b.route {
		for k, out := range at.p.Outputs {
			x := &b.outputs[i][k]
			x.Stride = out.View.Width
			x.Data = grown(x.Data, b.count(out)*out.View.Width)
		}
		for _, s := range at.exports {
			if b.copies[s.Layer] == nil {
				b.copies[s.Layer] = &rows{}
			}
		}
	}
	b.logits = grown(b.logits, len(b.wanted)*b.e.vocab)
}

// count is how many rows of the block go through a port.
func (b *block) count(x program.Port) int {
	if x.Rows == program.Wanted {
		return len(b.wanted)
	}
	return len(b.tokens)
}

func grown[T any](x []T, n int) []T {
	if cap(x) < n {
		return make([]T, n)
	}
	return x[:n]
}

// receive writes the new cache rows of chunks on other units to where the chunk
// finds them, and counts what the chunk takes from other units.
func (b *block) receive(at *stop, r *Record) error {
	for i, in := range at.p.Inputs {
		if at.inputs[i].away {
			r.PassedBytes += int64(4 * b.count(in) * in.View.Width)
		}
	}
	for _, i := range at.copies {
		s := at.stores[i]
		if err := b.copies[s.Layer].write(b, s, b.pos, len(b.tokens), r); err != nil {
			return err
		}
	}
	return nil
}

// export reads the new cache rows that chunks on other units take.
func (b *block) export(at *stop, r *Record) error {
	for _, s := range at.exports {
		if err := b.copies[s.Layer].read(b, s, b.pos, len(b.tokens), r); err != nil {
			return err
		}
	}
	return nil
}

// read takes rows of positions [pos, pos+n) of the block's stream from a store.
func (x *rows) read(b *block, s *store, pos, n int, r *Record) error {
	x.k = grown(x.k, int(b.e.cfg.KV.Size(n*s.KeyWidth())))
	x.v = grown(x.v, int(b.e.cfg.KV.Size(n*s.ValueWidth())))
	start := b.e.clock.Now()
	err := s.keeper.c.ReadKV(s.Layer, b.s.slot, pos, n, x.k, x.v)
	took := x.moved(b, start, r)
	r.CopyOutTime += took
	return err
}

// write puts them into another.
func (x *rows) write(b *block, s *store, pos, n int, r *Record) error {
	start := b.e.clock.Now()
	err := s.keeper.c.WriteKV(s.Layer, b.s.slot, pos, n, x.k, x.v)
	x.moved(b, start, r)
	return err
}

// moved counts rows that have been read or written since start.
func (x *rows) moved(b *block, start time.Time, r *Record) time.Duration {
	took := b.e.clock.Now().Sub(start)
	r.CopiedBytes += int64(len(x.k) + len(x.v))
	r.CopyTime += took
	return took
}
