// Package vulkan is the part of the Vulkan API that compute needs, called
// without cgo through the system's loader library.
//
// [Open] loads the library and finds the devices; [Instance.Device] opens one.
// A [Device] has one queue. On it one makes buffers and pipelines, records
// commands once ([Device.Record]) and submits them as often as needed
// ([Device.Submit]), which returns when the device has done them.
//
// # Promises
//
// A missing library, a driver that is too old and a missing layer are errors
// that say so; no feature is used that the device does not have, and none is
// enabled that is not in [Features]. A call that failed is an [Error] with its
// name; a device that was lost answers every later call with [DeviceLost].
//
// A Device and what was made on it are used by one goroutine at a time;
// different devices may be used at once. What was made on a device is closed
// before it, and a device before its instance. Recorded commands keep the
// buffers and pipelines they name in use until they are closed.
//
// The layouts of the structures are those of the 64-bit platforms; the package
// knows no images, no graphics and no windows, and nothing of models.
package vulkan

import (
	"errors"
	"fmt"
)

// Config says how the loader is opened. Its zero value is what users want.
type Config struct {
	// Library is the loader library's file; "" is the system's.
	Library string
	// Validate turns the Khronos validation layer on. What it says is kept, see
	// [Instance.Messages]. It is an error if the layer is not installed.
	Validate bool
	// SoftwareThreads, if not 0, is how many threads Mesa's software driver
	// computes with: the variable LP_NUM_THREADS, set for the C code of this
	// process. They have the affinity of the thread that calls Open and Device.
	SoftwareThreads int
	// Fault, if not nil, is asked before each call that can fail, by its name
	// ("vkAllocateMemory"). A result other than [Success] stands for the call,
	// which is not made. Tests use it to see what becomes of errors.
	Fault func(call string) Result
	// Alter, if not nil, may change what a device says of itself before anybody
	// sees it: hide features, lower limits. Tests use it.
	Alter func(*Info)
}

// Version is a version of the API.
type Version uint32

// MakeVersion makes a version.
func MakeVersion(major, minor, patch uint32) Version {
	return Version(major<<22 | minor<<12 | patch)
}

// Required is the oldest version of the API that drivers must have.
const Required = Version(1<<22 | 2<<12)

func (v Version) String() string {
	return fmt.Sprintf("%d.%d.%d", v>>22&0x7f, v>>12&0x3ff, v&0xfff)
}

// Result is what a call answers.
type Result int32

// Results that are told apart.
const (
	Success          Result = 0
	Timeout          Result = 2
	incomplete       Result = 5
	OutOfHostMemory  Result = -1
	OutOfMemory      Result = -2 // of the device
	InitFailed       Result = -3
	DeviceLost       Result = -4
	MapFailed        Result = -5
	LayerMissing     Result = -6
	ExtensionMissing Result = -7
	FeatureMissing   Result = -8
	NoDriver         Result = -9
	TooManyObjects   Result = -10
	OutOfPoolMemory  Result = -1000069000
	InvalidHandle    Result = -1000072003
)

func (r Result) Error() string {
	switch r {
	case Success:
		return "no error"
	case Timeout:
		return "it took too long"
	case OutOfHostMemory:
		return "out of host memory"
	case OutOfMemory:
		return "out of device memory"
	case InitFailed:
		return "the driver could not be initialised"
	case DeviceLost:
		return "the device was lost (it was reset, removed, or hung)"
	case MapFailed:
		return "memory could not be mapped"
	case LayerMissing:
		return "a layer is not installed"
	case ExtensionMissing:
		return "an extension is missing"
	case FeatureMissing:
		return "a feature is missing"
	case NoDriver:
		return "there is no compatible driver"
	case TooManyObjects:
		return "too many objects"
	case OutOfPoolMemory:
		return "out of pool memory"
	case InvalidHandle:
		return "the memory cannot be imported"
	}
	return fmt.Sprintf("VkResult %d", int32(r))
}

// An Error is a call that failed. It unwraps to its [Result].
type Error struct {
	Call   string
	Result Result
}

func (e *Error) Error() string { return e.Call + ": " + e.Result.Error() }
func (e *Error) Unwrap() error { return e.Result }

// ErrNoLoader is the error of Open without a loader library.
var ErrNoLoader = errors.New("no Vulkan loader library")

// ErrNoDriver is the error of Open where the loader finds no driver.
var ErrNoDriver = errors.New("no Vulkan driver is installed")
