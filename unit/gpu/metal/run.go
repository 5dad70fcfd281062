package metal

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"
	"unsafe"

	"github.com/tandemrun/tandem/unit/gpu/compute"
	"github.com/tandemrun/tandem/unit/gpu/shader"
)

// commands is a list with its pipelines.
type commands struct {
	list      []compute.Dispatch
	pipelines []Object // the device's
	timed     bool
	times     []time.Duration
	busy      time.Duration
}

// Times are how long each dispatch took in the last Run; see [compute.Commands].
func (c *commands) Times() ([]time.Duration, error) { return c.times, nil }

// Busy is from the begin of the first command buffer of the last Run to the end
// of the last; see [compute.Commands].
func (c *commands) Busy() (time.Duration, error) { return c.busy, nil }

// Close frees nothing: pipelines stay the device's.
func (c *commands) Close() error { return nil }

// Record keeps a list and builds the kernels that are new; see [compute.Device].
func (d *Device) Record(list []compute.Dispatch, timed bool) (compute.Commands, error) {
	if d.lost != nil {
		return nil, d.lost
	}
	defer d.rt.Pool()()
	c := &commands{list: list, timed: timed}
	for _, x := range list {
		p, err := d.pipeline(x.Variant)
		if err != nil {
			return nil, fmt.Errorf("building the kernel %s: %w", x.Kernel, err)
		}
		c.pipelines = append(c.pipelines, p)
	}
	return c, nil
}

// pipeline returns the pipeline of a kernel with its constants.
func (d *Device) pipeline(v compute.Variant) (Object, error) {
	if p, ok := d.pipelines[v]; ok {
		return p, nil
	}
	k, err := shader.Lookup(v.Kernel)
	if err != nil {
		return 0, err
	}
	library, err := d.library(k)
	if err != nil {
		return 0, err
	}
	values := d.rt.Send(d.rt.Class("MTLFunctionConstantValues"), "new")
	defer d.release(values)
	constants := v.Constants
	for i := range k.Constants {
		d.rt.Send(values, "setConstantValue:type:atIndex:", unsafe.Pointer(&constants[i]), uint64(typeUInt), uint64(i))
	}
	runtime.KeepAlive(&constants)
	var failed Object
	function := d.rt.Send(library, "newFunctionWithName:constantValues:error:", d.text("main0"), values, unsafe.Pointer(&failed))
	if function == 0 {
		return 0, d.failure("taking its function", failed)
	}
	defer d.release(function)
	p := d.rt.Send(d.device, "newComputePipelineStateWithFunction:error:", function, unsafe.Pointer(&failed))
	if p == 0 {
		return 0, d.failure("making its pipeline", failed)
	}
	if n := d.rt.Send(p, "maxTotalThreadsPerThreadgroup"); n < shader.Invocations {
		d.release(p)
		return 0, fmt.Errorf("%s runs only %d of its %d invocations at once", d.info.Name, n, shader.Invocations)
	}
	d.pipelines[v] = p
	return p, nil
}

// library compiles the source of a kernel.
func (d *Device) library(k shader.Kernel) (Object, error) {
	if l, ok := d.libraries[k.Name]; ok {
		return l, nil
	}
	if k.MSL == "" {
		return 0, errors.New("it has no source for Metal")
	}
	options := d.rt.Send(d.rt.Class("MTLCompileOptions"), "new")
	defer d.release(options)
	d.rt.Send(options, "setFastMathEnabled:", false) // it would reorder sums
	var failed Object
	l := d.rt.Send(d.device, "newLibraryWithSource:options:error:", d.text(k.MSL), options, unsafe.Pointer(&failed))
	if l == 0 {
		return 0, d.failure("compiling it", failed)
	}
	d.libraries[k.Name] = l
	return l, nil
}

// Run encodes and runs commands and returns when they are done; see
// [compute.Device]. Timed commands have a command buffer for each dispatch.
func (d *Device) Run(ctx context.Context, cs compute.Commands) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if d.lost != nil {
		return d.lost
	}
	c := cs.(*commands)
	defer d.rt.Pool()()
	var buffers []Object
	for lo := 0; lo < len(c.list); {
		hi := len(c.list)
		if c.timed {
			hi = lo + 1
		}
		b := d.rt.Send(d.queue, "commandBuffer")
		if b == 0 {
			return errors.New("no command buffer from Metal")
		}
		if err := d.encode(b, c, lo, hi); err != nil {
			return err
		}
		d.rt.Send(b, "commit") // buffers of a queue run in order
		buffers = append(buffers, b)
		lo = hi
	}
	c.times, c.busy = nil, 0
	begin := 0.0
	for i, b := range buffers {
		if err := d.wait("running", b); err != nil {
			return errors.Join(err, d.settle(buffers[i+1:]))
		}
		start, end := d.rt.Float(b, "GPUStartTime"), d.rt.Float(b, "GPUEndTime") // seconds
		if i == 0 {
			begin = start
		}
		c.busy = time.Duration(1e9 * (end - begin))
		if c.timed {
			c.times = append(c.times, time.Duration(1e9*(end-start)))
		}
	}
	return nil
}

// encode writes dispatches [lo, hi) into a command buffer.
func (d *Device) encode(b Object, c *commands, lo, hi int) error {
	e := d.rt.Send(b, "computeCommandEncoderWithDispatchType:", uint64(dispatchConcurrent))
	if e == 0 {
		return errors.New("no command encoder from Metal")
	}
	last := Object(0)
	for i := lo; i < hi; i++ {
		x := &c.list[i]
		if x.Barrier && i > lo {
			d.rt.Send(e, "memoryBarrierWithScope:", uint64(barrierBuffers))
		}
		if c.pipelines[i] != last {
			last = c.pipelines[i]
			d.rt.Send(e, "setComputePipelineState:", last)
		}
		for n, at := range x.Bind {
			d.rt.Send(e, "setBuffer:offset:atIndex:", at.Buffer.(*Buffer).object, uint64(at.Offset), uint64(n))
		}
		d.rt.Send(e, "setBytes:length:atIndex:", unsafe.Pointer(&x.Push[0]), uint64(4*len(x.Push)), uint64(shader.PushIndex))
		d.rt.Send(e, "dispatchThreadgroups:threadsPerThreadgroup:",
			Size{uint64(x.Groups[0]), uint64(x.Groups[1]), uint64(x.Groups[2])}, Size{shader.Invocations, 1, 1})
	}
	d.rt.Send(e, "endEncoding")
	runtime.KeepAlive(c)
	return nil
}

// wait waits for a command buffer and says what became of it.
func (d *Device) wait(what string, b Object) error {
	d.rt.Send(b, "waitUntilCompleted")
	if d.rt.Send(b, "status") != statusError {
		return nil
	}
	e := d.rt.Send(b, "error")
	err := d.failure(what, e)
	if e == 0 {
		return err
	}
	switch int64(d.rt.Send(e, "code")) {
	case errorMemory:
		return errors.Join(compute.ErrMemory, err)
	case errorRemoved, errorRevoked:
		d.lost = errors.Join(compute.ErrLost, err)
		return d.lost
	}
	return err
}

// settle waits for command buffers that came behind one that failed.
func (d *Device) settle(buffers []Object) error {
	for _, b := range buffers {
		d.rt.Send(b, "waitUntilCompleted")
	}
	return nil
}
