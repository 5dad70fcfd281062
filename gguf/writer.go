package gguf

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/bits"
	"os"
	"path/filepath"

	"github.com/tandemrun/tandem/quant"
)

// Writer collects the metadata and the tensors of a file and writes it, version 3. The bytes depend only on the calls
// and their order. Tensor data is produced while it is written, so a file may be larger than memory. A Writer is for
// one goroutine. Errors name the key or the tensor.
type Writer struct {
	keys      map[string]bool
	meta      []byte // the keys and values as they stand in the file
	alignment uint64
	tensors   []pending
	names     map[string]bool
}

// pending is a tensor to be written.
type pending struct {
	name  string
	typ   quant.Type
	dims  []uint64
	bytes uint64
	write func(io.Writer) error
}

// NewWriter returns a Writer without keys or tensors, and with an alignment of 32.
func NewWriter() *Writer {
	return &Writer{keys: map[string]bool{}, alignment: defaultAlignment, names: map[string]bool{}}
}

// Set adds a key. Its type in the file is that of the Go value: uint8 … uint64, int8 … int64, float32, float64, bool,
// string, or a slice of one of these; []any for an array of such slices. An int is refused, since the file has no type
// for it. Setting general.alignment, a uint32 and a power of two, also aligns the tensors so. A key can be set once.
func (w *Writer) Set(key string, value any) error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("gguf: key %q: %s", key, fmt.Sprintf(format, args...))
	}
	if len(key) == 0 || len(key) > maxNameBytes {
		return fail("is %d bytes long; 1 to %d are possible", len(key), maxNameBytes)
	}
	if w.keys[key] {
		return fail("is set already")
	}
	typ, encoded, err := encode(value, 0)
	if err != nil {
		return fail("%v", err)
	}
	if key == keyAlignment {
		a, ok := value.(uint32)
		if !ok || bits.OnesCount32(a) != 1 {
			return fail("is %v, want a uint32 that is a power of two", value)
		}
		w.alignment = uint64(a)
	}
	w.keys[key] = true
	w.meta = appendString(w.meta, key)
	w.meta = binary.LittleEndian.AppendUint32(w.meta, uint32(typ))
	w.meta = append(w.meta, encoded...)
	return nil
}

// AddTensor adds a tensor; dims[0] is the row length, a multiple of the type's block. When the file is written, write
// is called once and must write exactly the tensor's bytes, row after row.
func (w *Writer) AddTensor(name string, t quant.Type, dims []uint64, write func(io.Writer) error) error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("gguf: tensor %q: %s", name, fmt.Sprintf(format, args...))
	}
	if w.names[name] {
		return fail("is added already")
	}
	if len(name) == 0 || len(name) > maxNameBytes {
		return fail("the name is %d bytes long; 1 to %d are possible", len(name), maxNameBytes)
	}
	size, err := tensorBytes(t, dims)
	if err != nil {
		return fail("%v", err)
	}
	w.names[name] = true
	w.tensors = append(w.tensors, pending{name, t, append([]uint64(nil), dims...), size, write})
	return nil
}

// AddBytes adds a tensor whose data is in memory; data must not change before the file is written.
func (w *Writer) AddBytes(name string, t quant.Type, dims []uint64, data []byte) error {
	size, err := tensorBytes(t, dims)
	if err == nil && size != uint64(len(data)) {
		err = fmt.Errorf("takes %d bytes, got %d", size, len(data))
	}
	if err != nil {
		return fmt.Errorf("gguf: tensor %q: %w", name, err)
	}
	return w.AddTensor(name, t, dims, func(out io.Writer) error {
		_, err := out.Write(data)
		return err
	})
}

// AddFloats adds a tensor of type t quantised from values in memory.
func (w *Writer) AddFloats(name string, t quant.Type, dims []uint64, values []float32) error {
	n, err := t.RowBytes(len(values))
	if err != nil {
		return fmt.Errorf("gguf: tensor %q: %w", name, err)
	}
	data := make([]byte, n)
	if err := t.Quantize(data, values); err != nil {
		return fmt.Errorf("gguf: tensor %q: %w", name, err)
	}
	return w.AddBytes(name, t, dims, data)
}

