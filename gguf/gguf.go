// Package gguf reads and writes GGUF files, the container of model weights and their metadata.
//
// Open maps a file (all parts of a split one) and checks its whole structure before it returns: counts, lengths,
// nesting, types, alignment, every tensor's place. After that, access cannot run out of the file. Reading allocates at
// most a small multiple of the file's own bytes, whatever the file claims. Every failure is an *Error with file, byte
// offset and field; nothing panics.
//
// A File is immutable and safe for concurrent use; only Close is not. Tensor data and unconverted metadata are views
// into the mapping: they are read-only and end with Close. What the typed accessors return is a copy and stays.
//
// Little-endian files of versions 2 and 3 are read. The package converts no tensor data (see package quant) and gives
// no meaning to keys beyond general.alignment and split.*.
package gguf

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tandemrun/tandem/quant"
)

const (
	magic            = 0x46554747 // "GGUF" as a little-endian word
	headerBytes      = 24         // magic, version, tensor count, key count
	defaultAlignment = 32
	maxDims          = 4
	maxArrayDepth    = 4     // arrays within arrays
	maxNameBytes     = 65535 // of a key or a tensor name

	keyAlignment    = "general.alignment"
	keySplitNo      = "split.no"
	keySplitCount   = "split.count"
	keySplitTensors = "split.tensors.count"
)

var (
	// ErrMissing is in the chain of an accessor's error when the file has no such key.
	ErrMissing = errors.New("key is missing")
	// ErrType is in the chain of an accessor's error when the value is of another type or out of its range.
	ErrType = errors.New("value has another type")
	// ErrClosed is in the chain of an accessor's error after Close.
	ErrClosed = errors.New("file is closed")
)

// Error says what is wrong with a file and where.
type Error struct {
	File   string // path, or the name given to Read
	Offset int64  // byte of the file where the field begins; -1 where no place applies
	Field  string // what was being read: "version", a key, a tensor's name, …; may be empty
	Msg    string // what is wrong, and where it helps what to do
	Err    error  // cause or nil: ErrMissing, ErrType, ErrClosed, an error of the system
}

// Error implements error.
func (e *Error) Error() string {
	s := e.File
	if e.Offset >= 0 {
		s += fmt.Sprintf(": byte %d", e.Offset)
	}
	if e.Field != "" {
		s += ": " + e.Field
	}
	return s + ": " + e.Msg
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Tensor is one tensor of a file.
type Tensor struct {
	Name   string
	Type   quant.Type
	Dims   []uint64 // 1 to 4, each at least 1; Dims[0] is the row length, whose elements are adjacent
	Data   []byte   // view of the mapping, row after row; read-only, until Close
	Offset int64    // byte of the part's file where Data begins
	Part   int      // index of the part of a split file, from 0
}

// Elements returns the product of the dimensions.
func (t *Tensor) Elements() uint64 {
	n := uint64(1)
	for _, d := range t.Dims {
		n *= d
	}
	return n
}

// File is an open GGUF file, or all parts of a split one.
type File struct {
	name      string
	version   uint32
	alignment uint64
	size      int64
	entries   []entry        // of the first part, in file order
	index     map[string]int // key to entries
	tensors   []*Tensor
	byName    map[string]*Tensor
	mappings  []*mapping
	paths     []string // of mappings
	closed    bool
}

// entry is a key with its value.
type entry struct {
	key    string
	offset int64 // of the key
	value  Value
}

// Name returns the path of the first part, or the name given to Read.
func (f *File) Name() string { return f.name }

// Version returns the format's version, 2 or 3.
func (f *File) Version() uint32 { return f.version }

// Paths are the files that are mapped, one for each part; none of a file that was read from memory.
func (f *File) Paths() []string { return slices.Clone(f.paths) }

// Size returns the bytes of all parts.
func (f *File) Size() int64 { return f.size }

// Alignment returns the alignment of tensor data in bytes, that of the first part.
func (f *File) Alignment() uint64 { return f.alignment }

// Tensors returns all tensors in file order, part after part. The slice belongs to the file.
func (f *File) Tensors() []*Tensor { return f.tensors }

// Tensor returns the tensor of that name.
func (f *File) Tensor(name string) (*Tensor, bool) {
	t, ok := f.byName[name]
	return t, ok
}

// Close unmaps the file. Views obtained from it must not be used afterwards. A second Close does nothing.
func (f *File) Close() error {
	if f.closed {
		return nil
	}
	f.closed = true
	var errs []error
	for _, t := range f.tensors {
		t.Data = nil
	}
	for _, m := range f.mappings {
		if err := m.close(); err != nil {
			errs = append(errs, &Error{File: f.name, Offset: -1, Msg: "cannot unmap: " + err.Error(), Err: err})
		}
	}
	return errors.Join(errs...)
}
