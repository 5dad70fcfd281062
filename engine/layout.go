package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tandemrun/tandem/model"
	"github.com/tandemrun/tandem/program"
	"github.com/tandemrun/tandem/unit"
)

// A chunk is a run of layers compiled for a unit.
type chunk struct {
	id     int // index into Engine.chunks
	index  int // of the run of layers
	p      *program.Program
	c      unit.Chunk
	q      *queue
	stores []*store // of the program's caches, in their order
	load   time.Duration
	idle   bool // has nothing to do in a block without wanted rows
	merge  int  // most streams in a task
}

// A store is a place where the cache of a layer is kept: in the chunk that
// computes the layer, or in one on another unit that reads it. Other chunks on
// the unit share it.
type store struct {
	program.Cache
	id     int
	keeper *chunk
	rows   int // positions that it has room for, of each stream
}

// A route is the chunks that a block goes through, by run of layers.
type route []*stop

// A stop is a chunk on a route, with what goes in and out there.
type stop struct {
	*chunk
	inputs  []source
	inFrom  []unit.Unit // see [unit.Part]
	copies  []int       // caches, by index into stores, whose new rows come from a chunk on another unit
	exports []*store    // of this chunk, whose new rows go to chunks on other units
}

// source says where an input of a chunk comes from: an output of an earlier
// chunk of the route, from a column of it.
type source struct {
	chunk, port, col int
	away             bool // that chunk is on another unit
}

// WantedRows is how many rows of a task may want their logits: a row of a large
// vocabulary is a megabyte.
func WantedRows(block, vocab int) int {
	const room = 32 << 20
	return max(1, min(block, room/(4*vocab)))
}

func (e *Engine) build(ctx context.Context, m *model.Model) error {
	cfg := &e.cfg
	e.runs = len(cfg.Ranges)
	queues := map[unit.Unit]*queue{}
	_, real := e.clock.(wallClock)
	for _, u := range slices.Concat(cfg.Units, cfg.PrefillUnits) {
		if queues[u] == nil {
			queues[u] = newQueue(u, len(e.queues), real)
			e.queues = append(e.queues, queues[u])
		}
	}
	if cfg.PrefillUnits == nil {
		cfg.PrefillUnits = cfg.Units
	}
	if e.runs == 0 || e.runs != len(cfg.Units) || e.runs != len(cfg.PrefillUnits) {
		return fmt.Errorf("%d chunks on %d units, and on %d for prefill", e.runs, len(cfg.Units), len(cfg.PrefillUnits))
	}
	if cfg.Slots < 1 || cfg.Context < 1 || cfg.Block < 1 {
		return fmt.Errorf("%d streams of %d positions in blocks of %d", cfg.Slots, cfg.Context, cfg.Block)
	}
	e.wanted = WantedRows(cfg.Block, m.Vocab)
	e.layers = make([][]*store, len(m.Layers))
	next := 0
	for i, r := range cfg.Ranges {
		if r.First != next {
			return fmt.Errorf("chunk %d begins at layer %d, not at %d", i+1, r.First, next)
		}
		next = r.Last
		p, err := m.Program(r.First, r.Last)
		if err != nil {
			return fmt.Errorf("chunk %d: %w", i+1, err)
		}
		e.chunks = append(e.chunks, &chunk{id: i, index: i, p: p, q: queues[cfg.Units[i]], idle: idle(p)})
	}
	if next != len(m.Layers) {
		return fmt.Errorf("the chunks end at layer %d of %d", next, len(m.Layers))
	}
	decode, prefill := slices.Clone(e.chunks), slices.Clone(e.chunks)
	for i, c := range decode {
		if q := queues[cfg.PrefillUnits[i]]; q != c.q {
			prefill[i] = &chunk{id: len(e.chunks), index: i, p: c.p, q: q, idle: c.idle}
			e.chunks = append(e.chunks, prefill[i])
		}
	}
	if err := e.store(); err != nil {
		return err
	}
	var err error
	if e.decode, err = connect(decode); err != nil {
		return err
	}
	if e.prefill, err = connect(prefill); err != nil {
		return err
	}
	return e.compile(ctx)
}

// idle reports whether a program does nothing for rows that are not wanted.
func idle(p *program.Program) bool {
	for _, b := range p.Buffers {
		if b.Rows == program.All {
			return false
		}
	}
	return true
}

// store finds where each chunk's caches are kept.
func (e *Engine) store() error {
	o := unit.Options{Context: e.cfg.Context, Block: e.cfg.Block}
	add := func(x program.Cache, c *chunk) *store {
		s := &store{x, e.stores, c, o.CacheRows(x)}
		e.stores++
		e.layers[x.Layer] = append(e.layers[x.Layer], s)
		return s
	}
	for _, own := range []bool{true, false} { // those that chunks share come first
		for _, c := range e.chunks {
			if own {
				c.stores = make([]*store, len(c.p.Caches))
			}
			for i, x := range c.p.Caches {
				if x.Own != own {
					continue
				}
				if x.Layer < 0 || x.Layer >= len(e.layers) || !own && len(e.layers[x.Layer]) == 0 {
					return fmt.Errorf("chunk %d: no chunk has the cache of layer %d", c.index+1, x.Layer)
				}
				if !own {
					at := slices.IndexFunc(e.layers[x.Layer], func(s *store) bool { return s.Own && s.keeper.q == c.q })
					if at >= 0 {
						c.stores[i] = e.layers[x.Layer][at]
						continue
					}
				}
				c.stores[i] = add(x, c)
			}
		}
	}
	return nil
}

