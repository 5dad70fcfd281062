package tandem

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/tandemrun/tandem/engine"
	"github.com/tandemrun/tandem/machine"
	"github.com/tandemrun/tandem/model"
	"github.com/tandemrun/tandem/unit"
)

// Options say how a model is laid out. The zero value is four chunks on all
// cores that this process may use, one stream, and a context of 4096 positions
// or the model's own if that is less.
type Options struct {
	// Chunks is the number of chunks, balanced by bytes; 0 is the default split
	// in four. Split gives the first layer of each later chunk instead.
	Chunks int
	Split  []int
	// Place is a unit for all chunks ("cpu:0"), or pairs ("c1=cpu:0,c3=cpu:1");
	// chunks that are not named run on cpu.
	Place string
	// PlacePrefill is the same for prefill, which is every evaluation of more than
	// one token at once; chunks that are not named run where Place has them. A
	// chunk whose unit differs is loaded on both, and the cache rows that one side
	// lacks follow when a stream goes over to it.
	PlacePrefill string
	// Threads limits the workers of each unit; 0 is one a core.
	Threads int
	// Block is the most positions of a prompt in one task; 0 is 512.
	Block int
	// BlockBeside is the same while other streams decode, whose steps may have to
	// wait for such a task; 0 is 32.
	BlockBeside int
	// Context is how many positions a stream can have; 0 is the default above.
	Context int
	// Streams is how many streams can be open at once; 0 is 1.
	Streams int
	// Merge is the most streams whose rows run as one task, which reads the
	// weights once; 0 is as many as wait for a chunk at once, and 1 keeps streams
	// apart, so that they overlap on different units.
	Merge int
	// KV is the type of cached keys and values: f32 (also the default), f16 or
	// q8_0, which needs heads of a multiple of 32 values.
	KV string
	// FileLayout uses the weights as the file lays them out (--specialize=off)
	// instead of laying them out anew for the unit's instructions: a faster load
	// and slower steps, with equal bits.
	FileLayout bool
	// QoS is the scheduling class of the workers of CPU units: background,
	// utility or user-initiated; "" leaves them as the process was started. The
	// lower two keep the unit cpu to efficiency cores, where the system tells
	// them. It is an error where the system has no such classes.
	QoS string
	// TimeOps measures each operation for Engine.OpTimes; steps are a little
	// slower.
	TimeOps bool
	// Progress, if not nil, is told as weights become ready, in bytes. It may be
	// called from several goroutines.
	Progress func(done, total int64)
	// Observe, if not nil, is told what each task took. It is called from the
	// units' goroutines and must be quick.
	Observe func(Record)
	// Tally, if not nil, counts what the engine does.
	Tally *Tally
	// Duty is the largest share of the time that a unit may be busy, from above 0
	// to 1; 0 is no limit. Units rest between tasks accordingly, and more the
	// hotter the machine is, where that is known (docs/sustain.md).
	Duty float64

	// besideUnits are units of the layouts that this one is compared with; see
	// openUnits.
	besideUnits []string
}

// defaults of Options.
const (
	defaultBlock = 512
	// On two cores of a Xeon with AMX, Gemma 3 1B in Q4_0 prefills 246 tokens a
	// second in blocks of 32, and 268 in blocks of 512, of which one takes 1.9 s.
	defaultBeside  = 32
	defaultContext = 4096
)

type (
	// A Record is what one task took.
	Record = engine.Record
	// An OpTime is what one kind of operation took.
	OpTime = unit.OpTime
	// A Chunk describes a chunk of an engine.
	Chunk = engine.ChunkInfo
)

// layout is Options with every choice made.
type layout struct {
	ranges []model.Range
	names  []string // unit of each chunk
	// prefill is the same for prefill; twins are the chunks where it differs.
	prefill []string
	twins   []int
	beside  int // see Options.BlockBeside
	o       unit.Options
	qos     machine.QoS
}

