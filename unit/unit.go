// Package unit is the contract between the engine and a compute unit.
//
// A [Unit] compiles a program into a [Chunk]: its weights and the KV cache of
// its own layers, resident on the unit. A chunk runs a [Task]: one block of
// rows of one stream, or of several streams merged so that the weights are
// read once.
//
// # Promises
//
// A unit has one queue: its owner calls Run, ReadKV and WriteKV of
// all its chunks from one goroutine at a time, in order. Calls on chunks of
// different units may overlap. Compile and Close are called with no Run in
// flight on the unit.
//
// On units of one kind the results of a row are equal bit for bit whatever the
// other rows of the task are, however a prompt is cut into blocks, however the
// layers are cut into chunks, and however many threads a unit has.
//
// A unit reads and writes a task's slices only while Run runs. It keeps views
// into the weights of the program, so the model's file stays open until Close.
//
// An error of Run leaves the slots of that task undefined (the engine frees
// them) and the rest of the chunk usable, unless it is a [LostError].
//
// Package unit/conformance is the suite that every unit must pass.
package unit

import (
	"context"
	"fmt"
	"time"

	"github.com/tandemrun/tandem/program"
)

// A Unit is a compute unit with one in-order queue.
type Unit interface {
	// Name is what people call the unit, such as "cpu:0".
	Name() string
	// Kind names the class of units whose results are equal bit for bit.
	Kind() string
	// Compile makes a program's chunk. Its memory is bounded by o. A cancelled
	// context stops it.
	Compile(ctx context.Context, p *program.Program, o Options) (Chunk, error)
	// Close frees the unit. Its chunks have been closed before.
	Close() error
}

// A Binder is a unit that works in the goroutine of its queue. Bind is called
// there once, before its first Run; it may lock the goroutine to its thread, so
// the goroutine does nothing else until it ends.
type Binder interface {
	Bind()
}

// Options bound what a chunk must be able to hold.
type Options struct {
	Slots   int // streams whose cache it keeps at once
	Context int // positions of a stream
	Block   int // most rows of one stream in a task
	KV      KV  // see [KV.Check]: a unit refuses what it does not have
	// Share gives, for layers whose cache the program reads but does not own,
	// the chunk on this same unit that does. The cache of a layer that is not
	// in Share is a copy, filled by WriteKV.
	Share map[int]Chunk
	// FileLayout keeps weights as the file lays them out instead of laying them
	// out anew for the unit: a faster load and slower steps. The bits of the
	// results are the same.
	FileLayout bool
	// Release, if not nil, is told of weight data that the chunk does not need
	// in memory any longer. Its pages may be dropped and come back when touched.
	Release func(data []byte)
	// TimeOps measures each operation; see [OpTimer]. It costs a little time.
	TimeOps bool
	// Progress, if not nil, is told as weights become ready. It may be called
	// from several goroutines.
	Progress func(bytes int64)
}

// CacheRows is how many rows a cache keeps for a stream: all positions, or for
// a sliding window what the rows of a block can see.
func (o Options) CacheRows(c program.Cache) int {
	if c.Window > 0 {
		return min(o.Context, c.Window+o.Block-1)
	}
	return o.Context
}

// CacheBytes is the size of the chunk's own caches and copies of caches.
func (o Options) CacheBytes(p *program.Program) int64 {
	var n int64
	for _, c := range p.Caches {
		if _, shared := o.Share[c.Layer]; !c.Own && shared {
			continue
		}
		n += int64(o.Slots) * int64(o.CacheRows(c)) * o.KV.Size(c.KeyWidth()+c.ValueWidth())
	}
	return n
}

// BufferBytes estimates the buffers of a program's chunk: a row of every buffer
// for each row of a block, and wanted rows for at most wanted of them.
func (o Options) BufferBytes(p *program.Program, wanted int) int64 {
	var n int64
	for _, b := range p.Buffers {
		rows := o.Block
		if b.Rows == program.Wanted {
			rows = min(rows, wanted)
		}
		n += 4 * int64(rows) * int64(b.Width)
	}
	return n
}

