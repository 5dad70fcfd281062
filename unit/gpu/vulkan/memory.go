package vulkan

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"
)

// Kind says what memory a buffer is in.
type Kind uint8

const (
	// Local is memory that the device reads fastest. Where host and device share
	// the memory it is mapped too.
	Local Kind = iota
	// Upload is memory of the host that it writes and the device reads.
	Upload
	// Readback is memory of the host that the device writes and the host reads.
	Readback
)

func (k Kind) String() string { return [...]string{"device-local", "upload", "readback"}[k] }

// Buffer is a piece of memory that shaders use.
type Buffer struct {
	d      *Device
	handle uint64
	memory uint64
	size   int64
	data   []byte
	kind   string
}

// A Range is a part of a buffer. Offset of one that is bound to a shader is a
// multiple of Limits.StorageAlign, and Size at most Limits.StorageRange.
type Range struct {
	Buffer       *Buffer
	Offset, Size int64
}

const (
	memLocal    = 1
	memVisible  = 2
	memCoherent = 4
	memCached   = 8

	usage           = 0x1 | 0x2 | 0x20 // transfer both ways, storage
	hostAllocation  = 0x80             // VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT
	wholeSize       = ^uintptr(0)
	sharedByAllSpec = memVisible | memCoherent
)

// Shared reports whether the device works in the host's memory, so that what
// the host writes needs no copy.
func (i Info) Shared() bool { return i.Type == Integrated || i.Type == CPU }

// wishes are the memory properties of a kind, best first. Each has all of the
// first value and none of the second.
func (i Info) wishes(k Kind) [][2]uint32 {
	switch {
	case k == Local && i.Shared():
		return [][2]uint32{{memLocal | sharedByAllSpec | memCached}, {memLocal | sharedByAllSpec}, {memLocal}, {}}
	case k == Local:
		return [][2]uint32{{memLocal, memVisible}, {memLocal}, {}}
	case k == Upload:
		return [][2]uint32{{sharedByAllSpec, memLocal}, {sharedByAllSpec}}
	}
	return [][2]uint32{{sharedByAllSpec | memCached, memLocal}, {sharedByAllSpec | memCached}, {sharedByAllSpec}}
}

// memoryType picks a type of memory among those of a mask.
func (i Info) memoryType(k Kind, mask uint32) (int, bool) {
	for _, wish := range i.wishes(k) {
		for t, x := range i.types {
			if mask>>t&1 != 0 && x.flags&wish[0] == wish[0] && x.flags&wish[1] == 0 {
				return t, true
			}
		}
	}
	return 0, false
}

// Buffer makes a buffer of size bytes. Its content is undefined.
func (d *Device) Buffer(size int64, kind Kind) (*Buffer, error) {
	b := &Buffer{d: d, size: size, kind: kind.String()}
	if size <= 0 {
		return nil, fmt.Errorf("a buffer of %d bytes", size)
	}
	if size > d.info.Limits.Allocation {
		return nil, fmt.Errorf("a buffer of %d bytes: %s allows %d at once", size, d.info.Name, d.info.Limits.Allocation)
	}
	if err := b.make(kind); err != nil {
		return nil, errors.Join(fmt.Errorf("making a %s buffer of %d bytes: %w", kind, size, err), b.Close())
	}
	return b, nil
}

func (b *Buffer) make(kind Kind) error {
	d := b.d
	info := bufferCreateInfo{next: next{sType: typeBufferCreateInfo}, size: uint64(b.size), usage: usage}
	if err := d.create(d.fn.createBuffer, unsafe.Pointer(&info), &b.handle); err != nil {
		return err
	}
	var need memoryRequirements
	d.fn.do(d.fn.getBufferMemoryRequirements, d.handle, uintptr(b.handle), uintptr(unsafe.Pointer(&need)))
	t, ok := d.info.memoryType(kind, need.types)
	if !ok {
		return errors.New("the device has no such memory")
	}
	alloc := memoryAllocateInfo{next: next{sType: typeMemoryAllocateInfo}, size: need.size, typeIndex: uint32(t)}
	if err := d.create(d.fn.allocateMemory, unsafe.Pointer(&alloc), &b.memory); err != nil {
		return err
	}
	if err := d.note(d.fn.call(d.fn.bindBufferMemory, d.handle, uintptr(b.handle), uintptr(b.memory), 0)); err != nil {
		return err
	}
	if d.info.types[t].flags&sharedByAllSpec != sharedByAllSpec || kind == Local && !d.info.Shared() {
		return nil
	}
	var at *byte
	if err := d.note(d.fn.call(d.fn.mapMemory, d.handle, uintptr(b.memory), 0, wholeSize, 0, uintptr(unsafe.Pointer(&at)))); err != nil {
		return err
	}
	b.data = unsafe.Slice(at, b.size)
	return nil
}

