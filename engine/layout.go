package engine

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/tandemrun/tandem/model"
	"github.com/tandemrun/tandem/program"
	"github.com/tandemrun/tandem/unit"
)

// chunk is a compiled chunk and what it hands to others.
type chunk struct {
	index   int
	p       *program.Program
	c       unit.Chunk
	q       *queue
	inputs  []source
	copies  []int // layers of caches that this chunk keeps a copy of
	exports []int // layers of its caches that chunks on other units copy
	sharers []int // chunks on this unit that read its caches
	lenders []int // chunks on other units whose caches it keeps a copy of
	from    []int // chunks on other units that it takes rows from, lenders included
	load    time.Duration
	idle    bool // has nothing to do in a block without wanted rows
	merge   int  // most streams in a task
}

// source says where an input of a chunk comes from: an output of an earlier
// chunk, from a column of it.
type source struct {
	chunk, port, col int
	away             bool // that chunk is on another unit
}

func (e *Engine) build(ctx context.Context, m *model.Model) error {
	cfg := &e.cfg
	queues := map[unit.Unit]*queue{}
	for _, u := range cfg.Units {
		if queues[u] == nil {
			queues[u] = newQueue(u, len(e.queues))
			e.queues = append(e.queues, queues[u])
		}
	}
	if len(cfg.Ranges) == 0 || len(cfg.Ranges) != len(cfg.Units) {
		return fmt.Errorf("%d chunks on %d units", len(cfg.Ranges), len(cfg.Units))
	}
	if cfg.Slots < 1 || cfg.Context < 1 || cfg.Block < 1 {
		return fmt.Errorf("%d streams of %d positions in blocks of %d", cfg.Slots, cfg.Context, cfg.Block)
	}
	e.wanted = WantedRows(cfg.Block, m.Vocab)
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
		e.chunks = append(e.chunks, &chunk{index: i, p: p, q: queues[cfg.Units[i]], idle: idle(p)})
	}
	if next != len(m.Layers) {
		return fmt.Errorf("the chunks end at layer %d of %d", next, len(m.Layers))
	}
	for _, c := range e.chunks {
		if err := e.connect(c); err != nil {
			return err
		}
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

// connect finds the sources of a chunk's inputs and the owners of its caches.
func (e *Engine) connect(c *chunk) error {
	for _, in := range c.p.Inputs {
		s, err := e.source(c, in)
		if err != nil {
			return err
		}
		c.inputs = append(c.inputs, s)
		if s.away {
			c.from = appendNew(c.from, s.chunk)
		}
	}
	for _, x := range c.p.Caches {
		if x.Own {
			continue
		}
		owner := e.owner(x.Layer)
		if owner == nil {
			return fmt.Errorf("chunk %d: no chunk has the cache of layer %d", c.index+1, x.Layer)
		}
		if owner.q == c.q {
			owner.sharers = append(owner.sharers, c.index)
			continue
		}
		c.copies = append(c.copies, x.Layer)
		c.lenders = appendNew(c.lenders, owner.index)
		c.from = appendNew(c.from, owner.index)
		owner.exports = appendNew(owner.exports, x.Layer)
	}
	return nil
}

func (e *Engine) source(c *chunk, in program.Port) (source, error) {
	for i := c.index - 1; i >= 0; i-- {
		from := e.chunks[i]
		for k, out := range from.p.Outputs {
			if out.Name == in.Name && out.Rows == in.Rows && out.Col <= in.Col && in.Col+in.View.Width <= out.Col+out.View.Width {
				return source{i, k, in.Col - out.Col, from.q != c.q}, nil
			}
		}
	}
	return source{}, fmt.Errorf("chunk %d: no earlier chunk hands over %s", c.index+1, in.Name)
}

func (e *Engine) owner(layer int) *chunk {
	for _, c := range e.chunks {
		if layer >= c.p.First && layer < c.p.Last {
			return c
		}
	}
	return nil
}

func appendNew(list []int, x int) []int {
	for _, y := range list {
		if x == y {
			return list
		}
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
		wg.Go(func() {
			for _, c := range e.chunks {
				if c.q != q {
					continue
				}
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
	for _, x := range c.p.Caches {
		if owner := e.owner(x.Layer); !x.Own && owner.q == c.q {
			share[x.Layer] = owner.c
		}
	}
	inputs, caches := make([]unit.Unit, len(c.inputs)), map[int]unit.Unit{}
	for i, in := range c.inputs {
		if in.away {
			inputs[i] = e.chunks[in.chunk].q.unit
		}
	}
	for _, layer := range c.copies {
		caches[layer] = e.owner(layer).q.unit
	}
	start := e.clock.Now()
	var err error
	c.c, err = c.q.unit.Compile(ctx, c.p, unit.Options{
		Slots: e.cfg.Slots, Context: e.cfg.Context, Block: e.cfg.Block, KV: e.cfg.KV,
		Share: share, InputFrom: inputs, CacheFrom: caches, FileLayout: e.cfg.FileLayout, Release: e.cfg.Release, TimeOps: e.cfg.TimeOps, Progress: progress,
	})
	c.load = e.clock.Now().Sub(start)
	c.merge = cmp.Or(e.cfg.Merge, e.cfg.Slots)
	if l, ok := c.c.(unit.Limited); ok {
		c.merge = min(c.merge, l.MaxStreams())
	}
	return err
}