func (m *Model) layout(o Options) (layout, error) {
	var l layout
	var err error
	switch {
	case o.Chunks < 0:
		return l, fmt.Errorf("--chunks %d: it must be at least 1", o.Chunks)
	case o.Chunks > 0 && len(o.Split) > 0:
		return l, errors.New("--chunks and --split exclude each other")
	case o.Chunks > 0:
		l.ranges, err = m.model.Balanced(o.Chunks)
	case len(o.Split) > 0:
		l.ranges, err = m.model.SplitAt(o.Split)
	default:
		l.ranges, err = m.model.DefaultSplit()
	}
	if err != nil {
		return l, err
	}
	if l.names, err = place("place", o.Place, slices.Repeat([]string{defaultUnit}, len(l.ranges))); err != nil {
		return l, err
	}
	if l.prefill, err = place("place-prefill", o.PlacePrefill, l.names); err != nil {
		return l, err
	}
	for i, name := range l.prefill {
		if name != l.names[i] {
			l.twins = append(l.twins, i)
		}
	}
	if o.Threads < 0 {
		return l, fmt.Errorf("--threads %d: it must be at least 1", o.Threads)
	}
	l.o = unit.Options{Slots: max(o.Streams, 1), Context: o.Context, Block: o.Block}
	if l.o.Context == 0 {
		l.o.Context = min(defaultContext, m.model.Context)
	}
	if l.o.Context < 1 || l.o.Context > m.model.Context {
		return l, fmt.Errorf("--ctx %d: the model was trained for up to %d positions", l.o.Context, m.model.Context)
	}
	if l.o.Block == 0 {
		l.o.Block = defaultBlock
	}
	if l.o.Block < 1 {
		return l, fmt.Errorf("--block %d: it must be at least 1", l.o.Block)
	}
	l.o.Block = min(l.o.Block, l.o.Context)
	if o.Duty < 0 || o.Duty > 1 {
		return l, fmt.Errorf("a duty cycle of %g: it must be above 0 and at most 1, or 0 for none", o.Duty)
	}
	if o.BlockBeside < 0 {
		return l, fmt.Errorf("--block-beside %d: it must be at least 1", o.BlockBeside)
	}
	l.beside = cmp.Or(o.BlockBeside, defaultBeside)
	if o.Merge < 0 {
		return l, fmt.Errorf("--merge %d: it must be at least 1, or 0 for as many as wait", o.Merge)
	}
	if l.qos, err = machine.ParseQoS(o.QoS); err != nil {
		return l, fmt.Errorf("--qos: %w", err)
	}
	if o.KV != "" {
		if l.o.KV, err = unit.ParseKV(o.KV); err != nil {
			return l, fmt.Errorf("--kv: %w", err)
		}
		for i, x := range m.model.Layers {
			if err := l.o.KV.CheckHeads(i, x.KeyDim, x.ValueDim); err != nil {
				return l, fmt.Errorf("--kv %s: %s: %w", o.KV, m.Name(), err)
			}
		}
	}
	return l, nil
}