// WriteTo writes the file. It implements io.WriterTo.
func (w *Writer) WriteTo(out io.Writer) (int64, error) {
	buffered := bufio.NewWriterSize(out, 1<<16)
	c := &counter{out: buffered}
	err := w.write(c)
	if err == nil {
		err = buffered.Flush()
	}
	return int64(c.n), err
}

// WriteFile writes the file to path. It writes beside it first and renames at the end, so that path never holds half a
// file.
func (w *Writer) WriteFile(path string) (err error) {
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.part")
	if err != nil {
		return fmt.Errorf("gguf: writing %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			file.Close()
			os.Remove(file.Name())
			err = fmt.Errorf("gguf: writing %s: %w", path, err)
		}
	}()
	if _, err := w.WriteTo(file); err != nil {
		return err
	}
	if err := file.Chmod(0o644); err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

// write writes header, metadata, descriptions and data, the latter each padded to the alignment.
func (w *Writer) write(c *counter) error {
	head := binary.LittleEndian.AppendUint32(nil, magic)
	head = binary.LittleEndian.AppendUint32(head, 3)
	head = binary.LittleEndian.AppendUint64(head, uint64(len(w.tensors)))
	head = binary.LittleEndian.AppendUint64(head, uint64(len(w.keys)))
	if _, err := c.Write(append(head, w.meta...)); err != nil {
		return err
	}
	var infos []byte
	offset := uint64(0)
	for _, t := range w.tensors {
		infos = appendString(infos, t.name)
		infos = binary.LittleEndian.AppendUint32(infos, uint32(len(t.dims)))
		for _, d := range t.dims {
			infos = binary.LittleEndian.AppendUint64(infos, d)
		}
		infos = binary.LittleEndian.AppendUint32(infos, uint32(t.typ))
		infos = binary.LittleEndian.AppendUint64(infos, offset)
		offset += t.bytes + padding(t.bytes, w.alignment)
		if offset > math.MaxInt64 {
			return fmt.Errorf("gguf: tensor %q: the file would be larger than 2^63 bytes", t.name)
		}
	}
	if _, err := c.Write(infos); err != nil {
		return err
	}
	for i := range w.tensors {
		if err := c.pad(w.alignment); err != nil {
			return err
		}
		t := &w.tensors[i]
		limited := &counter{out: c, limit: t.bytes, limited: true}
		if err := t.write(limited); err != nil {
			return fmt.Errorf("gguf: tensor %q: %w", t.name, err)
		}
		if limited.n != t.bytes {
			return fmt.Errorf("gguf: tensor %q: %d bytes were written for it, it has %d", t.name, limited.n, t.bytes)
		}
	}
	return c.pad(w.alignment)
}

// padding returns how many bytes bring n to a multiple of alignment.
func padding(n, alignment uint64) uint64 { return -n & (alignment - 1) }

// counter counts what passes through it and, if limited, refuses more than limit bytes.
type counter struct {
	out      io.Writer
	n, limit uint64
	limited  bool
}

func (c *counter) Write(b []byte) (int, error) {
	if c.limited && uint64(len(b)) > c.limit-c.n {
		return 0, fmt.Errorf("more than its %d bytes were written for it", c.limit)
	}
	n, err := c.out.Write(b)
	c.n += uint64(n)
	return n, err
}

// pad writes zeros up to a multiple of alignment.
func (c *counter) pad(alignment uint64) error {
	var zeros [4096]byte
	for left := padding(c.n, alignment); left > 0; {
		n, err := c.Write(zeros[:min(left, uint64(len(zeros)))])
		if err != nil {
			return err
		}
		left -= uint64(n)
	}
	return nil
}
