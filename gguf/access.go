package gguf

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Keys returns the keys of the metadata in file order; of a split file, those of its first part.
func (f *File) Keys() []string {
	keys := make([]string, len(f.entries))
	for i := range f.entries {
		keys[i] = f.entries[i].key
	}
	return keys
}

// Has reports whether the file has the key.
func (f *File) Has(key string) bool {
	_, ok := f.index[key]
	return ok
}

// Value returns the value of a key as it lies in the file.
func (f *File) Value(key string) (Value, bool) {
	i, ok := f.index[key]
	if !ok || f.closed {
		return Value{}, false
	}
	return f.entries[i].value, true
}

// find returns the entry of a key or an error that wraps ErrMissing or ErrClosed.
func (f *File) find(key string) (*entry, error) {
	if f.closed {
		return nil, &Error{File: f.name, Offset: -1, Field: key, Msg: ErrClosed.Error(), Err: ErrClosed}
	}
	i, ok := f.index[key]
	if !ok {
		return nil, &Error{File: f.name, Offset: -1, Field: key, Msg: ErrMissing.Error(), Err: ErrMissing}
	}
	return &f.entries[i], nil
}

// wrong returns the error for a value that is not what the caller wants.
func (f *File) wrong(e *entry, want string) error {
	got := e.value.typ.String()
	if e.value.typ == Array {
		got = "[]" + e.value.elem.String()
	}
	return &Error{File: f.name, Offset: e.offset, Field: e.key, Msg: fmt.Sprintf("is %s, want %s", got, want), Err: ErrType}
}

// scalar finds a key and converts its value; convert reports false if it cannot.
func scalar[T any](f *File, key, want string, convert func(Value) (T, bool)) (T, error) {
	var zero T
	e, err := f.find(key)
	if err != nil {
		return zero, err
	}
	v, ok := convert(e.value)
	if !ok {
		return zero, f.wrong(e, want)
	}
	return v, nil
}

// String returns a string.
func (f *File) String(key string) (string, error) {
	return scalar(f, key, "string", func(v Value) (string, bool) {
		if v.typ != String {
			return "", false
		}
		return string(v.raw), true
	})
}

// Uint returns an integer of any type that is not negative.
func (f *File) Uint(key string) (uint64, error) {
	return scalar(f, key, "an integer of at least 0", func(v Value) (uint64, bool) {
		if v.typ == Uint64 {
			return binary.LittleEndian.Uint64(v.raw), true
		}
		n, ok := v.int64()
		return uint64(n), ok && n >= 0
	})
}

// Int returns an integer of any type that fits int64.
func (f *File) Int(key string) (int64, error) { return scalar(f, key, "an integer", Value.int64) }

// Float returns a float32 or float64.
func (f *File) Float(key string) (float64, error) {
	return scalar(f, key, "float32 or float64", func(v Value) (float64, bool) {
		switch v.typ {
		case Float32:
			return float64(math.Float32frombits(binary.LittleEndian.Uint32(v.raw))), true
		case Float64:
			return math.Float64frombits(binary.LittleEndian.Uint64(v.raw)), true
		}
		return 0, false
	})
}

// Bool returns a bool.
func (f *File) Bool(key string) (bool, error) {
	return scalar(f, key, "bool", func(v Value) (bool, bool) {
		return v.typ == Bool && v.raw[0] != 0, v.typ == Bool
	})
}

// Strings returns an array of strings. They share one allocation of the array's size.
func (f *File) Strings(key string) ([]string, error) {
	return scalar(f, key, "[]string", func(v Value) ([]string, bool) {
		if v.typ != Array || v.elem != String {
			return nil, false
		}
		return v.strings(), true
	})
}

// Uints returns an array of integers of any type, none negative.
func (f *File) Uints(key string) ([]uint64, error) {
	return scalar(f, key, "an array of integers of at least 0", func(v Value) ([]uint64, bool) {
		if v.typ == Array && v.elem == Uint64 {
			return each(v, binary.LittleEndian.Uint64), true
		}
		return integers[uint64](v, 0)
	})
}

// Ints returns an array of integers of any type that fit int64.
func (f *File) Ints(key string) ([]int64, error) {
	return scalar(f, key, "an array of integers", func(v Value) ([]int64, bool) {
		return integers[int64](v, math.MinInt64)
	})
}

// integers converts an array of integers, all at least low.
func integers[T int64 | uint64](v Value, low int64) ([]T, bool) {
	if v.typ != Array || v.elem.size() == 0 || v.elem == Float32 || v.elem == Float64 || v.elem == Bool {
		return nil, false
	}
	out, size := make([]T, v.count), v.elem.size()
	for i := range out {
		n, ok := integer(v.elem, v.raw[i*size:])
		if !ok || n < low {
			return nil, false
		}
		out[i] = T(n)
	}
	return out, true
}

// Floats returns an array of float32; an array of float64 is rounded.
func (f *File) Floats(key string) ([]float32, error) {
	return scalar(f, key, "[]float32", func(v Value) ([]float32, bool) {
		switch {
		case v.typ == Array && v.elem == Float32:
			return v.slice().([]float32), true
		case v.typ == Array && v.elem == Float64:
			return each(v, func(b []byte) float32 {
				return float32(math.Float64frombits(binary.LittleEndian.Uint64(b)))
			}), true
		}
		return nil, false
	})
}

// Bools returns an array of bool.
func (f *File) Bools(key string) ([]bool, error) {
	return scalar(f, key, "[]bool", func(v Value) ([]bool, bool) {
		if v.typ != Array || v.elem != Bool {
			return nil, false
		}
		return v.slice().([]bool), true
	})
}