// units are the names of the layout's units, each once.
func (l *layout) units() []string {
	var out []string
	for _, name := range slices.Concat(l.names, l.prefill) {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// plan is the memory that each chunk of a layout needs, and behind them each
// twin.
func (m *Model) plan(l layout) ([]unit.Bytes, error) {
	type place struct {
		layer int
		unit  string
	}
	kept := map[place]bool{} // on the unit of the chunk that computes the layer: no copy
	for i, r := range l.ranges {
		for layer := r.First; layer < r.Last; layer++ {
			kept[place{layer, l.names[i]}] = true
			kept[place{layer, l.prefill[i]}] = true
		}
	}
	var out []unit.Bytes
	add := func(chunk int, name string) error {
		p, err := m.model.Program(l.ranges[chunk].First, l.ranges[chunk].Last)
		if err != nil {
			return err
		}
		o := l.o
		o.Share = map[int]unit.Chunk{}
		for _, c := range p.Caches {
			if kept[place{c.Layer, name}] {
				o.Share[c.Layer] = nil
			}
		}
		b := unit.Bytes{KV: o.CacheBytes(p), Buffers: o.BufferBytes(p, engine.WantedRows(o.Block, m.model.Vocab))}
		b.Weights, b.Tables = p.Bytes()
		out = append(out, b)
		return nil
	}
	for i, name := range l.names {
		if err := add(i, name); err != nil {
			return nil, err
		}
	}
	for _, i := range l.twins {
		if err := add(i, l.prefill[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// An Engine is a model laid out over units.
type Engine struct {
	m     *Model
	e     *engine.Engine
	notes []string
	tally *tallied   // nil: nobody counts
	duty  *dutyCycle // nil: none
}

// Open lays the model out over units and prepares its weights. The engine is
// closed before the model. A context whose caches do not fit into the memory
// that is available is refused before anything is loaded.
//
// The workers of CPU units spin while a task runs; Open raises GOMAXPROCS, if
// need be, to more than their number, so that the rest of the process runs.
func (m *Model) Open(ctx context.Context, o Options) (*Engine, error) {
	l, err := m.layout(o)
	if err != nil {
		return nil, err
	}
	if err := m.checkMemory(l); err != nil {
		return nil, err
	}
	units, workers, err := openUnits(slices.Concat(l.names, l.prefill), o.Threads, l.qos, o.besideUnits...)
	if err != nil {
		return nil, err
	}
	leaveRoom(workers)
	var duty *dutyCycle
	var ask func() float64
	if o.Duty != 0 {
		duty = newDutyCycle(ctx, o.Duty)
		ask = duty.share
	}
	var count *tallied
	if o.Tally != nil {
		count = o.Tally.add(len(l.ranges), slices.Concat(l.names, l.prefill))
		o.Observe = count.observer(o.Observe)
	}
	e, err := engine.New(ctx, m.model, engine.Config{
		Ranges: l.ranges, Units: units[:len(l.ranges)], PrefillUnits: units[len(l.ranges):], Slots: l.o.Slots, Context: l.o.Context, Block: l.o.Block, BlockBeside: l.beside, Merge: o.Merge, KV: l.o.KV,
		FileLayout: o.FileLayout, Release: m.file.Release, TimeOps: o.TimeOps, Progress: o.Progress, Observe: o.Observe,
		Duty: ask,
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.Name(), err)
	}
	if count != nil {
		count.opened()
	}
	return &Engine{m, e, unitNotes(units), count, duty}, nil
}

// leaveRoom sees to it that the process runs beside so many spinning workers.
func leaveRoom(workers int) {
	if runtime.GOMAXPROCS(0) <= workers {
		runtime.GOMAXPROCS(workers + 1)
	}
}

func mib(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// Chunks lists the chunks in order, on the units of decode; Record.Chunk is an
// index into it.
func (e *Engine) Chunks() []Chunk { return e.e.Chunks() }

// PrefillChunks lists the chunks that are loaded once more, because prefill has
// them on another unit; see Options.PlacePrefill.
func (e *Engine) PrefillChunks() []Chunk { return e.e.PrefillChunks() }

// Units lists the engine's units, those of prefill alone last; Record.Unit is an index into it.
func (e *Engine) Units() []string { return e.e.Units() }

// OpTimes is what each kind of operation took since the last call, for an
// engine opened with TimeOps, while no stream is at work.
func (e *Engine) OpTimes() []OpTime { return e.e.OpTimes() }

// Notes are what a person should know about the units as they were opened, one
// sentence each, such as workers that could not be pinned to their cores.
func (e *Engine) Notes() []string { return e.notes }

// Context is how many positions a stream can have.
func (e *Engine) Context() int { return e.e.Context() }

// NewStream takes a free stream, waiting for one until ctx is done.
func (e *Engine) NewStream(ctx context.Context) (*Stream, error) {
	s, err := e.e.Stream(ctx)
	if err != nil {
		return nil, err
	}
	return &Stream{e.m, s}, nil
}

// Close ends the streams' calls and frees the units.
func (e *Engine) Close() error {
	if e.tally != nil {
		e.tally.close()
	}
	return e.e.Close()
}
