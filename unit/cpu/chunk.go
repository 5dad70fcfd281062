package cpu

import (
	"context"
	"fmt"
	"slices"

	"github.com/tandemrun/tandem/machine"
	"github.com/tandemrun/tandem/program"
	"github.com/tandemrun/tandem/unit"
	"github.com/tandemrun/tandem/unit/cpu/kernel"
)

// Chunk is a program compiled for a unit.
type Chunk struct {
	unit     *Unit
	p        *program.Program
	o        unit.Options
	matrices map[string]*kernel.Matrix
	panels   machine.Pages // of all matrices
	caches   []*cache      // as the program's caches; some may belong to another chunk
	steps    []step
	ropes    []*ropeTable
	inputs   []*input
	rooms    []*attentionRoom // by worker
	counters [][]counter      // of the products, cleared before each task
	idle     []idle           // by worker
	times    []unit.OpTime
	phases   []unit.Phase
	vocab    int // tokens below are in every table
	bytes    unit.Bytes

	run  run
	work func(w int)
}

// run is the task in hand.
type run struct {
	task *unit.Task
	rows [2][]row // by program.Rows
	bufs [][]float32
	own  [][]float32 // buffers of the chunk itself, grown as needed
}

// row is one row of a task.
type row struct {
	part, at         int // the part and the row in it
	out              int // the row in its part's outputs: at, or the index in Wanted
	slot, pos, token int
}

// input is the activations of one view as products take them.
type input struct {
	view program.View
	cols int
	cap  int // rows there is room for
	in   *kernel.Input
}

func (c *Chunk) cache(layer int) *cache {
	for _, x := range c.caches {
		if x.Layer == layer {
			return x
		}
	}
	return nil
}

// Run computes a task on all workers of the unit.
func (c *Chunk) Run(ctx context.Context, t *unit.Task) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := c.bind(t); err != nil {
		return fmt.Errorf("unit %s, layers %d..%d: %w", c.unit.Name(), c.p.First, c.p.Last-1, err)
	}
	for _, x := range c.counters {
		for w := range x {
			x[w].n.Store(0)
		}
	}
	c.unit.pool.run(c.work)
	c.run.task = nil
	return nil
}

// bind lays out the rows of a task and makes room for them.
func (c *Chunk) bind(t *unit.Task) error {
	r := &c.run
	r.task = t
	r.rows[program.All], r.rows[program.Wanted] = r.rows[program.All][:0], r.rows[program.Wanted][:0]
	for i := range t.Parts {
		p := &t.Parts[i]
		if p.Slot < 0 || p.Slot >= c.o.Slots || p.Pos < 0 || p.Pos+len(p.Tokens) > c.o.Context || len(p.Tokens) > c.o.Block {
			return fmt.Errorf("a part of %d tokens at position %d in slot %d: the chunk has %d slots of %d positions and blocks of %d", len(p.Tokens), p.Pos, p.Slot, c.o.Slots, c.o.Context, c.o.Block)
		}
		if len(p.In) != len(c.p.Inputs) || len(p.Out) != len(c.p.Outputs) {
			return fmt.Errorf("a part with %d inputs and %d outputs: the chunk has %d and %d", len(p.In), len(p.Out), len(c.p.Inputs), len(c.p.Outputs))
		}
		for at, token := range p.Tokens {
			if token < 0 || int(token) >= c.vocab {
				return fmt.Errorf("token %d is not in the vocabulary of %d", token, c.vocab)
			}
			r.rows[program.All] = append(r.rows[program.All], row{i, at, at, p.Slot, p.Pos + at, int(token)})
		}
		for out, at := range p.Wanted {
			if at < 0 || at >= len(p.Tokens) {
				return fmt.Errorf("row %d of a block of %d is wanted", at, len(p.Tokens))
			}
			r.rows[program.Wanted] = append(r.rows[program.Wanted], row{i, at, out, p.Slot, p.Pos + at, int(p.Tokens[at])})
		}
	}
	for i, b := range c.p.Buffers {
		n := len(r.rows[b.Rows]) * b.Width
		if i == c.p.Logits && len(t.Parts) == 1 && len(t.Parts[0].Logits) >= n {
			r.bufs[i] = t.Parts[0].Logits[:n] // straight to where they are wanted
			continue
		}
		if len(r.own[i]) < n {
			r.own[i] = make([]float32, n)
		}
		r.bufs[i] = r.own[i][:n]
	}
	for _, in := range c.inputs {
		b := c.p.Buffers[in.view.Buf]
		n := len(r.rows[b.Rows])
		if n == 0 {
			continue
		}
		if n > in.cap {
			in.in, in.cap = c.unit.set.NewInput(n, in.cols), n
		}
		c.unit.set.SetInput(in.in, r.bufs[in.view.Buf][in.view.Col:], b.Width, n, in.cols)
	}
	for _, t := range c.ropes {
		t.grow(len(r.rows[t.rows]))
	}
	return nil
}

// row returns the columns of a view in row i.
func (r *run) row(p *program.Program, v program.View, i int) []float32 {
	w := p.Buffers[v.Buf].Width
	return r.bufs[v.Buf][i*w+v.Col:][:v.Width]
}

// ReadKV copies rows of a cache out; see [unit.Chunk].
func (c *Chunk) ReadKV(layer, slot, pos, n int, k, v []byte) error {
	return c.move(layer, slot, pos, n, k, v, true)
}

// WriteKV copies rows into a cache; see [unit.Chunk].
func (c *Chunk) WriteKV(layer, slot, pos, n int, k, v []byte) error {
	return c.move(layer, slot, pos, n, k, v, false)
}

func (c *Chunk) move(layer, slot, pos, n int, k, v []byte, out bool) error {
	x := c.cache(layer)
	if x == nil {
		return fmt.Errorf("unit %s, layers %d..%d: no cache of layer %d", c.unit.Name(), c.p.First, c.p.Last-1, layer)
	}
	return x.move(slot, pos, n, k, v, out)
}

// Bytes is the memory of the chunk.
func (c *Chunk) Bytes() unit.Bytes {
	b := c.bytes
	for _, x := range c.run.own {
		b.Buffers += int64(4 * len(x))
	}
	return b
}

// Phases are what repacking the weights took and the rest; see [unit.Phased].
func (c *Chunk) Phases() []unit.Phase { return c.phases }

var _ unit.Phased = (*Chunk)(nil)

// Close frees the chunk's memory.
func (c *Chunk) Close() error {
	err := c.panels.Free()
	*c = Chunk{unit: c.unit, p: c.p, o: c.o}
	return err
}

// ropeTable is the cosines and sines of the rows of a task for one set of
// frequencies.
type ropeTable struct {
	op       program.Rope
	rows     program.Rows
	cos, sin []float32 // one row of len(op.Freqs) a row
}

func (t *ropeTable) grow(n int) {
	if n *= len(t.op.Freqs); n > len(t.cos) {
		t.cos, t.sin = make([]float32, n), make([]float32, n)
	}
}

func (t *ropeTable) same(op program.Rope, rows program.Rows) bool {
	return t.rows == rows && t.op.Magnitude == op.Magnitude && slices.Equal(t.op.Freqs, op.Freqs)
}
