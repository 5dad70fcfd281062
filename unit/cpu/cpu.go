// Package cpu is the unit that runs chunks on a set of CPU cores.
//
// A unit owns a set of cores and one worker for each, locked to a thread and
// pinned to its core where the system allows it ([Unit.Pinned] tells). The first
// worker is the goroutine of the unit's queue ([Unit.Bind]). Two
// units on disjoint cores run at the same time and share only the memory.
//
// Weights are laid out anew when a chunk is compiled, in panels of 16 outputs
// that the kernels read in order; what the file's pages held is released as it
// is copied, so the memory is that of the file and not twice. With
// [unit.Options.FileLayout] they are used as the file stores them, straight from
// the mapping. Neither ever makes a float32 copy of a matrix. Tables that are
// looked up by row stay in the file.
//
// Inside a task all workers run the same list of steps, each on its share of
// rows or outputs, and meet at barriers. An output's value never depends on the
// share it falls in: kernels (package kernel) add up each output in one fixed
// order, so results are equal bit for bit for any number of threads, any block
// size, any cut into chunks and any company in the task. The kind of a unit,
// which names what is bit-equal, is its instruction set.
//
// Workers spin at barriers, and a unit's first one keeps its place in the Go
// scheduler for some milliseconds after a task. The process needs a free thread
// beside them for everything else: the owner sees to it that GOMAXPROCS is larger
// than the number of workers of all units.
package cpu

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tandemrun/tandem/machine"
	"github.com/tandemrun/tandem/program"
	"github.com/tandemrun/tandem/unit"
	"github.com/tandemrun/tandem/unit/cpu/kernel"
)

// Config says which cores a unit has.
type Config struct {
	Name string
	// CPUs are the system's numbers of the cores to pin workers to. Without
	// any, workers are not pinned.
	CPUs []int
	// Threads is the number of workers; 0 means one a core.
	Threads int
	// QoS is the scheduling class of the workers.
	QoS machine.QoS
	// ISA is the instruction set of the kernels.
	ISA kernel.ISA
}

// Unit is a set of cores with one queue. See [unit.Unit] for who may call what
// when.
type Unit struct {
	cfg  Config
	set  *kernel.Set
	pool *pool
}

// New starts the unit's workers.
func New(cfg Config) (*Unit, error) {
	if cfg.Threads == 0 {
		cfg.Threads = len(cfg.CPUs)
	}
	if cfg.Threads < 1 {
		return nil, fmt.Errorf("unit %s: %d threads", cfg.Name, cfg.Threads)
	}
	set, err := kernel.New(cfg.ISA)
	if err != nil {
		return nil, fmt.Errorf("unit %s: %w", cfg.Name, err)
	}
	cfg.CPUs = slices.Clone(cfg.CPUs)
	u := &Unit{cfg, set, newPool(cfg.Threads, cfg.CPUs, cfg.QoS)}
	if err := u.pool.qosErr; err != nil {
		return nil, errors.Join(fmt.Errorf("unit %s: %w", cfg.Name, err), u.Close())
	}
	return u, nil
}

// Name is the unit's name, such as "cpu:0".
func (u *Unit) Name() string { return u.cfg.Name }

// Kind is "cpu/" and the instruction set of the kernels.
func (u *Unit) Kind() string { return "cpu/" + u.cfg.ISA.String() }

// Threads is the number of workers.
func (u *Unit) Threads() int { return u.cfg.Threads }

// Pinned reports whether the workers are pinned to their cores; if not, the
// error says why.
func (u *Unit) Pinned() (bool, error) {
	return len(u.cfg.CPUs) > 0 && u.pool.pinErr == nil, u.pool.pinErr
}

// Bind locks the calling goroutine to its thread and to the unit's first core;
// see [unit.Binder].
func (u *Unit) Bind() { u.pool.bind() }

// Close stops the workers.
func (u *Unit) Close() error {
	u.pool.close()
	return nil
}

// Compile prepares a program's weights, caches and buffers.
func (u *Unit) Compile(ctx context.Context, p *program.Program, o unit.Options) (unit.Chunk, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if o.Slots < 1 || o.Context < 1 || o.Block < 1 {
		return nil, fmt.Errorf("unit %s: a chunk of %d slots, %d positions and blocks of %d rows", u.Name(), o.Slots, o.Context, o.Block)
	}
	if err := o.KV.Check(p, unit.KVs()...); err != nil {
		return nil, fmt.Errorf("unit %s: %w", u.Name(), err)
	}
	c := &Chunk{unit: u, p: p, o: o, matrices: map[string]*kernel.Matrix{}, vocab: 1<<31 - 1}
	begin := time.Now()
	if err := c.loadWeights(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	packed := time.Now()
	_, c.bytes.Tables = p.Bytes()
	for _, pc := range p.Caches {
		if from, ok := o.Share[pc.Layer]; ok && !pc.Own {
			owner, ok := from.(*Chunk)
			if !ok || owner.unit != u {
				return nil, errors.Join(c.Close(), fmt.Errorf("unit %s: the cache of layer %d is shared from a chunk on another unit", u.Name(), pc.Layer))
			}
			x := owner.cache(pc.Layer)
			if x == nil || x.rows != o.CacheRows(pc) || x.kv != o.KV || len(x.k) != o.Slots {
				return nil, errors.Join(c.Close(), fmt.Errorf("unit %s: the chunk that shares the cache of layer %d has none of that shape", u.Name(), pc.Layer))
			}
			c.caches = append(c.caches, x)
			continue
		}
		x := newCache(pc, o)
		c.caches = append(c.caches, x)
		c.bytes.KV += x.bytes()
	}
	if err := c.compile(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	c.phases = []unit.Phase{{Name: "repack", Time: packed.Sub(begin), Bytes: int64(len(c.panels.Data))}, {Name: "compile", Time: time.Since(packed)}}
	return c, nil
}
