// Package engine runs streams through a model that is split into chunks on
// units.
//
// # Tasks and queues
//
// Each unit has one queue and one goroutine that works it off. A stream's work
// is a sequence of blocks; a block is one task for each chunk that has
// something to do for it. Dependencies between tasks are explicit: a chunk
// needs what earlier chunks hand over for the same block, its own cache as the
// stream's previous block left it, and may overwrite rows of a cache only when
// the chunks that share it have read them. A task goes into its unit's queue
// when its dependencies are done. Queues are first come, first served among
// streams: of the tasks that one stream has ready for a unit the next one comes
// after those of other streams that came meanwhile. So a decode step waits, at
// each chunk that it comes to, for at most one task of another stream's long
// prefill, and in all for at most one block of it on each unit. That prefill's
// blocks are smaller while others decode ([Config.BlockBeside]).
//
// When a unit is free and tasks of several streams for the same chunk are
// waiting in its queue, they run as one, as far as [Config.Merge] and the chunk
// (see [unit.Limited]) allow: the weights are read once. So that streams meet, of
// decode tasks that may be merged the one of the earliest chunk goes first. And
// so that they stay together, a unit with nothing else to do waits for streams
// whose steps ended with one task to ask for the next ones, for a sixteenth of
// what the step took at most, unless that is less than 100 µs.
//
// Tasks of different units overlap whenever both queues have work. There is no
// mode for either. So that streams which began together do not follow each other
// through the units one by one, of decode tasks that are kept apart the one of the
// latest chunk goes first, if there are no more streams than units.
//
// Units that have nothing to do park.
//
// # Prefill and decode
//
// A Forward of one token is decode and one of more tokens is prefill, whose
// chunks may be on units of their own ([Config.PrefillUnits]). A run of layers
// whose two units differ is compiled on both. There is nothing else that is
// particular to either: their tasks are of one kind and go through the same
// queues.
//
// Each place where a layer's cache is kept has, of each stream, the rows that
// came by there. When a block comes to a place that lacks rows that the block
// sees, these rows, and no others, are moved there from where they are: a task
// on that unit reads the rows of a layer and one on this unit writes them. They
// depend on and are waited for by other tasks as any task is, so they overlap
// compute where the data allow. Of a sliding window no more is moved than is
// seen.
//
// # Promises
//
// The logits of a position do not depend on what other streams do, on merging,
// on the block size or on the placement within one kind of unit.
//
// A cancelled context ends a stream's call when the tasks that units have in
// hand at that moment are done: tasks that have not begun are dropped, and those
// that need them as well. The stream goes on from where it was, and its slot is
// usable again.
//
// An Engine is safe for concurrent use; a [Stream] is used by one goroutine at
// a time.
package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tandemrun/tandem/model"
	"github.com/tandemrun/tandem/unit"
)

// Config says how a model is laid out and what the engine must hold.
type Config struct {
	Ranges []model.Range // layers of each chunk, in order
	Units  []unit.Unit   // unit of each chunk; a unit may appear several times
	// PrefillUnits are the units of the chunks for prefill; nil means Units.
	PrefillUnits []unit.Unit
	Slots        int // streams at once
	Context      int // positions of a stream
	Block        int // most rows of a stream in a task
	// BlockBeside is the same for the prefill of a stream while other streams
	// decode: what one of their steps may have to wait for. 0 means Block. Others
	// decode if one of their steps is in flight or ended less than a second ago.
	BlockBeside int
	KV          unit.KV
	// Merge is the most streams whose rows run as one task; 0 means as many as
	// wait and fit, 1 keeps streams apart.
	Merge int
	// FileLayout and Release are as in [unit.Options].
	FileLayout bool
	Release    func(data []byte)
	TimeOps    bool // as in [unit.Options]
	// Progress, if not nil, is told as weights become ready, with the total. It
	// may be called from several goroutines.
	Progress func(done, total int64)
	// Observe, if not nil, is told of each task when it is done. It is called
	// from the units' goroutines and must be quick.
	Observe func(Record)
	// Clock, if not nil, is the time of all that the engine does. Simulated units
	// bring one of their own.
	Clock Clock
	// Duty, if not nil, is the largest share of the time, in (0, 1], that a unit may
	// be busy. It is asked after each task, from the units' goroutines; see duty.go.
	Duty func() float64
}

// A Record is what one task took.
type Record struct {
	Chunk, Unit int // indices; see [Engine.Chunks] and [Engine.Units]
	Streams     int // streams whose rows ran together
	Rows        int // rows of all of them
	Wanted      int // rows whose logits were wanted
	Pos         int // first position of the first stream
	Start, End  time.Time
	// Handoff is what moved between units for this task: bytes of shared K and V
	// rows copied in and out, bytes of rows taken from another unit's chunk
	// without a copy, and the time the copies took, or taking and giving those
	// rows where the unit says that it took time (within Start and End).
	CopiedBytes, PassedBytes int64
	CopyTime                 time.Duration
	CopyOutTime              time.Duration // of CopyTime, that at the end: rows for chunks on other units
	// Device is how long the unit's device was at work, by its own clock; 0 where
	// there is none or it does not tell. The rest of the task is the host's.
	Device time.Duration
	// Parts tells the streams of the task apart. It is nil unless Config.Observe
	// is set.
	Parts []RecordPart
}

