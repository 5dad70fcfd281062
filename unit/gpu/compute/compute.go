// Package compute is what a graphics device must do to run chunks: hold
// memory, and run a recorded list of kernels. Package gpu writes the lists and
// knows no API; it has a Device over Vulkan and one over Metal.
//
// A device has one queue. Its methods are called from one goroutine at a time.
// Errors of a lost device match [ErrLost], those of exhausted memory
// [ErrMemory].
package compute

import (
	"context"
	"errors"
	"time"
)

// ErrLost says that the device does not answer any longer.
var ErrLost = errors.New("the device is lost")

// ErrMemory says that the device has no room.
var ErrMemory = errors.New("the device is out of memory")

// Limits are what a device can do.
type Limits struct {
	Binding    int64  // most bytes that one binding shows
	Align      int64  // of the offset of a binding
	Allocation int64  // most bytes of a buffer
	Groups     [3]int // most workgroups of a dispatch
	// Lanes is the width of a subgroup, a divisor of 32, of a device that is a
	// CPU and has subgroup broadcasts; 0 for others.
	Lanes  int
	Import int64 // alignment of host memory that can be imported; 0 if none can
}

// Memory is what a buffer is for.
type Memory uint8

const (
	// Local is read and written by kernels; the host may not reach it.
	Local Memory = iota
	// Upload is written by the host and read by kernels.
	Upload
	// Download is written by kernels and read by the host.
	Download
)

// A Buffer is memory that kernels can use.
type Buffer interface {
	Size() int64
	// Bytes is the buffer as the host sees it, nil if it cannot reach it; never
	// nil for Upload and Download. What the host wrote before Run is seen by
	// the kernels, and the host sees after Run what they wrote.
	Bytes() []byte
	Close() error
}

// A Variant is a kernel of package shader with the values of its
// specialisation constants 0, 1, ...
type Variant struct {
	Kernel    string
	Constants [5]uint32
}

// A Binding is a part of a buffer. Offset is a multiple of [Limits.Align], and
// Size is at most [Limits.Binding].
type Binding struct {
	Buffer       Buffer
	Offset, Size int64
}

// A Move copies Data to a part of a buffer that the host may not reach, or from
// it if Read is set. Data has at most its size; moves of one call do not
// overlap.
type Move struct {
	At   Binding
	Data []byte
	Read bool
}

// A Dispatch is one run of a kernel. Bindings are its storage buffers in order,
// Push its push constants.
type Dispatch struct {
	Variant
	Bind   []Binding
	Push   []uint32
	Groups [3]int
	// Barrier: the dispatch begins when all earlier ones are done, and sees what
	// they wrote.
	Barrier bool
	// For traces: the operation, the class of its rows, the weights and cache
	// rows it reads and its arithmetic operations.
	Op, Rows   string
	Bytes, Ops int64
}

// Commands are a list of dispatches that can run any number of times.
type Commands interface {
	// Times are how long each dispatch took in the last Run; nil if they were
	// not recorded timed or the device cannot tell.
	Times() ([]time.Duration, error)
	// Busy is how long the device was at work in the last Run, from the first
	// dispatch to the last; 0 if it cannot tell.
	Busy() (time.Duration, error)
	Close() error
}

// A Device runs kernels.
type Device interface {
	Limits() Limits
	// Alloc makes a buffer. Its content is undefined.
	Alloc(size int64, m Memory) (Buffer, error)
	// Import makes a buffer of memory of the process without a copy, size bytes
	// from begin on, and returns the part of it that they are, or an error if that
	// cannot be done.
	Import(begin *byte, size int64) (Binding, error)
	// Transfer makes moves, in as few submissions as it can.
	Transfer(moves ...Move) error
	// Clear sets a part of a buffer to zero.
	Clear(at Binding) error
	// Record prepares a list and builds the kernels that are new.
	Record(list []Dispatch, timed bool) (Commands, error)
	// Run runs commands and returns when they are done.
	Run(ctx context.Context, c Commands) error
	Close() error
}
