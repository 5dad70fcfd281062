// Package quant holds the block formats of GGUF tensors: their layout and the conversion to and from float32.
//
// A tensor's row is a sequence of blocks; a block packs a fixed number of elements (BlockSize) into a fixed number of
// bytes (BlockBytes), little-endian. The functions here are the reference that every faster kernel is compared with:
// each element is computed by the same float32 operations in the same order on every machine, with no fused
// multiply-add, so results are equal bit for bit everywhere.
//
// All functions are pure: they keep nothing, write only to dst and may be called from any number of goroutines. Wrong
// lengths and types are errors, never panics; the content of a block is never an error, since every bit pattern stands
// for some values (possibly infinities or NaN).
//
// The package knows nothing of tensors, files or matrix products.
package quant

import (
	"fmt"
	"math"
	"strings"
)

// Type is a block format, numbered as ggml numbers it in a GGUF file.
type Type uint32

// The types that exist in ggml. Supported tells which of them this package converts.
const (
	F32     Type = 0
	F16     Type = 1
	Q4_0    Type = 2
	Q4_1    Type = 3
	Q5_0    Type = 6
	Q5_1    Type = 7
	Q8_0    Type = 8
	Q8_1    Type = 9
	Q2_K    Type = 10
	Q3_K    Type = 11
	Q4_K    Type = 12
	Q5_K    Type = 13
	Q6_K    Type = 14
	Q8_K    Type = 15
	IQ2_XXS Type = 16
	IQ2_XS  Type = 17
	IQ3_XXS Type = 18
	IQ1_S   Type = 19
	IQ4_NL  Type = 20
	IQ3_S   Type = 21
	IQ2_S   Type = 22
	IQ4_XS  Type = 23
	I8      Type = 24
	I16     Type = 25
	I32     Type = 26
	I64     Type = 27
	F64     Type = 28
	IQ1_M   Type = 29
	BF16    Type = 30
	TQ1_0   Type = 34
	TQ2_0   Type = 35
	MXFP4   Type = 39
	NVFP4   Type = 40
	Q1_0    Type = 41
	Q2_0    Type = 42
)

// layout describes one type. decode and encode convert whole blocks and may rely on the lengths being right.
type layout struct {
	name   string
	size   int // elements in a block; 0 where the layout is not known
	bytes  int // bytes in a block
	decode func(dst []float32, src []byte)
	encode func(dst []byte, src []float32)
}

// layouts is indexed by Type; ids that ggml never used or that it dropped without a name are empty. The types without
// a size were repacked forms that ggml withdrew from files.
var layouts = [...]layout{
	F32:     {"F32", 1, 4, decodeF32, encodeF32},
	F16:     {"F16", 1, 2, decodeF16, encodeF16},
	Q4_0:    {"Q4_0", 32, 18, decodeQ4_0, encodeQ4_0},
	Q4_1:    {"Q4_1", 32, 20, decodeQ4_1, encodeQ4_1},
	4:       {name: "Q4_2"},
	5:       {name: "Q4_3"},
	Q5_0:    {"Q5_0", 32, 22, decodeQ5_0, encodeQ5_0},
	Q5_1:    {"Q5_1", 32, 24, decodeQ5_1, encodeQ5_1},
	Q8_0:    {"Q8_0", 32, 34, decodeQ8_0, encodeQ8_0},
	Q8_1:    {name: "Q8_1", size: 32, bytes: 36},
	Q2_K:    {"Q2_K", 256, 84, decodeQ2_K, nil},
	Q3_K:    {"Q3_K", 256, 110, decodeQ3_K, nil},
	Q4_K:    {"Q4_K", 256, 144, decodeQ4_K, encodeQ4_K},
	Q5_K:    {"Q5_K", 256, 176, decodeQ5_K, encodeQ5_K},
	Q6_K:    {"Q6_K", 256, 210, decodeQ6_K, encodeQ6_K},
	Q8_K:    {name: "Q8_K", size: 256, bytes: 292},
	IQ2_XXS: {name: "IQ2_XXS", size: 256, bytes: 66},
	IQ2_XS:  {name: "IQ2_XS", size: 256, bytes: 74},
	IQ3_XXS: {name: "IQ3_XXS", size: 256, bytes: 98},
	IQ1_S:   {name: "IQ1_S", size: 256, bytes: 50},
	IQ4_NL:  {"IQ4_NL", 32, 18, decodeIQ4_NL, nil},
	IQ3_S:   {name: "IQ3_S", size: 256, bytes: 110},
	IQ2_S:   {name: "IQ2_S", size: 256, bytes: 82},
	IQ4_XS:  {"IQ4_XS", 256, 136, decodeIQ4_XS, nil},
	I8:      {name: "I8", size: 1, bytes: 1},
	I16:     {name: "I16", size: 1, bytes: 2},
	I32:     {name: "I32", size: 1, bytes: 4},
	I64:     {name: "I64", size: 1, bytes: 8},
	F64:     {name: "F64", size: 1, bytes: 8},
	IQ1_M:   {name: "IQ1_M", size: 256, bytes: 56},
	BF16:    {"BF16", 1, 2, decodeBF16, encodeBF16},
	31:      {name: "Q4_0_4_4"},
	32:      {name: "Q4_0_4_8"},
	33:      {name: "Q4_0_8_8"},
	TQ1_0:   {name: "TQ1_0", size: 256, bytes: 54},
	TQ2_0:   {name: "TQ2_0", size: 256, bytes: 66},
	36:      {name: "IQ4_NL_4_4"},
	37:      {name: "IQ4_NL_4_8"},
	38:      {name: "IQ4_NL_8_8"},
	MXFP4:   {"MXFP4", 32, 17, decodeMXFP4, encodeMXFP4},
	NVFP4:   {name: "NVFP4", size: 64, bytes: 36},
	Q1_0:    {name: "Q1_0", size: 128, bytes: 18},
	Q2_0:    {name: "Q2_0", size: 64, bytes: 18},
}

