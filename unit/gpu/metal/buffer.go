package metal

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/tandemrun/tandem/unit/gpu/compute"
)

// Buffer is an MTLBuffer.
type Buffer struct {
	d      *Device
	object Object
	size   int64
	data   []byte // nil if the host cannot reach it
}

// Alloc makes a buffer; see [compute.Device].
func (d *Device) Alloc(size int64, m compute.Memory) (compute.Buffer, error) {
	if d.lost != nil {
		return nil, d.lost
	}
	if size <= 0 || size > d.info.Buffer {
		return nil, fmt.Errorf("a buffer of %d bytes: %s allows %d", size, d.info.Name, d.info.Buffer)
	}
	b, err := d.buffer(size, m == compute.Local && !d.info.Unified)
	if err != nil {
		return nil, err
	}
	return b, nil
}

func (d *Device) buffer(size int64, private bool) (*Buffer, error) {
	options := storageShared
	if private {
		options = storagePrivate
	}
	o := d.rt.Send(d.device, "newBufferWithLength:options:", uint64(size), uint64(options))
	if o == 0 {
		return nil, fmt.Errorf("%w: no buffer of %d bytes on %s", compute.ErrMemory, size, d.info.Name)
	}
	b := &Buffer{d: d, object: o, size: size}
	if !private {
		b.data = unsafe.Slice((*byte)(d.rt.Pointer(o, "contents")), size)
	}
	return b, nil
}

// Import makes a buffer of whole pages of memory around size bytes from begin on;
// see [compute.Device].
func (d *Device) Import(begin *byte, size int64) (compute.Binding, error) {
	if d.Limits().Import == 0 || size < 1 {
		return compute.Binding{}, fmt.Errorf("%s does not work in the machine's memory", d.info.Name)
	}
	at := uintptr(unsafe.Pointer(begin)) // which the caller keeps alive
	offset := int64(at % uintptr(d.pageSize))
	whole := (offset + size + d.pageSize - 1) / d.pageSize * d.pageSize
	// Without a deallocator the memory stays its owner's.
	o := d.rt.Send(d.device, "newBufferWithBytesNoCopy:length:options:deallocator:",
		at-uintptr(offset), uint64(whole), uint64(storageShared), Object(0))
	if o == 0 {
		return compute.Binding{}, fmt.Errorf("%s does not import %d bytes of this memory", d.info.Name, size)
	}
	return compute.Binding{Buffer: &Buffer{d: d, object: o, size: whole}, Offset: offset, Size: size}, nil
}

// Size is the number of bytes.
func (b *Buffer) Size() int64 { return b.size }

// Bytes is the memory of the buffer, if the host can reach it; nil otherwise.
func (b *Buffer) Bytes() []byte { return b.data }

// Close frees the buffer.
func (b *Buffer) Close() error {
	b.d.release(b.object)
	b.object, b.data = 0, nil
	return nil
}

// stagingSize is how much a transfer moves at once.
const stagingSize = 4 << 20

// Transfer makes moves; see [compute.Device].
func (d *Device) Transfer(moves ...compute.Move) error {
	if d.lost != nil {
		return d.lost
	}
	var staging *Buffer
	for _, m := range moves {
		b := m.At.Buffer.(*Buffer)
		if b.data != nil {
			if m.Read {
				copy(m.Data, b.data[m.At.Offset:][:m.At.Size])
			} else {
				copy(b.data[m.At.Offset:][:m.At.Size], m.Data)
			}
			continue
		}
		if staging == nil {
			var err error
			if staging, err = d.buffer(stagingSize, false); err != nil {
				return err
			}
			defer staging.Close()
		}
		for lo := 0; lo < len(m.Data); lo += stagingSize {
			part := m.Data[lo:min(len(m.Data), lo+stagingSize)]
			if err := d.stage(b, m.At.Offset+int64(lo), staging, part, m.Read); err != nil {
				return err
			}
		}
	}
	return nil
}

// stage copies between a buffer the host cannot reach and data.
func (d *Device) stage(b *Buffer, at int64, staging *Buffer, data []byte, read bool) error {
	if !read {
		copy(staging.data, data)
	}
	err := d.blit(func(encoder Object) {
		from, fromAt, to, toAt := staging, int64(0), b, at
		if read {
			from, fromAt, to, toAt = b, at, staging, 0
		}
		d.rt.Send(encoder, "copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:",
			from.object, uint64(fromAt), to.object, uint64(toAt), uint64(len(data)))
	})
	if err == nil && read {
		copy(data, staging.data)
	}
	return err
}

// Clear sets a part of a buffer to zero.
func (d *Device) Clear(at compute.Binding) error {
	if d.lost != nil {
		return d.lost
	}
	b := at.Buffer.(*Buffer)
	if b.data != nil {
		clear(b.data[at.Offset:][:at.Size])
		return nil
	}
	return d.blit(func(encoder Object) {
		d.rt.Send(encoder, "fillBuffer:range:value:", b.object, Range{uint64(at.Offset), uint64(at.Size)}, uint8(0))
	})
}

// blit runs one copy and waits for it.
func (d *Device) blit(f func(encoder Object)) error {
	defer d.rt.Pool()()
	c := d.rt.Send(d.queue, "commandBuffer")
	encoder := Object(0)
	if c != 0 {
		encoder = d.rt.Send(c, "blitCommandEncoder")
	}
	if encoder == 0 {
		return errors.New("no command buffer from Metal")
	}
	f(encoder)
	d.rt.Send(encoder, "endEncoding")
	d.rt.Send(c, "commit")
	return d.wait("copying", c)
}
