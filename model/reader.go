package model

import (
	"errors"
	"fmt"

	"github.com/tandemrun/tandem/gguf"
	"github.com/tandemrun/tandem/program"
)

// A Reader reads an architecture's keys and tensors. It keeps the first error,
// so that an architecture can read everything and look once. Keys are given
// without the architecture's prefix.
type Reader struct {
	File  *gguf.File
	Arch  string
	Notes []string
	Err   error

	read map[string]bool // tensors that were asked for
}

// NewReader begins reading the keys of the file's architecture.
func NewReader(f *gguf.File) *Reader {
	arch, err := f.String("general.architecture")
	return &Reader{File: f, Arch: arch, Err: err, read: map[string]bool{}}
}

// Key is the full name of a key.
func (r *Reader) Key(key string) string { return r.Arch + "." + key }

// Fail records an error about a key; the first one is kept.
func (r *Reader) Fail(key, format string, args ...any) {
	r.fail(fmt.Errorf("%s: %s: %s", r.File.Name(), r.Key(key), fmt.Sprintf(format, args...)))
}

func (r *Reader) fail(err error) {
	if r.Err == nil {
		r.Err = err
	}
}

// Note records a default that was used, for people to see.
func (r *Reader) Note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// Has reports whether the file has the key.
func (r *Reader) Has(key string) bool { return r.File.Has(r.Key(key)) }

// Int reads an integer of at least lo and at most 2³¹-1.
func (r *Reader) Int(key string, lo int) int {
	n, err := r.File.Uint(r.Key(key))
	if err != nil {
		r.fail(err)
		return lo
	}
	return r.bound(key, n, lo)
}

func (r *Reader) bound(key string, n uint64, lo int) int {
	const most = 1<<31 - 1
	if n > most || int(n) < lo {
		r.Fail(key, "%d is out of range: it must be %d to %d", n, lo, most)
		return lo
	}
	return int(n)
}

// IntOr reads an integer, or uses the format's default and notes it.
func (r *Reader) IntOr(key string, lo, otherwise int) int {
	if !r.Has(key) {
		r.Note("%s is not in the file: %d, the format's default", r.Key(key), otherwise)
		return otherwise
	}
	return r.Int(key, lo)
}

// IntPerLayer reads an integer for each of n layers: one number for all, or an
// array with one for each.
func (r *Reader) IntPerLayer(key string, n, lo int) []int {
	out := make([]int, n)
	one, err := r.File.Uint(r.Key(key))
	if errors.Is(err, gguf.ErrType) {
		many, err := r.File.Uints(r.Key(key))
		if err != nil {
			r.fail(err)
			return out
		}
		if len(many) < n {
			r.Fail(key, "%d values for %d layers", len(many), n)
			return out
		}
		for i := range out {
			out[i] = r.bound(key, many[i], lo)
		}
		return out
	}
	if err != nil {
		r.fail(err)
	}
	for i := range out {
		out[i] = r.bound(key, one, lo)
	}
	return out
}

// BoolPerLayer reads an array with a bool for each of n layers.
func (r *Reader) BoolPerLayer(key string, n int) []bool {
	v, err := r.File.Bools(r.Key(key))
	if err != nil {
		r.fail(err)
		return make([]bool, n)
	}
	if len(v) != n {
		r.Fail(key, "%d values for %d layers", len(v), n)
		return make([]bool, n)
	}
	return v
}

// Float reads a positive number.
func (r *Reader) Float(key string) float64 {
	x, err := r.File.Float(r.Key(key))
	if err != nil {
		r.fail(err)
		return 1
	}
	if !(x > 0 && x < 1e30) {
		r.Fail(key, "%g is not a positive number", x)
		return 1
	}
	return x
}

// FloatOr reads a positive number, or uses the format's default and notes it.
func (r *Reader) FloatOr(key string, otherwise float64) float64 {
	if !r.Has(key) {
		r.Note("%s is not in the file: %g, the format's default", r.Key(key), otherwise)
		return otherwise
	}
	return r.Float(key)
}

// String reads a string.
func (r *Reader) String(key string) string {
	s, err := r.File.String(r.Key(key))
	if err != nil {
		r.fail(err)
	}
	return s
}

// IsArray reports whether the file has the key with an array as its value.
func (r *Reader) IsArray(key string) bool {
	v, ok := r.File.Value(r.Key(key))
	return ok && v.Type() == gguf.Array
}

// HasTensor reports whether the file has the tensor.
func (r *Reader) HasTensor(name string) bool {
	_, ok := r.File.Tensor(name)
	return ok
}

// Matrix reads a weight of rows outputs and cols inputs. Rows of 0 accepts any.
func (r *Reader) Matrix(name string, rows, cols int) program.Weight {
	w := program.Weight{Name: name, Rows: max(rows, 1), Cols: cols}
	t, ok := r.tensor(name)
	switch {
	case !ok:
		r.fail(fmt.Errorf("%s: tensor %s is missing", r.File.Name(), name))
		return w
	case !t.Type.Supported():
		r.fail(fmt.Errorf("%s: tensor %s has type %s, which tandem cannot read", r.File.Name(), name, t.Type))
		return w
	case len(t.Dims) != 2 || t.Dims[0] != uint64(cols) || rows > 0 && t.Dims[1] != uint64(rows) || t.Dims[1] == 0:
		r.fail(fmt.Errorf("%s: tensor %s has shape %v, not [%d %d]", r.File.Name(), name, t.Dims, cols, rows))
		return w
	}
	w.Type, w.Rows, w.Data = t.Type, int(t.Dims[1]), t.Data
	return w
}

// Vector reads a tensor of n values as float32. After an error it has one value
// at most, so that a size that only the file claims takes no memory.
func (r *Reader) Vector(name string, n int) []float32 {
	out := make([]float32, min(n, 1))
	t, ok := r.tensor(name)
	switch {
	case !ok:
		r.fail(fmt.Errorf("%s: tensor %s is missing", r.File.Name(), name))
		return out
	case !t.Type.Supported():
		r.fail(fmt.Errorf("%s: tensor %s has type %s, which tandem cannot read", r.File.Name(), name, t.Type))
		return out
	case len(t.Dims) != 1 || t.Dims[0] != uint64(n):
		r.fail(fmt.Errorf("%s: tensor %s has shape %v, not [%d]", r.File.Name(), name, t.Dims, n))
		return out
	}
	out = make([]float32, n)
	if err := t.Type.Dequantize(out, t.Data); err != nil {
		r.fail(fmt.Errorf("%s: reading tensor %s: %w", r.File.Name(), name, err))
	}
	return out
}

func (r *Reader) tensor(name string) (*gguf.Tensor, bool) {
	r.read[name] = true
	return r.File.Tensor(name)
}

// AllRead records an error if the file has a tensor that was not read: the
// model would compute something else without it.
func (r *Reader) AllRead() {
	for _, t := range r.File.Tensors() {
		if !r.read[t.Name] {
			r.fail(fmt.Errorf("%s: tensor %s is not one that the architecture %s has here", r.File.Name(), t.Name, r.Arch))
			return
		}
	}
}