// A Chunk is a compiled program, resident on a unit.
type Chunk interface {
	// Run computes a task and returns when its results are in place.
	Run(ctx context.Context, t *Task) error
	// ReadKV copies the cache rows of a layer for positions [pos, pos+n) of a
	// slot into k and v as they are stored, and WriteKV does the reverse: what
	// ReadKV took from a cache of the same shape, on any unit. Layers are those of
	// the program's caches that are not shared from another chunk, its own as well
	// as copies; k and v have [KV.Size] of n rows.
	ReadKV(layer, slot, pos, n int, k, v []byte) error
	WriteKV(layer, slot, pos, n int, k, v []byte) error
	// Bytes is the memory of the chunk: weights as the unit keeps them, caches
	// and buffers.
	Bytes() Bytes
	Close() error
}

// Bytes is the memory of a chunk by what it is for.
type Bytes struct {
	Weights int64 // read in every decode step
	Tables  int64 // looked up by row
	KV      int64
	Buffers int64
}

// A Task is one run of a chunk. Parts are of different slots.
type Task struct {
	Parts []Part
	// Handoff is what Run says it needed, of its time, to take the rows of Parts
	// that came from another unit. A unit that reads them where they are leaves
	// it alone.
	Handoff time.Duration
	// Given is the same for putting the rows of Out where other units can read
	// them.
	Given time.Duration
	// Device is how long the device that a unit drives was at work for the task,
	// by the device's own clock; 0 if there is none or it does not tell.
	Device time.Duration
}

// A Part is a block of one stream: its tokens, at positions Pos and up, in
// cache slot Slot. In and Out follow the ports of the program. Logits has room
// for one row of the vocabulary a wanted row, if the program has a head.
type Part struct {
	Slot    int
	Pos     int
	Tokens  []int32
	Wanted  []int // rows of the block, ascending
	In, Out []Rows
	// InFrom gives, by input, the unit whose chunk handed the rows over, and nil
	// where that was this unit. Nobody need look at it.
	InFrom []Unit
	Logits []float32
}

// Rows is a part of a row-major matrix: row r begins at Data[r*Stride].
type Rows struct {
	Data   []float32
	Stride int
}

// Row returns the first n columns of row r.
func (x Rows) Row(r, n int) []float32 { return x.Data[r*x.Stride : r*x.Stride+n] }

// A Limited is a chunk that takes only so many streams in one task: it was
// compiled for a fixed batch, or takes as long for a merged task as for its
// parts one after the other.
type Limited interface {
	// MaxStreams is at least 1.
	MaxStreams() int
}

// A LostError says that the unit itself is unusable from now on.
type LostError struct {
	Unit  string
	Cause error
}

func (e *LostError) Error() string { return fmt.Sprintf("unit %s is lost: %v", e.Unit, e.Cause) }
func (e *LostError) Unwrap() error { return e.Cause }

// An OpTimer is a chunk that can tell where the time of its tasks went, if it
// was compiled with [Options.TimeOps].
type OpTimer interface {
	// OpTimes returns what was measured since the last call, by kind of
	// operation, in the order of first use, and begins anew. It is called with no
	// Run in flight.
	OpTimes() []OpTime
}

// A Phased is a chunk that can tell what the parts of its compilation took, in
// their order; together they are about the whole.
type Phased interface {
	Phases() []Phase
}

// Phase is one part of a compilation.
type Phase struct {
	Name  string // repack (laying out weights for the unit), compile (all else), or what the unit has
	Time  time.Duration
	Bytes int64 // that were written, for what is of that kind
}

// OpTime is what one kind of operation took.
type OpTime struct {
	// Name is the operation's, or what the unit does beside operations:
	// "quantize", "handoff", "wait" (workers waiting for each other).
	Name  string
	Rows  string // class of rows: "all", "wanted", or "" for neither
	Calls int
	Time  time.Duration
	Bytes int64 // weights and cache rows that were read
	Ops   int64 // arithmetic operations, a multiplication and an addition being two
}