// connect makes a route of chunks: it finds the sources of their inputs and of
// the caches that they do not own.
func connect(chunks []*chunk) (route, error) {
	var r route
	for _, c := range chunks {
		at := &stop{chunk: c}
		for _, in := range c.p.Inputs {
			s, err := r.source(c, in)
			if err != nil {
				return nil, err
			}
			at.inputs = append(at.inputs, s)
			at.inFrom = append(at.inFrom, nil)
			if s.away {
				at.inFrom[len(at.inFrom)-1] = r[s.chunk].q.unit
			}
		}
		for i, x := range c.p.Caches {
			if x.Own {
				continue
			}
			owner := r.owner(x.Layer)
			if owner == nil {
				return nil, fmt.Errorf("chunk %d: no earlier chunk has the cache of layer %d", c.index+1, x.Layer)
			}
			if owner.q == c.q {
				continue
			}
			if r.brings(c.stores[i]) {
				continue
			}
			at.copies = append(at.copies, i)
			owner.exports = appendNew(owner.exports, owner.at(x.Layer))
		}
		r = append(r, at)
	}
	return r, nil
}

func (r route) source(c *chunk, in program.Port) (source, error) {
	for i, from := range slices.Backward(r) {
		for k, out := range from.p.Outputs {
			if out.Name == in.Name && out.Rows == in.Rows && out.Col <= in.Col && in.Col+in.View.Width <= out.Col+out.View.Width {
				return source{i, k, in.Col - out.Col, from.q != c.q}, nil
			}
		}
	}
	return source{}, fmt.Errorf("chunk %d: no earlier chunk hands over %s", c.index+1, in.Name)
}

// owner is the chunk that computes a layer.
func (r route) owner(layer int) *stop {
	for _, at := range r {
		if layer >= at.p.First && layer < at.p.Last {
			return at
		}
	}
	return nil
}

// brings reports whether a stop already copies a layer's new rows to a store.
func (r route) brings(s *store) bool {
	return slices.ContainsFunc(r, func(at *stop) bool {
		return slices.ContainsFunc(at.copies, func(i int) bool { return at.stores[i] == s })
	})
}

// at is where a chunk's cache of a layer is kept, or nil.
func (c *chunk) at(layer int) *store {
	for i, x := range c.p.Caches {
		if x.Layer == layer {
			return c.stores[i]
		}
	}
	return nil
}

func appendNew[T comparable](list []T, x T) []T {
	if slices.Contains(list, x) {
		return list
	}
	return append(list, x)
}

// compile compiles the chunks of each unit in order, units side by side.
func (e *Engine) compile(ctx context.Context) error {
	var total int64
	for _, c := range e.chunks {
		w, _ := c.p.Bytes()
		total += w
	}
	var done int64
	var mu sync.Mutex
	progress := func(n int64) {
		if e.cfg.Progress == nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		done += n
		e.cfg.Progress(done, total)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	for _, q := range e.queues {
		// Chunks that keep a cache come before those that share it.
		var chunks []*chunk
		for _, c := range e.chunks {
			if c.q == q {
				chunks = append(chunks, c)
			}
		}
		slices.SortStableFunc(chunks, func(a, b *chunk) int { return cmp.Compare(a.index, b.index) })
		wg.Go(func() {
			for _, c := range chunks {
				if err := e.compileChunk(ctx, c, progress); err != nil {
					cancel(fmt.Errorf("loading chunk %d on %s: %w", c.index+1, q.unit.Name(), err))
					return
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

func (e *Engine) compileChunk(ctx context.Context, c *chunk, progress func(int64)) error {
	share := map[int]unit.Chunk{}
	for _, s := range c.stores {
		if s.keeper != c {
			share[s.Layer] = s.keeper.c
		}
	}
	start := e.clock.Now()
	var err error
	c.c, err = c.q.unit.Compile(ctx, c.p, unit.Options{
		Slots: e.cfg.Slots, Context: e.cfg.Context, Block: e.cfg.Block, KV: e.cfg.KV,
		Share: share, FileLayout: e.cfg.FileLayout, Release: e.cfg.Release, TimeOps: e.cfg.TimeOps, Progress: progress,
	})
	c.load = e.clock.Now().Sub(start)
	c.limit(cmp.Or(e.cfg.Merge, e.cfg.Slots))
	return err
}

// limit sets how many streams a task of the chunk takes at most.
func (c *chunk) limit(n int) {
	c.merge = n
	if l, ok := c.c.(unit.Limited); ok {
		c.merge = min(n, l.MaxStreams())
	}
}
