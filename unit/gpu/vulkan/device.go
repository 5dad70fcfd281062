package vulkan

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unsafe"
)

// Device is an open device with one queue.
type Device struct {
	info    Info
	fn      functions
	v       *Instance
	handle  uintptr
	queue   uintptr
	pool    uint64 // of command buffers
	fence   uint64
	cache   uint64 // of pipelines
	staging *Buffer
	lost    error

	cacheFile string
	made      int // pipelines compiled since the cache was read
}

// Device opens device i of [Instance.Devices], with all its features.
func (v *Instance) Device(i int) (*Device, error) {
	if i < 0 || i >= len(v.devices) {
		return nil, fmt.Errorf("there is no Vulkan device %d; there are %d", i, len(v.devices))
	}
	d := &Device{info: v.devices[i], fn: v.fn, v: v}
	if d.info.Lacks != "" {
		return nil, fmt.Errorf("%s cannot be used: %s", d.info.Name, d.info.Lacks)
	}
	if err := d.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("opening %s: %w", d.info.Name, err), d.Close())
	}
	return d, nil
}

func (d *Device) open() error {
	f := d.info.Features
	var extensions []string
	for _, x := range []struct {
		name   string
		wanted bool
	}{{portabilitySubset, d.info.has(portabilitySubset)}, {hostImport, f.HostImport}, {integerDot, f.IntegerDot}, {memoryBudget, f.Budget}} {
		if x.wanted {
			extensions = append(extensions, x.name)
		}
	}
	flag := func(on bool) uint32 {
		if on {
			return 1
		}
		return 0
	}
	dot := integerDotProductFeatures{next{sType: typeIntegerDotProductFeatures}, flag(f.IntegerDot)}
	v11 := vulkan11Features{next: next{sType: typeVulkan11Features}, storageBuffer16BitAccess: flag(f.Storage16)}
	v12 := vulkan12Features{next: next{typeVulkan12Features, unsafe.Pointer(&v11)},
		storageBuffer8BitAccess: flag(f.Storage8), shaderFloat16: flag(f.Float16), shaderInt8: flag(f.Int8)}
	if f.IntegerDot {
		v11.pNext = unsafe.Pointer(&dot)
	}
	features := features2{next: next{typeFeatures2, unsafe.Pointer(&v12)}, shaderInt16: flag(f.Int16), shaderInt64: flag(f.Int64)}
	priority := float32(1)
	queue := deviceQueueCreateInfo{next: next{sType: typeDeviceQueueCreateInfo}, family: d.info.family, count: 1, priorities: &priority}
	info := deviceCreateInfo{
		next: next{typeDeviceCreateInfo, unsafe.Pointer(&features)}, queueCount: 1, queues: &queue,
		extensionCount: uint32(len(extensions)), extensions: cstrings(extensions),
	}
	if err := d.fn.call(d.fn.createDevice, d.info.handle, uintptr(unsafe.Pointer(&info)), 0, uintptr(unsafe.Pointer(&d.handle))); err != nil {
		return err
	}
	if err := load(d.fn.device(), d.fn.getDeviceProcAddr.fn, d.handle); err != nil {
		return err
	}
	d.fn.do(d.fn.getDeviceQueue, d.handle, uintptr(d.info.family), 0, uintptr(unsafe.Pointer(&d.queue)))
	pool := commandPoolCreateInfo{next: next{sType: typeCommandPoolCreateInfo}, family: d.info.family}
	if err := d.create(d.fn.createCommandPool, unsafe.Pointer(&pool), &d.pool); err != nil {
		return err
	}
	fence := fenceCreateInfo{next: next{sType: typeFenceCreateInfo}}
	return d.create(d.fn.createFence, unsafe.Pointer(&fence), &d.fence)
}

// create calls one of the functions that make an object from a structure.
func (d *Device) create(p proc, info unsafe.Pointer, handle *uint64) error {
	if d.lost != nil {
		return d.lost
	}
	return d.note(d.fn.call(p, d.handle, uintptr(info), 0, uintptr(unsafe.Pointer(handle))))
}

// destroy frees an object, if there is one.
func (d *Device) destroy(p proc, handle *uint64) {
	if *handle != 0 {
		d.fn.do(p, d.handle, uintptr(*handle), 0)
		*handle = 0
	}
}

// note remembers that the device was lost.
func (d *Device) note(err error) error {
	if d.lost == nil && errors.Is(err, DeviceLost) {
		d.lost = err
	}
	return err
}

// Info is what the device says of itself.
func (d *Device) Info() Info { return d.info }

// Free is what the process may still take of the device's own memory, and false
// where the driver does not tell.
func (d *Device) Free() (int64, bool) {
	x := d.info
	d.v.memory(&x)
	var free int64
	for _, h := range x.Heaps {
		if h.Device {
			if h.Free < 0 {
				return 0, false
			}
			free += h.Free
		}
	}
	return free, true
}

// Lost is the call that found the device lost, or nil.
func (d *Device) Lost() error { return d.lost }

// Submit has the device do what was recorded and returns when it is done. A
// context that is done before is an error; what has begun is not interrupted,
// because the device would go on writing to its buffers.
func (d *Device) Submit(ctx context.Context, r *Recorded) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return d.submit(&r.commands)
}

func (d *Device) submit(commands *uintptr) error {
	if d.lost != nil {
		return d.lost
	}
	info := submitInfo{next: next{sType: typeSubmitInfo}, commandCount: 1, commandBuffers: commands}
	if err := d.note(d.fn.call(d.fn.queueSubmit, d.queue, 1, uintptr(unsafe.Pointer(&info)), uintptr(d.fence))); err != nil {
		return err
	}
	for {
		r := d.fn.result(d.fn.waitForFences, d.handle, 1, uintptr(unsafe.Pointer(&d.fence)), 1, uintptr(10*time.Second))
		if r == Timeout {
			continue // the driver resets a device that hangs, and says so
		}
		if r < 0 {
			d.fn.do(d.fn.deviceWaitIdle, d.handle) // the commands may still run; they are freed next
			return d.note(&Error{d.fn.waitForFences.name, r})
		}
		break
	}
	return d.note(d.fn.call(d.fn.resetFences, d.handle, 1, uintptr(unsafe.Pointer(&d.fence))))
}

// Close frees the device. What was made on it has been closed.
func (d *Device) Close() error {
	if d.handle == 0 || d.fn.destroyDevice.fn == 0 {
		return nil
	}
	d.fn.do(d.fn.deviceWaitIdle, d.handle)
	err := d.saveCache()
	if d.staging != nil {
		err = errors.Join(err, d.staging.Close())
		d.staging = nil
	}
	d.destroy(d.fn.destroyPipelineCache, &d.cache)
	d.destroy(d.fn.destroyFence, &d.fence)
	d.destroy(d.fn.destroyCommandPool, &d.pool)
	d.fn.do(d.fn.destroyDevice, d.handle, 0)
	d.handle = 0
	return err
}