// A RecordPart is what one stream had in a task.
type RecordPart struct {
	Stream int // number of the stream, counted from 0 as streams are opened
	Slot   int
	Block  int // number of the block in its stream, counted from 0
	Pos    int // first position
	Rows   int // positions
	Wanted int // rows whose logits were wanted
	// Moved is of how many positions the task moved a layer's cache rows from
	// one unit to another; such a task computes nothing.
	Moved int
	// Submitted is when the block was asked for, and Ready when the last task
	// that this one needed was done: task After, or -1 for a task that needed
	// none. Tasks are counted from 0 as they are made; this one is Task.
	Submitted, Ready time.Time
	Task, After      int
	// From are the tasks on other units whose rows the part took.
	From []int
}

// ErrClosed is the error of calls on a closed engine.
var ErrClosed = errors.New("the engine is closed")

// Engine is a model on units. Make one with [New].
type Engine struct {
	cfg     Config
	runs    int      // of layers
	chunks  []*chunk // decode's by run, then those that only prefill has
	decode  route
	prefill route      // may be the same
	layers  [][]*store // where each layer's cache is kept
	stores  int
	queues  []*queue // one for each different unit
	vocab   int
	wanted  int // most wanted rows of a task, to bound the room for logits

	clock   Clock
	life    context.Context // until Close
	endLife context.CancelFunc

	mu      sync.Mutex
	free    []int     // slots
	seekers []*seeker // for a slot, none of which is free then
	opened  int       // streams so far
	made    int       // tasks so far
	flying  int       // blocks that are not done
	// Blocks of decode that are not done, and the newest that are, of two streams.
	stepping int
	stepped  [2]step
	closed   bool
}

// New compiles the chunks, those of different units side by side. It takes
// charge of the units and closes them in [Engine.Close]; if it fails it has
// closed them.
func New(ctx context.Context, m *model.Model, cfg Config) (*Engine, error) {
	e := &Engine{cfg: cfg, vocab: m.Vocab, clock: cfg.Clock}
	e.life, e.endLife = context.WithCancel(context.Background())
	if e.clock == nil {
		e.clock = wallClock{}
	}
	err := e.build(ctx, m)
	if err != nil {
		return nil, errors.Join(err, e.closeAll())
	}
	for s := range cfg.Slots {
		e.free = append(e.free, s)
	}
	for _, q := range e.queues {
		e.clock.Go(func() { e.serve(q) })
	}
	return e, nil
}

// A ChunkInfo describes a chunk of the engine.
type ChunkInfo struct {
	Name        string // c1, c2, ...
	First, Last int    // first and last layer
	Unit        string
	Bytes       unit.Bytes
	Load        time.Duration // what compiling it took
	Phases      []unit.Phase  // its parts, if the unit tells
}

// Chunks lists the chunks of decode in order; [Record.Chunk] is an index into
// it, on whatever unit the task was.
func (e *Engine) Chunks() []ChunkInfo { return infos(e.chunks[:e.runs]) }

// PrefillChunks lists the chunks that were compiled once more, because prefill
// has them on another unit. They have the names that they have in Chunks.
func (e *Engine) PrefillChunks() []ChunkInfo { return infos(e.chunks[e.runs:]) }

func infos(chunks []*chunk) []ChunkInfo {
	var out []ChunkInfo
	for _, c := range chunks {
		info := ChunkInfo{fmt.Sprintf("c%d", c.index+1), c.p.First, c.p.Last - 1, c.q.unit.Name(), c.c.Bytes(), c.load, nil}
		if p, ok := c.c.(unit.Phased); ok {
			info.Phases = p.Phases()
		}
		out = append(out, info)
	}
	return out
}

// Units lists the engine's units, those of prefill behind those of decode;
// [Record.Unit] is an index into it.
func (e *Engine) Units() []string {
	var out []string
	for _, q := range e.queues {
		out = append(out, q.unit.Name())
	}
	return out
}

// OpTimes adds up, by kind of operation, what the chunks measured since the
// last call, for an engine with [Config.TimeOps]. It is called with no stream's
// call in flight.
func (e *Engine) OpTimes() []unit.OpTime {
	var out []unit.OpTime
	for _, c := range e.chunks {
		t, ok := c.c.(unit.OpTimer)
		if !ok {
			continue
		}
		for _, x := range t.OpTimes() {
			i := slices.IndexFunc(out, func(y unit.OpTime) bool { return y.Name == x.Name && y.Rows == x.Rows })
			if i < 0 {
				out = append(out, x)
				continue
			}
			out[i].Calls += x.Calls
			out[i].Time += x.Time
			out[i].Bytes += x.Bytes
			out[i].Ops += x.Ops
		}
	}
	return out
}

// Context is the number of positions a stream can have.
func (e *Engine) Context() int { return e.cfg.Context }

// Vocab is the length of a row of logits.
func (e *Engine) Vocab() int { return e.vocab }

// Close waits for the tasks in hand, ends the calls of all streams with
// [ErrClosed] and frees chunks and units.
func (e *Engine) Close() error {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil
	}
	e.closed = true
	e.endLife()
	for _, w := range e.seekers {
		e.open(&w.gate)
	}
	e.wakeAll()
	for _, q := range e.queues {
		for !q.done {
			_ = e.wait(context.Background(), &q.ended) // this context never ends
		}
	}
	e.mu.Unlock()
	return e.closeAll()
}

func (e *Engine) closeAll() error {
	e.endLife()
	var errs []error
	for _, c := range e.chunks {
		if c.c != nil {
			errs = append(errs, c.c.Close())
		}
	}
	for _, q := range e.queues {
		errs = append(errs, q.unit.Close())
	}
	return errors.Join(errs...)
}
