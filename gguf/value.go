package gguf

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ValueType is the type of a metadata value, numbered as in the file.
type ValueType uint32

// The value types of the format.
const (
	Uint8   ValueType = 0
	Int8    ValueType = 1
	Uint16  ValueType = 2
	Int16   ValueType = 3
	Uint32  ValueType = 4
	Int32   ValueType = 5
	Float32 ValueType = 6
	Bool    ValueType = 7
	String  ValueType = 8
	Array   ValueType = 9
	Uint64  ValueType = 10
	Int64   ValueType = 11
	Float64 ValueType = 12
)

// valueTypes is indexed by ValueType; size is 0 where values vary in length.
var valueTypes = [...]struct {
	name string
	size int
}{
	Uint8: {"uint8", 1}, Int8: {"int8", 1}, Uint16: {"uint16", 2}, Int16: {"int16", 2}, Uint32: {"uint32", 4},
	Int32: {"int32", 4}, Float32: {"float32", 4}, Bool: {"bool", 1}, String: {"string", 0}, Array: {"array", 0},
	Uint64: {"uint64", 8}, Int64: {"int64", 8}, Float64: {"float64", 8},
}

// String returns Go's name of the type: "uint32", "string", "array".
func (t ValueType) String() string {
	if t.known() {
		return valueTypes[t].name
	}
	return fmt.Sprintf("type(%d)", uint32(t))
}

func (t ValueType) known() bool { return int64(t) < int64(len(valueTypes)) }

// size returns the bytes of a value, 0 for strings and arrays.
func (t ValueType) size() int { return valueTypes[t].size }

// minSize returns the fewest bytes a value of this type takes in a file.
func (t ValueType) minSize() int {
	switch t {
	case String:
		return 8 // a length
	case Array:
		return 12 // a type and a count
	}
	return t.size()
}

// Value is a metadata value as it lies in the file. It is valid until the file is closed.
type Value struct {
	typ, elem ValueType
	count     int    // elements of an array
	raw       []byte // a scalar's bytes; a string's characters; an array's elements
}

// Type returns the value's type.
func (v Value) Type() ValueType { return v.typ }

// Elem returns the type of an array's elements, and the value's own type for what is no array.
func (v Value) Elem() ValueType {
	if v.typ == Array {
		return v.elem
	}
	return v.typ
}

// Len returns the number of elements of an array, the bytes of a string, and 1 for other values.
func (v Value) Len() int {
	switch v.typ {
	case Array:
		return v.count
	case String:
		return len(v.raw)
	}
	return 1
}

// Any returns a copy as the Go value of the same type: uint8 … float64, bool, string, or a slice of one of these;
// []any of slices for an array of arrays.
func (v Value) Any() any {
	switch v.typ {
	case Uint8:
		return v.raw[0]
	case Int8:
		return int8(v.raw[0])
	case Uint16:
		return binary.LittleEndian.Uint16(v.raw)
	case Int16:
		return int16(binary.LittleEndian.Uint16(v.raw))
	case Uint32:
		return binary.LittleEndian.Uint32(v.raw)
	case Int32:
		return int32(binary.LittleEndian.Uint32(v.raw))
	case Uint64:
		return binary.LittleEndian.Uint64(v.raw)
	case Int64:
		return int64(binary.LittleEndian.Uint64(v.raw))
	case Float32:
		return math.Float32frombits(binary.LittleEndian.Uint32(v.raw))
	case Float64:
		return math.Float64frombits(binary.LittleEndian.Uint64(v.raw))
	case Bool:
		return v.raw[0] != 0
	case String:
		return string(v.raw)
	case Array:
		return v.slice()
	}
	return nil
}

