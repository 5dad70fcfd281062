package vulkan

import (
	"errors"
	"fmt"
	"time"
	"unsafe"
)

// Commands is what the device shall do, in order. Only barriers make a command
// see what earlier ones wrote; without one between them they may run at once.
// Errors are kept and returned by [Device.Record].
type Commands struct {
	d      *Device
	list   []command
	bound  *Pipeline
	sets   int // descriptor sets
	binds  int // descriptors
	stamps int
	err    error
}

// command is one call in a command buffer; sets are made when their number is
// known.
type command func(r *Recorded, sets *setMaker)

// Recorded is commands that can be submitted any number of times.
type Recorded struct {
	d        *Device
	commands uintptr
	pool     uint64 // of descriptor sets
	queries  uint64
	stamps   int
}

// Record calls f to fill in commands and records them.
func (d *Device) Record(f func(c *Commands)) (*Recorded, error) {
	if d.lost != nil {
		return nil, d.lost
	}
	c := &Commands{d: d}
	f(c)
	if c.err != nil {
		return nil, fmt.Errorf("recording commands: %w", c.err)
	}
	r := &Recorded{d: d, stamps: c.stamps}
	if err := r.record(c); err != nil {
		return nil, errors.Join(fmt.Errorf("recording commands: %w", err), r.Close())
	}
	return r, nil
}

func (c *Commands) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
}

// check checks a range of a command.
func (c *Commands) check(x Range) bool {
	ok := x.Buffer != nil && x.Buffer.d == c.d && x.Offset >= 0 && x.Size > 0 && x.Offset+x.Size <= x.Buffer.size
	if !ok {
		c.fail("bytes %d..%d are not in the buffer", x.Offset, x.Offset+x.Size)
	}
	return ok
}

// Bind makes p the pipeline of the dispatches that follow, with its buffers in
// the order of their bindings.
func (c *Commands) Bind(p *Pipeline, buffers ...Range) {
	if len(buffers) != p.bindings {
		c.fail("%d buffers for a shader of %d", len(buffers), p.bindings)
		return
	}
	l := c.d.info.Limits
	list := make([]descriptorBufferInfo, len(buffers))
	for i, x := range buffers {
		if !c.check(x) {
			return
		}
		if x.Offset%l.StorageAlign != 0 || x.Size > l.StorageRange {
			c.fail("binding %d: %d bytes from %d; %s allows %d at once, from a multiple of %d", i, x.Size, x.Offset, c.d.info.Name, l.StorageRange, l.StorageAlign)
			return
		}
		list[i] = descriptorBufferInfo{x.Buffer.handle, uint64(x.Offset), uint64(x.Size)}
	}
	c.bound = p
	c.sets++
	c.binds += len(list)
	d := c.d
	c.list = append(c.list, func(r *Recorded, sets *setMaker) {
		const compute = 1
		set := sets.set(p, list)
		if sets.err != nil {
			return
		}
		d.fn.do(d.fn.cmdBindPipeline, r.commands, compute, uintptr(p.handle))
		d.fn.do(d.fn.cmdBindDescriptorSets, r.commands, compute, uintptr(p.layout), 0, 1, uintptr(unsafe.Pointer(&set)), 0, 0)
	})
}

// Push sets the push constants of the dispatches that follow, for the pipeline
// that is bound.
func (c *Commands) Push(data []byte) {
	p := c.bound
	if p == nil || len(data) != p.push {
		c.fail("%d bytes of push constants for a shader that takes others", len(data))
		return
	}
	if len(data) == 0 {
		return
	}
	data = append([]byte(nil), data...)
	d := c.d
	c.list = append(c.list, func(r *Recorded, _ *setMaker) {
		d.fn.do(d.fn.cmdPushConstants, r.commands, uintptr(p.layout), computeStage, 0, uintptr(len(data)), uintptr(unsafe.Pointer(&data[0])))
	})
}

