// Package metal runs the lists of dispatches of package gpu on a device of
// Apple's Metal, through the Objective-C runtime and without cgo.
//
// It has not run on hardware yet. What has: its messages, against a runtime
// made for tests that answers them as Apple's documentation says and computes
// through Vulkan; see the tests.
//
// The kernels are the Metal sources of package shader, compiled by the system
// when they are first used, with fast math off. Metal has no command buffers
// that can be run again, so [Device.Record] keeps the list and [Device.Run]
// encodes it each time.
//
// Everything but the few functions of [Runtime] is the same on every system.
package metal

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/tandemrun/tandem/unit/gpu/compute"
)

// ErrNoMetal is the error of Open on other systems than macOS, and on machines
// without a device.
var ErrNoMetal = errors.New("there is no Metal here: it needs macOS and a device")

// An Object is an Objective-C object; 0 is nil.
type Object uintptr

// Size is MTLSize.
type Size struct{ Width, Height, Depth uint64 }

// Range is NSRange.
type Range struct{ Location, Length uint64 }

// A Runtime sends messages. Arguments are integers, bool, strings (as C strings),
// pointers, Objects, Size and Range. Objects that a message's name says are the
// caller's (alloc, new, copy, retain) are to be released by it.
type Runtime interface {
	// Devices is MTLCopyAllDevices; the objects are the caller's.
	Devices() []Object
	Class(name string) Object
	Send(to Object, selector string, args ...any) Object
	// Float, Text and Pointer send messages that answer a double, a C string, a
	// pointer.
	Float(to Object, selector string) float64
	Text(to Object, selector string) string
	Pointer(to Object, selector string) unsafe.Pointer
	// Pool begins an autorelease pool of the calling thread, which stays the
	// goroutine's until the function that Pool returns drains the pool.
	Pool() func()
}

// Info is what a device says of itself.
type Info struct {
	Index   int
	Name    string
	Unified bool  // it works in the machine's memory
	Buffer  int64 // most bytes of a buffer
	Memory  int64 // what it may use without slowing down
}

// Constants of Metal's headers.
const (
	storageShared, storagePrivate = 0 << 4, 2 << 4 // MTLResourceStorageMode
	dispatchConcurrent            = 1              // MTLDispatchType
	barrierBuffers                = 1              // MTLBarrierScope
	typeUInt                      = 33             // MTLDataType
	statusError                   = 5              // MTLCommandBufferStatus
	errorMemory, errorRevoked     = 8, 4           // MTLCommandBufferError
	errorRemoved                  = 11
)

// Devices lists the devices of a runtime.
func Devices(rt Runtime) []Info {
	defer rt.Pool()()
	var out []Info
	for i, d := range rt.Devices() {
		out = append(out, info(rt, i, d))
		rt.Send(d, "release")
	}
	return out
}

func info(rt Runtime, index int, d Object) Info {
	return Info{
		Index:   index,
		Name:    rt.Text(rt.Send(d, "name"), "UTF8String"),
		Unified: rt.Send(d, "hasUnifiedMemory")&0xff != 0,
		Buffer:  int64(rt.Send(d, "maxBufferLength")),
		Memory:  int64(rt.Send(d, "recommendedMaxWorkingSetSize")),
	}
}

// Device is an open device with one queue. It is a [compute.Device].
type Device struct {
	rt            Runtime
	info          Info
	pageSize      int64
	device, queue Object
	pipelines     map[compute.Variant]Object
	libraries     map[string]Object
	lost          error
}

// Open opens device i of [Devices]. Memory that is imported begins and ends at
// multiples of pageSize.
func Open(rt Runtime, i, pageSize int) (*Device, error) {
	defer rt.Pool()()
	all := rt.Devices()
	for j, d := range all {
		if j != i {
			rt.Send(d, "release")
		}
	}
	if i < 0 || i >= len(all) {
		return nil, fmt.Errorf("there is no Metal device %d; there are %d", i, len(all))
	}
	d := &Device{rt: rt, info: info(rt, i, all[i]), pageSize: int64(pageSize), device: all[i], pipelines: map[compute.Variant]Object{}, libraries: map[string]Object{}}
	if d.queue = rt.Send(d.device, "newCommandQueue"); d.queue == 0 {
		return nil, errors.Join(fmt.Errorf("%s has no room for another command queue", d.info.Name), d.Close())
	}
	return d, nil
}

// Info is what the device says of itself.
func (d *Device) Info() Info { return d.info }

// Limits are those of Metal's feature tables that hold for all devices of
// macOS; offsets are aligned for the constant address space of Intel machines.
func (d *Device) Limits() compute.Limits {
	l := compute.Limits{Binding: d.info.Buffer, Align: 256, Allocation: d.info.Buffer, Groups: [3]int{1<<16 - 1, 1<<16 - 1, 1<<16 - 1}}
	if d.info.Unified {
		l.Import = d.pageSize
	}
	return l
}

// Close frees the device. Its buffers and commands have been closed before.
func (d *Device) Close() error {
	for v, p := range d.pipelines {
		d.release(p)
		delete(d.pipelines, v)
	}
	for name, l := range d.libraries {
		d.release(l)
		delete(d.libraries, name)
	}
	d.release(d.queue)
	d.release(d.device)
	d.queue, d.device = 0, 0
	return nil
}

func (d *Device) release(o Object) {
	if o != 0 {
		d.rt.Send(o, "release")
	}
}

// text makes an NSString, which the pool releases.
func (d *Device) text(s string) Object {
	return d.rt.Send(d.rt.Class("NSString"), "stringWithUTF8String:", s)
}

// failure makes an error of an NSError.
func (d *Device) failure(what string, e Object) error {
	if e == 0 {
		return fmt.Errorf("%s: Metal gives no reason", what)
	}
	return fmt.Errorf("%s: %s (error %d)", what, d.rt.Text(d.rt.Send(e, "localizedDescription"), "UTF8String"), int64(d.rt.Send(e, "code")))
}

var _ compute.Device = (*Device)(nil)