// layout returns t's row of the table, empty when t is not in it.
func (t Type) layout() *layout {
	if int64(t) < int64(len(layouts)) {
		return &layouts[t]
	}
	return &layout{}
}

// String returns ggml's name of t, such as "Q4_0", also for types that are not converted; "type(77)" for other ids.
func (t Type) String() string {
	if l := t.layout(); l.name != "" {
		return l.name
	}
	return fmt.Sprintf("type(%d)", uint32(t))
}

// ParseType returns the type named s, in any case.
func ParseType(s string) (Type, error) {
	for i := range layouts {
		if name := layouts[i].name; name != "" && strings.EqualFold(name, s) {
			return Type(i), nil
		}
	}
	return 0, fmt.Errorf("quant: no block type is named %q", s)
}

// Supported reports whether Dequantize knows t.
func (t Type) Supported() bool { return t.layout().decode != nil }

// Quantizable reports whether Quantize knows t.
func (t Type) Quantizable() bool { return t.layout().encode != nil }

// BlockSize returns the number of elements in a block, 0 if the layout is unknown.
func (t Type) BlockSize() int { return t.layout().size }

// BlockBytes returns the number of bytes of a block, 0 if the layout is unknown.
func (t Type) BlockBytes() int { return t.layout().bytes }

// RowBytes returns the bytes that n elements take. It is an error if n is negative or no multiple of the block size,
// if the layout of t is unknown, or if the bytes exceed an int64.
func (t Type) RowBytes(n int) (int64, error) {
	l := t.layout()
	switch {
	case l.size == 0:
		return 0, fmt.Errorf("quant: the layout of %v is unknown", t)
	case n < 0 || n%l.size != 0:
		return 0, fmt.Errorf("quant: %d elements are no multiple of %v's block of %d", n, t, l.size)
	case int64(n/l.size) > math.MaxInt64/int64(l.bytes):
		return 0, fmt.Errorf("quant: %d elements of %v take more than 2^63 bytes", n, t)
	}
	return int64(n/l.size) * int64(l.bytes), nil
}

// Dequantize writes to dst the values that the blocks in src stand for. len(dst) is a multiple of BlockSize and src has
// exactly RowBytes(len(dst)) bytes.
func (t Type) Dequantize(dst []float32, src []byte) error {
	l := t.layout()
	if l.decode == nil {
		return fmt.Errorf("quant: conversion from %v is not supported", t)
	}
	if err := t.check(len(dst), len(src)); err != nil {
		return fmt.Errorf("%w in dequantizing", err)
	}
	l.decode(dst, src)
	return nil
}

// Quantize packs src into blocks of type t. len(src) is a multiple of BlockSize and dst has exactly
// RowBytes(len(src)) bytes. Values are assumed finite: where they are not, what the block holds is deterministic but
// unspecified, except that F32, F16 and BF16 keep infinities and NaN.
func (t Type) Quantize(dst []byte, src []float32) error {
	l := t.layout()
	if l.encode == nil {
		return fmt.Errorf("quant: conversion to %v is not supported", t)
	}
	if err := t.check(len(src), len(dst)); err != nil {
		return fmt.Errorf("%w in quantizing", err)
	}
	l.encode(dst, src)
	return nil
}

// DequantizeRow is Dequantize as a function, for callers that pass the type along.
func DequantizeRow(t Type, dst []float32, src []byte) error { return t.Dequantize(dst, src) }

// check compares a number of elements with a number of bytes.
func (t Type) check(elements, bytes int) error {
	want, err := t.RowBytes(elements)
	if err != nil {
		return err
	}
	if int64(bytes) != want {
		return fmt.Errorf("quant: %d elements of %v take %d bytes, got %d", elements, t, want, bytes)
	}
	return nil
}