// Dispatch runs x × y × z workgroups of the pipeline that is bound.
func (c *Commands) Dispatch(x, y, z int) {
	most := c.d.info.Limits.Groups
	if c.bound == nil || x < 1 || y < 1 || z < 1 || x > most[0] || y > most[1] || z > most[2] {
		c.fail("%d × %d × %d workgroups; %s allows %d × %d × %d", x, y, z, c.d.info.Name, most[0], most[1], most[2])
		return
	}
	d := c.d
	c.list = append(c.list, func(r *Recorded, _ *setMaker) {
		d.fn.do(d.fn.cmdDispatch, r.commands, uintptr(x), uintptr(y), uintptr(z))
	})
}

const (
	stageCompute, stageTransfer, stageBottom, stageHost  = 0x800, 0x1000, 0x2000, 0x4000
	shaderRead, shaderWrite, transferRead, transferWrite = 0x20, 0x40, 0x800, 0x1000
	hostRead                                             = 0x2000
)

func (r *Recorded) barrier(srcStage, dstStage, src, dst uint32) {
	b := memoryBarrier{next{sType: typeMemoryBarrier}, src, dst}
	r.d.fn.do(r.d.fn.cmdPipelineBarrier, r.commands, uintptr(srcStage), uintptr(dstStage), 0, 1, uintptr(unsafe.Pointer(&b)), 0, 0, 0, 0)
}

// Barrier makes the commands that follow wait for those before and see what
// they wrote.
func (c *Commands) Barrier() {
	c.list = append(c.list, func(r *Recorded, _ *setMaker) {
		r.barrier(stageCompute|stageTransfer, stageCompute|stageTransfer, shaderWrite|transferWrite, shaderRead|shaderWrite|transferRead|transferWrite)
	})
}

// Copy copies src to dst, which has its size.
func (c *Commands) Copy(dst, src Range) {
	if !c.check(dst) || !c.check(src) {
		return
	}
	if dst.Size != src.Size {
		c.fail("a copy of %d bytes to %d", src.Size, dst.Size)
		return
	}
	d := c.d
	c.list = append(c.list, func(r *Recorded, _ *setMaker) {
		x := bufferCopy{uint64(src.Offset), uint64(dst.Offset), uint64(src.Size)}
		d.fn.do(d.fn.cmdCopyBuffer, r.commands, uintptr(src.Buffer.handle), uintptr(dst.Buffer.handle), 1, uintptr(unsafe.Pointer(&x)))
	})
}

// Fill sets all words of x, whose offset and size are multiples of 4.
func (c *Commands) Fill(x Range, word uint32) {
	if !c.check(x) {
		return
	}
	if x.Offset%4 != 0 || x.Size%4 != 0 {
		c.fail("bytes %d..%d are no words", x.Offset, x.Offset+x.Size)
		return
	}
	d := c.d
	c.list = append(c.list, func(r *Recorded, _ *setMaker) {
		d.fn.do(d.fn.cmdFillBuffer, r.commands, uintptr(x.Buffer.handle), uintptr(x.Offset), uintptr(x.Size), uintptr(word))
	})
}

// Timestamp notes when all commands before it were done. Timestamps are counted
// from 0. Without Limits.TimestampNanos it does nothing.
func (c *Commands) Timestamp() {
	d, i := c.d, c.stamps
	c.stamps++
	if d.info.Limits.TimestampNanos == 0 {
		return
	}
	c.list = append(c.list, func(r *Recorded, _ *setMaker) {
		d.fn.do(d.fn.cmdWriteTimestamp, r.commands, stageBottom, uintptr(r.queries), uintptr(i))
	})
}

// setMaker makes the descriptor sets of one recording.
type setMaker struct {
	r   *Recorded
	err error
}

