package gpu

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tandemrun/tandem/program"
	"github.com/tandemrun/tandem/unit"
	"github.com/tandemrun/tandem/unit/gpu/compute"
)

// recordings is how many shapes of tasks a chunk keeps recorded: decode steps of
// some numbers of streams, a full block, and the odd ends of prompts.
const recordings = 16

// Chunk is a program compiled for a device.
type Chunk struct {
	unit    *Unit
	p       *program.Program
	o       unit.Options
	weights *placement
	kv      arena
	caches  []*cache // as the program's caches; some may belong to another chunk
	plan    *plan
	bytes   unit.Bytes

	recorded map[shape]*recording
	clock    int // of uses of recordings
	times    opTimes
	phases   []unit.Phase
}

// recording is the dispatches of a shape, ready to run.
type recording struct {
	list     []compute.Dispatch
	commands compute.Commands
	used     int
}

// Compile puts a program's weights on the device and makes its caches, buffers
// and the kernels of a decode step and of a full block.
func (u *Unit) Compile(ctx context.Context, p *program.Program, o unit.Options) (unit.Chunk, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if u.lost != nil {
		return nil, u.lost
	}
	c := &Chunk{unit: u, p: p, o: o, recorded: map[shape]*recording{}}
	if err := c.compile(ctx); err != nil {
		return nil, errors.Join(c.where(u.fail(err)), c.Close())
	}
	return c, nil
}

// where says in an error what chunk it is of.
func (c *Chunk) where(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, compute.ErrMemory) {
		free := ""
		if n, ok := c.unit.free(); ok {
			free = fmt.Sprintf("; %.1f MiB are free", float64(n)/(1<<20))
		}
		need, _ := c.p.Bytes()
		return fmt.Errorf("unit %s (%s), layers %d..%d: no memory for %.1f MiB of weights and %.1f MiB of KV cache%s: %w",
			c.unit.Name(), c.unit.info.Name, c.p.First, c.p.Last-1, float64(need)/(1<<20), float64(c.o.CacheBytes(c.p))/(1<<20), free, err)
	}
	return fmt.Errorf("unit %s, layers %d..%d: %w", c.unit.Name(), c.p.First, c.p.Last-1, err)
}

func (c *Chunk) compile(ctx context.Context) error {
	o := c.o
	if o.Slots < 1 || o.Context < 1 || o.Block < 1 {
		return fmt.Errorf("a chunk of %d slots, %d positions and blocks of %d rows", o.Slots, o.Context, o.Block)
	}
	if err := o.KV.Check(c.p, unit.KVs()...); err != nil {
		return err
	}
	start := time.Now()
	var err error
	if c.weights, err = place(ctx, c.unit.dev, c.p, o); err != nil {
		return err
	}
	c.phase("weights", start, c.weights.copied)
	if c.unit.info.Shared && c.weights.copied > 0 {
		why := c.weights.refused
		if why == nil {
			why = errors.New("it cannot import memory")
		}
		c.unit.notes = append(c.unit.notes, fmt.Sprintf("unit %s, layers %d..%d: %.1f MiB of weights were copied instead of read in place: %v",
			c.unit.Name(), c.p.First, c.p.Last-1, float64(c.weights.copied)/(1<<20), why))
	}
	if err := c.makeCaches(); err != nil {
		return err
	}
	if c.plan, err = newPlan(c.unit.dev, c.p, o, c.weights.pieces, c.caches); err != nil {
		return err
	}
	c.bytes.Weights, c.bytes.Tables = c.p.Bytes()
	c.bytes.Buffers = c.plan.bytes()
	c.phase("buffers", start, 0)
	for _, rows := range []int{1, c.plan.rows} {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := c.prepare(rows); err != nil {
			return err
		}
	}
	c.phase("kernels", start, 0)
	return nil
}

// phase notes that a part of compiling has ended, which began at start or where
// the last one ended.
func (c *Chunk) phase(name string, start time.Time, bytes int64) {
	took := time.Since(start)
	for _, p := range c.phases {
		took -= p.Time
	}
	c.phases = append(c.phases, unit.Phase{Name: name, Time: took, Bytes: bytes})
}

// Phases are what came at compiling: "weights" (importing them, or copying
// Bytes of them), "buffers" (and caches) and "kernels" (building those that the
// device did not have yet, and recording the commands of a decode step and of a
// full block); see [unit.Phased].
func (c *Chunk) Phases() []unit.Phase { return c.phases }