// slice returns an array's elements as a Go slice.
func (v Value) slice() any {
	switch v.elem {
	case Uint8:
		return append(make([]uint8, 0, v.count), v.raw...)
	case Int8:
		return each(v, func(b []byte) int8 { return int8(b[0]) })
	case Uint16:
		return each(v, binary.LittleEndian.Uint16)
	case Int16:
		return each(v, func(b []byte) int16 { return int16(binary.LittleEndian.Uint16(b)) })
	case Uint32:
		return each(v, binary.LittleEndian.Uint32)
	case Int32:
		return each(v, func(b []byte) int32 { return int32(binary.LittleEndian.Uint32(b)) })
	case Uint64:
		return each(v, binary.LittleEndian.Uint64)
	case Int64:
		return each(v, func(b []byte) int64 { return int64(binary.LittleEndian.Uint64(b)) })
	case Float32:
		return each(v, func(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) })
	case Float64:
		return each(v, func(b []byte) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b)) })
	case Bool:
		return each(v, func(b []byte) bool { return b[0] != 0 })
	case String:
		return v.strings()
	}
	out := make([]any, v.count)
	rest := v.raw
	for i := range out {
		inner := Value{typ: Array, elem: ValueType(binary.LittleEndian.Uint32(rest)), count: int(binary.LittleEndian.Uint64(rest[4:]))}
		n := inner.elementBytes(rest[12:])
		inner.raw, rest = rest[12:12+n], rest[12+n:]
		out[i] = inner.slice()
	}
	return out
}

// elementBytes returns how many bytes of b the elements of the checked array v take.
func (v Value) elementBytes(b []byte) int {
	if n := v.elem.size(); n > 0 {
		return n * v.count
	}
	at := 0
	for range v.count {
		if v.elem == String {
			at += 8 + int(binary.LittleEndian.Uint64(b[at:]))
			continue
		}
		inner := Value{typ: Array, elem: ValueType(binary.LittleEndian.Uint32(b[at:])), count: int(binary.LittleEndian.Uint64(b[at+4:]))}
		at += 12
		at += inner.elementBytes(b[at:])
	}
	return at
}

// each converts the elements of an array of fixed size.
func each[T any](v Value, convert func([]byte) T) []T {
	out, n := make([]T, v.count), v.elem.size()
	for i := range out {
		out[i] = convert(v.raw[i*n:])
	}
	return out
}

// strings returns the elements of an array of strings. They share one copy of the array's bytes.
func (v Value) strings() []string {
	all := string(v.raw)
	out := make([]string, v.count)
	at := 0
	for i := range out {
		n := int(binary.LittleEndian.Uint64(v.raw[at:]))
		out[i] = all[at+8 : at+8+n]
		at += 8 + n
	}
	return out
}

// int64 returns an integer value; ok is false for another type or a uint64 beyond int64.
func (v Value) int64() (n int64, ok bool) { return integer(v.typ, v.raw) }

// integer reads an integer of type t.
func integer(t ValueType, b []byte) (n int64, ok bool) {
	switch t {
	case Uint8:
		return int64(b[0]), true
	case Int8:
		return int64(int8(b[0])), true
	case Uint16:
		return int64(binary.LittleEndian.Uint16(b)), true
	case Int16:
		return int64(int16(binary.LittleEndian.Uint16(b))), true
	case Uint32:
		return int64(binary.LittleEndian.Uint32(b)), true
	case Int32:
		return int64(int32(binary.LittleEndian.Uint32(b))), true
	case Uint64, Int64:
		n = int64(binary.LittleEndian.Uint64(b))
		return n, t == Int64 || n >= 0
	}
	return 0, false
}

// String returns the value for listing: numbers as Go writes them, strings quoted, arrays with their type, their
// length and at most the first eight elements.
func (v Value) String() string {
	switch v.typ {
	case String:
		return quoted(string(v.raw[:min(len(v.raw), 256)]), len(v.raw))
	case Array:
		return v.arrayString()
	}
	return fmt.Sprint(v.Any())
}

func (v Value) arrayString() string {
	head := v
	head.count = min(v.count, 8)
	head.raw = v.raw[:head.elementBytes(v.raw)]
	var b strings.Builder
	fmt.Fprintf(&b, "[%d]%v{", v.count, v.elem)
	switch items := head.slice().(type) {
	case []string:
		for i, s := range items {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(quoted(s[:min(len(s), 64)], len(s)))
		}
	case []any:
		b.WriteString("…")
	default:
		b.WriteString(strings.ReplaceAll(strings.Trim(fmt.Sprint(items), "[]"), " ", ", "))
	}
	if v.count > head.count {
		b.WriteString(", …")
	}
	return b.String() + "}"
}

// quoted quotes s, which is the start of a string of n bytes.
func quoted(s string, n int) string {
	if len(s) == n {
		return strconv.Quote(s)
	}
	return strconv.Quote(s) + "…"
}