func (m *setMaker) set(p *Pipeline, buffers []descriptorBufferInfo) (set uint64) {
	d := m.r.d
	info := descriptorSetAllocateInfo{next: next{sType: typeDescriptorSetAllocateInfo}, pool: m.r.pool, count: 1, layouts: &p.set}
	if err := d.note(d.fn.call(d.fn.allocateDescriptorSets, d.handle, uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&set)))); err != nil {
		m.err = errors.Join(m.err, err)
		return 0
	}
	writes := make([]writeDescriptorSet, len(buffers))
	for i := range buffers {
		writes[i] = writeDescriptorSet{next: next{sType: typeWriteDescriptorSet}, set: set, binding: uint32(i), count: 1, kind: storageBuffer, buffers: &buffers[i]}
	}
	d.fn.do(d.fn.updateDescriptorSets, d.handle, uintptr(len(writes)), uintptr(unsafe.Pointer(&writes[0])), 0, 0)
	return set
}

func (r *Recorded) record(c *Commands) error {
	d := r.d
	if c.sets > 0 {
		size := descriptorPoolSize{storageBuffer, uint32(c.binds)}
		pool := descriptorPoolCreateInfo{next: next{sType: typeDescriptorPoolCreateInfo}, maxSets: uint32(c.sets), sizeCount: 1, sizes: &size}
		if err := d.create(d.fn.createDescriptorPool, unsafe.Pointer(&pool), &r.pool); err != nil {
			return err
		}
	}
	timed := c.stamps > 0 && d.info.Limits.TimestampNanos > 0
	if timed {
		const timestamp = 2
		info := queryPoolCreateInfo{next: next{sType: typeQueryPoolCreateInfo}, kind: timestamp, count: uint32(c.stamps)}
		if err := d.create(d.fn.createQueryPool, unsafe.Pointer(&info), &r.queries); err != nil {
			return err
		}
	}
	alloc := commandBufferAllocateInfo{next: next{sType: typeCommandBufferAllocateInfo}, pool: d.pool, count: 1}
	if err := d.note(d.fn.call(d.fn.allocateCommandBuffers, d.handle, uintptr(unsafe.Pointer(&alloc)), uintptr(unsafe.Pointer(&r.commands)))); err != nil {
		return err
	}
	begin := commandBufferBeginInfo{next: next{sType: typeCommandBufferBeginInfo}}
	if err := d.note(d.fn.call(d.fn.beginCommandBuffer, r.commands, uintptr(unsafe.Pointer(&begin)))); err != nil {
		return err
	}
	if timed {
		d.fn.do(d.fn.cmdResetQueryPool, r.commands, uintptr(r.queries), 0, uintptr(c.stamps))
	}
	sets := &setMaker{r: r}
	for _, x := range c.list {
		if x(r, sets); sets.err != nil {
			return sets.err
		}
	}
	r.barrier(stageCompute|stageTransfer, stageHost, shaderWrite|transferWrite, hostRead)
	return d.note(d.fn.call(d.fn.endCommandBuffer, r.commands))
}

// Times are the timestamps of the last Submit, as durations since the first; nil
// without Limits.TimestampNanos.
func (r *Recorded) Times() ([]time.Duration, error) {
	d := r.d
	if r.queries == 0 {
		return nil, nil
	}
	ticks := make([]uint64, r.stamps)
	const wide = 1 | 2 // 64 bits, and wait for them
	if err := d.note(d.fn.call(d.fn.getQueryPoolResults, d.handle, uintptr(r.queries), 0, uintptr(r.stamps), uintptr(8*r.stamps), uintptr(unsafe.Pointer(&ticks[0])), 8, wide)); err != nil {
		return nil, err
	}
	out := make([]time.Duration, r.stamps)
	for i, t := range ticks {
		out[i] = time.Duration(float64((t-ticks[0])&d.info.Limits.timestampMask) * d.info.Limits.TimestampNanos)
	}
	return out, nil
}

// Close frees the commands.
func (r *Recorded) Close() error {
	d := r.d
	if r.commands != 0 {
		d.fn.do(d.fn.freeCommandBuffers, d.handle, uintptr(d.pool), 1, uintptr(unsafe.Pointer(&r.commands)))
		r.commands = 0
	}
	d.destroy(d.fn.destroyQueryPool, &r.queries)
	d.destroy(d.fn.destroyDescriptorPool, &r.pool)
	return nil
}