// makeCaches makes the chunk's own caches and its copies of others.
func (c *Chunk) makeCaches() error {
	c.kv.dev = c.unit.dev
	for _, pc := range c.p.Caches {
		if from, ok := c.o.Share[pc.Layer]; ok && !pc.Own {
			owner, ok := from.(*Chunk)
			if !ok || owner.unit != c.unit {
				return fmt.Errorf("the cache of layer %d is shared from a chunk on another unit", pc.Layer)
			}
			x := owner.cache(pc.Layer)
			if x == nil || x.rows != c.o.CacheRows(pc) || x.kv != c.o.KV || owner.o.Slots != c.o.Slots {
				return fmt.Errorf("the chunk that shares the cache of layer %d has none of that shape", pc.Layer)
			}
			c.caches = append(c.caches, x)
			continue
		}
		x := &cache{Cache: pc, kv: c.o.KV, rows: c.o.CacheRows(pc)}
		for _, half := range []struct {
			at    *compute.Binding
			width int
		}{{&x.k, pc.KeyWidth()}, {&x.v, pc.ValueWidth()}} {
			size := 4 * int64(c.o.Slots) * int64(x.rows) * int64(words(x.kv, half.width))
			var err error
			if *half.at, err = c.kv.take(size, c.o.CacheBytes(c.p)-c.bytes.KV); err != nil {
				return fmt.Errorf("the KV cache of layer %d for %d streams of %d positions: %w", pc.Layer, c.o.Slots, x.rows, err)
			}
			c.bytes.KV += size
		}
		c.caches = append(c.caches, x)
	}
	for _, b := range c.kv.buffers {
		// Rows that were never written are never read, but they are finite.
		if err := c.unit.dev.Clear(compute.Binding{Buffer: b, Size: b.Size()}); err != nil {
			return err
		}
	}
	return nil
}

// prepare records the shape of a task of one stream with rows rows, the last one
// wanted.
func (c *Chunk) prepare(rows int) error {
	part := unit.Part{Tokens: make([]int32, rows), Wanted: []int{rows - 1}}
	for _, in := range c.p.Inputs {
		part.In = append(part.In, unit.Rows{Data: make([]float32, rows*in.View.Width), Stride: in.View.Width})
	}
	part.Out = make([]unit.Rows, len(c.p.Outputs))
	runs, err := c.plan.cut(&unit.Task{Parts: []unit.Part{part}})
	if err != nil {
		return err
	}
	for _, r := range runs {
		if _, err := c.recording(c.plan.fill(r)); err != nil {
			return err
		}
	}
	return nil
}

// recording returns the commands of a shape, made if they are new.
func (c *Chunk) recording(s shape) (*recording, error) {
	c.clock++
	if r := c.recorded[s]; r != nil {
		r.used = c.clock
		return r, nil
	}
	for len(c.recorded) >= recordings {
		var oldest shape
		at := c.clock
		for k, r := range c.recorded {
			if r.used < at {
				oldest, at = k, r.used
			}
		}
		if err := c.forget(oldest); err != nil {
			return nil, err
		}
	}
	r := &recording{list: c.plan.list(s), used: c.clock}
	var err error
	if len(r.list) > 0 {
		if r.commands, err = c.unit.dev.Record(r.list, c.o.TimeOps); err != nil {
			return nil, err
		}
	}
	c.recorded[s] = r
	return r, nil
}

func (c *Chunk) forget(s shape) error {
	r := c.recorded[s]
	delete(c.recorded, s)
	if r.commands == nil {
		return nil
	}
	return r.commands.Close()
}

func (c *Chunk) cache(layer int) *cache {
	for _, x := range c.caches {
		if x.Layer == layer {
			return x
		}
	}
	return nil
}

