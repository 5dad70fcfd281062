// Package compute is what a graphics device must do to run chunks: hold
// memory, build kernels, and run a recorded list of dispatches. Packages vulkan
// and metal do it; package gpu writes the lists and knows neither.
//
// A device has one queue. Its methods are called from one goroutine at a time,
// except Alloc, Import, Pipeline and Free, which may be called from several.
// Errors of a lost device match [ErrLost], those of exhausted memory
// [ErrMemory].
package compute

import "errors"

// ErrLost says that the device does not answer any longer.
var ErrLost = errors.New("the device is lost")

// ErrMemory says that the device has no room.
var ErrMemory = errors.New("the device is out of memory")

// Limits are what a device can do.
type Limits struct {
	Name          string
	Binding       int64  // most bytes that one binding shows
	Align         int64  // of the offset of a binding
	Groups        [3]int // most workgroups of a dispatch
	Invocations   int    // most invocations of a workgroup
	Shared        int    // bytes of shared memory of a workgroup
	Push          int    // bytes of push constants
	Import        int64  // alignment of host memory that can be imported; 0 if none can
	HostIsDevice  bool   // device memory is the machine's memory
	Software      bool   // the device is the CPU
	SubgroupWidth int    // for information: kernels do not rely on it
}

// Memory is what a buffer is for.
type Memory uint8

const (
	// Local is read and written by kernels; the host may not see it.
	Local Memory = iota
	// Upload is written by the host and read by kernels.
	Upload
	// Download is written by kernels and read by the host.
	Download
)

// A Buffer is memory that kernels can use.
type Buffer interface {
	Size() int64
	// Bytes is the buffer as the host sees it, nil if it cannot. What the host
	// wrote before Run is seen by the commands, and the host sees after Run what
	// they wrote.
	Bytes() []byte
	Free()
}

// A Variant is a kernel of package shader with the values of its
// specialisation constants 0, 1, ...
type Variant struct {
	Kernel    string
	Constants [8]uint32
}

// A Binding is a part of a buffer. Offset is a multiple of [Limits.Align], Size
// a multiple of 4 and at most [Limits.Binding].
type Binding struct {
	Buffer       Buffer
	Offset, Size int64
}

// A Dispatch is one run of a kernel. Bindings are storage buffers 0, 1, ... of
// set 0.
type Dispatch struct {
	Variant
	Bind   []Binding
	Push   []uint32 // push constants, at most 32
	Groups [3]int
	// Barrier: the dispatch sees what all earlier ones wrote, and they are done
	// with what it writes.
	Barrier bool
	// For traces: the operation, its class of rows, the weights and cache rows
	// it reads, its arithmetic.
	Op, Rows   string
	Bytes, Ops int64
}

// Commands are a list of dispatches, ready to run any number of times.
type Commands interface {
	Free()
}

// A Device runs kernels.
type Device interface {
	Limits() Limits
	// Alloc makes a buffer, zeroed.
	Alloc(size int64, m Memory) (Buffer, error)
	// Record prepares a list; its pipelines are made if they are not yet there.
	// If timed, Run measures each dispatch.
	Record(list []Dispatch, timed bool) (Commands, error)
	// Run runs commands and waits. The result is the nanoseconds of each
	// dispatch if they were recorded timed.
	Run(c Commands) ([]int64, error)
	Close() error
}