// Import makes a buffer of memory of the process, size bytes from begin on,
// without a copy, and returns the part of it that they are. The pages around
// them, Limits.ImportAlign each, are mapped to their ends, and stay so until the
// buffer is closed; a view of a mapped file is such memory. It is an error where
// Features.HostImport is missing, and drivers may refuse memory that cannot be
// written.
func (d *Device) Import(begin *byte, size int64) (Range, error) {
	if !d.info.Features.HostImport || size < 1 {
		return Range{}, &Error{"importing memory", FeatureMissing}
	}
	align := d.info.Limits.ImportAlign
	at := uintptr(unsafe.Pointer(begin))
	offset := int64(at % uintptr(align))
	b := &Buffer{d: d, size: (offset + size + align - 1) / align * align, kind: "imported"}
	// The address may lie before the allocation, so it goes on as a number.
	if err := b.imported(at - uintptr(offset)); err != nil {
		return Range{}, errors.Join(fmt.Errorf("importing %d bytes: %w", size, err), b.Close())
	}
	runtime.KeepAlive(begin)
	return Range{b, offset, size}, nil
}

func (b *Buffer) imported(at uintptr) error {
	d := b.d
	ext := externalMemoryBufferCreateInfo{next{sType: typeExternalMemoryBufferCreateInfo}, hostAllocation}
	info := bufferCreateInfo{next: next{typeBufferCreateInfo, unsafe.Pointer(&ext)}, size: uint64(b.size), usage: usage}
	if err := d.create(d.fn.createBuffer, unsafe.Pointer(&info), &b.handle); err != nil {
		return err
	}
	var need memoryRequirements
	d.fn.do(d.fn.getBufferMemoryRequirements, d.handle, uintptr(b.handle), uintptr(unsafe.Pointer(&need)))
	host := memoryHostPointerProperties{next: next{sType: typeMemoryHostPointerProperties}}
	if err := d.note(d.fn.call(d.fn.getMemoryHostPointerProperties, d.handle, hostAllocation, at, uintptr(unsafe.Pointer(&host)))); err != nil {
		return err
	}
	t, ok := d.info.memoryType(Local, need.types&host.types)
	if !ok || need.size > uint64(b.size) {
		return InvalidHandle
	}
	pointer := importMemoryHostPointerInfo{next{sType: typeImportMemoryHostPointerInfo}, hostAllocation, at}
	alloc := memoryAllocateInfo{next: next{typeMemoryAllocateInfo, unsafe.Pointer(&pointer)}, size: uint64(b.size), typeIndex: uint32(t)}
	if err := d.create(d.fn.allocateMemory, unsafe.Pointer(&alloc), &b.memory); err != nil {
		return err
	}
	return d.note(d.fn.call(d.fn.bindBufferMemory, d.handle, uintptr(b.handle), uintptr(b.memory), 0))
}

// Size is the number of bytes.
func (b *Buffer) Size() int64 { return b.size }

// Bytes is the memory of the buffer, if the host can reach it; nil otherwise.
// What the host writes before a Submit the device sees, and the other way
// around when it has returned.
func (b *Buffer) Bytes() []byte { return b.data }

// All is the whole buffer.
func (b *Buffer) All() Range { return Range{b, 0, b.size} }

// Range is size bytes of the buffer that begin at offset.
func (b *Buffer) Range(offset, size int64) Range { return Range{b, offset, size} }

// Bytes is the memory of the range, if the host can reach it; nil otherwise.
func (r Range) Bytes() []byte {
	if r.Buffer.data == nil {
		return nil
	}
	return r.Buffer.data[r.Offset : r.Offset+r.Size]
}

// Close frees the buffer.
func (b *Buffer) Close() error {
	b.d.destroy(b.d.fn.destroyBuffer, &b.handle)
	b.d.destroy(b.d.fn.freeMemory, &b.memory) // unmaps it
	b.data = nil
	return nil
}