// Run computes a task on the device.
func (c *Chunk) Run(ctx context.Context, t *unit.Task) error {
	if c.unit.lost != nil {
		return c.unit.lost
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	runs, err := c.plan.cut(t)
	if err != nil {
		return c.where(err)
	}
	for _, r := range runs {
		if err := c.run(ctx, t, r); err != nil {
			return c.where(c.unit.fail(err))
		}
	}
	return nil
}

func (c *Chunk) run(ctx context.Context, t *unit.Task, r run) error {
	start := time.Now()
	s := c.plan.fill(r)
	if r.away() {
		t.Handoff += time.Since(start)
	}
	rec, err := c.recording(s)
	if err != nil || rec.commands == nil {
		return err
	}
	start = time.Now()
	if err := c.unit.dev.Run(ctx, rec.commands); err != nil {
		return err
	}
	total := time.Since(start)
	busy, err := rec.commands.Busy()
	if err != nil {
		return err
	}
	t.Device += busy
	if c.o.TimeOps {
		took, err := rec.commands.Times()
		if err != nil {
			return err
		}
		c.times.add(rec.list, took, total)
	}
	start = time.Now()
	c.plan.take(r)
	took := time.Since(start)
	if len(c.p.Outputs) > 0 {
		t.Given += took
	}
	if c.o.TimeOps {
		c.times.host(took)
	}
	return nil
}

// away reports whether rows of a run were handed over by another unit.
func (r run) away() bool {
	for _, s := range r {
		for _, from := range s.part.InFrom {
			if from != nil {
				return true
			}
		}
	}
	return false
}

// ReadKV copies rows of a cache out; see [unit.Chunk].
func (c *Chunk) ReadKV(layer, slot, pos, n int, k, v []byte) error {
	return c.move(layer, slot, pos, n, k, v, true)
}

// WriteKV copies rows into a cache; see [unit.Chunk].
func (c *Chunk) WriteKV(layer, slot, pos, n int, k, v []byte) error {
	return c.move(layer, slot, pos, n, k, v, false)
}

func (c *Chunk) move(layer, slot, pos, n int, k, v []byte, read bool) error {
	if c.unit.lost != nil {
		return c.unit.lost
	}
	x := c.cache(layer)
	if x == nil {
		return c.where(fmt.Errorf("no cache of layer %d", layer))
	}
	if slot < 0 || slot >= c.o.Slots || pos < 0 || n < 0 || n > x.rows {
		return c.where(fmt.Errorf("cache of layer %d: positions %d..%d of slot %d are not in it", layer, pos, pos+n-1, slot))
	}
	kb, vb := int(x.kv.Size(x.KeyWidth())), int(x.kv.Size(x.ValueWidth()))
	if len(k) < n*kb || len(v) < n*vb {
		return c.where(fmt.Errorf("cache of layer %d: no room for %d rows in %d and %d bytes", layer, n, len(k), len(v)))
	}
	moves := x.moves(nil, x.k, slot, pos, n, kb, k, read)
	moves = x.moves(moves, x.v, slot, pos, n, vb, v, read)
	return c.where(c.unit.fail(c.unit.dev.Transfer(moves...)))
}

// moves appends the moves of rows [pos, pos+n) of a slot, rowBytes each, to or
// from data. Rows that are neighbours in the ring move together.
func (x *cache) moves(to []compute.Move, at compute.Binding, slot, pos, n, rowBytes int, data []byte, read bool) []compute.Move {
	stride := (rowBytes + 3) / 4 * 4
	for i := 0; i < n; {
		row := (pos + i) % x.rows
		run := min(n-i, x.rows-row)
		if stride != rowBytes {
			run = 1
		}
		b := compute.Binding{Buffer: at.Buffer, Offset: at.Offset + int64((slot*x.rows+row)*stride), Size: int64(run * rowBytes)}
		to = append(to, compute.Move{At: b, Data: data[i*rowBytes : (i+run)*rowBytes], Read: read})
		i += run
	}
	return to
}

// Bytes is the memory of the chunk on the device. Weights that are read where
// they are in the file are counted too.
func (c *Chunk) Bytes() unit.Bytes { return c.bytes }

// Close frees the chunk's memory on the device.
func (c *Chunk) Close() error {
	var err error
	for s := range c.recorded {
		err = errors.Join(err, c.forget(s))
	}
	if c.plan != nil {
		err = errors.Join(err, c.plan.close())
		c.plan = nil
	}
	err = errors.Join(err, c.kv.close())
	if c.weights != nil {
		err = errors.Join(err, c.weights.close())
		c.weights = nil
	}
	return err
}

var _ interface {
	unit.Chunk
	unit.OpTimer
	unit.Phased
} = (*Chunk)(nil)
