package kernel

import (
	"encoding/binary"
	"math"

	"github.com/tandemrun/tandem/quant"
)

// lanes is the number of rows in a panel.
const lanes = 16

// kind is a panel format: how 16 rows of weights lie in memory for a product. docs/kernels.md draws them.
type kind uint8

const (
	kindF32 kind = iota
	kindF16
	kindBF16
	kindQ4_0
	kindQ4_1
	kindQ5_0
	kindQ5_1
	kindQ8_0
	kindQ4_K
	kindQ5_K
	kindQ6_K
	kinds
)

// A format describes a kind. Its panel is a sequence of blocks; a block holds the same columns of 16 rows. In a block,
// a register of 64 bytes holds four consecutive columns of the 16 rows, so that a lane of a dot product instruction is
// a row and the activations are a broadcast.
type format struct {
	columns int // of a block
	bytes   int // of a block of 16 rows
	file    int // bytes of one row's block in the file

	// Where the parts of a file's block go. A run copies n units of each row; the same unit of the 16 rows lies
	// together. What a product reads first lies first, since memory is fastest when read in order.
	halves, words, octets []run
	bits                  []run                          // 32 high bits, spread
	flip                  byte                           // codes are XORed with it, which makes them unsigned
	special               func(dst, src []byte, row int) // what no run can do

	// The integer form, in sub-blocks of 32 columns.
	int8   bool
	offset int32 // a code stands for code-offset
	split  bool  // the two halves of a sub-block have their own scales
	min    bool  // a value is scale*code + min
}

type run struct {
	src, dst, n int
	step        int // of words: bytes from one to the next of the same row; the others are close together
}

// A subBlock is 32 columns of a panel, taken apart.
type subBlock struct {
	code  [8][lanes][4]uint8 // group of 4 columns, row, column
	scale [2][lanes]float32  // of the first and the last 16 columns; only the first unless split
	min   [lanes]float32
}

var formats = [kinds]format{
	kindF32:  {columns: 1, bytes: 64, file: 4, words: []run{{0, 0, 1, 64}}},
	kindF16:  {columns: 1, bytes: 32, file: 2, halves: []run{{src: 0, dst: 0, n: 1}}},
	kindBF16: {columns: 1, bytes: 32, file: 2, halves: []run{{src: 0, dst: 0, n: 1}}},
	kindQ4_0: {columns: 32, bytes: 288, file: 18,
		halves: []run{{src: 0, dst: 0, n: 1}}, words: []run{{2, 32, 4, 64}},
		int8: true, offset: 8},
	kindQ4_1: {columns: 32, bytes: 320, file: 20,
		halves: []run{{src: 0, dst: 0, n: 2}}, words: []run{{4, 64, 4, 64}},
		int8: true, min: true},
	kindQ5_0: {columns: 32, bytes: 352, file: 22,
		halves: []run{{src: 0, dst: 0, n: 1}}, words: []run{{6, 96, 4, 64}}, bits: []run{{src: 2, dst: 32, n: 1}},
		int8: true, offset: 16},
	kindQ5_1: {columns: 32, bytes: 384, file: 24,
		halves: []run{{src: 0, dst: 0, n: 2}}, words: []run{{8, 128, 4, 64}}, bits: []run{{src: 4, dst: 64, n: 1}},
		int8: true, min: true},
	kindQ8_0: {columns: 32, bytes: 544, file: 34,
		halves: []run{{src: 0, dst: 0, n: 1}}, words: []run{{2, 32, 8, 64}}, flip: 0x80,
		int8: true, offset: 128},
	kindQ4_K: {columns: 256, bytes: 2368, file: 144,
		halves: []run{{src: 0, dst: 0, n: 2}}, words: []run{{16, 320, 32, 64}}, special: packScalesK,
		int8: true, min: true},
	kindQ5_K: {columns: 256, bytes: 2880, file: 176,
		halves: []run{{src: 0, dst: 0, n: 2}}, words: []run{{16, 320, 8, 128}, {48, 384, 8, 128}, {80, 1344, 24, 64}}, special: packScalesK,
		int8: true, min: true},
	kindQ6_K: {columns: 256, bytes: 3360, file: 210,
		halves: []run{{src: 208, dst: 0, n: 1}}, octets: []run{{src: 192, dst: 32, n: 16}}, words: []run{
			{0, 288, 8, 128}, {128, 352, 8, 128}, {32, 1312, 8, 64},
			{64, 1824, 8, 128}, {160, 1888, 8, 128}, {96, 2848, 8, 64}},
		int8: true, offset: 32, split: true},
}

// kindOf returns the panel format of a type; native is false where there is none and rows go through float32.
func kindOf(t quant.Type) (k kind, native bool) {
	switch t {
	case quant.F32:
		return kindF32, true
	case quant.F16:
		return kindF16, true
	case quant.BF16:
		return kindBF16, true
	case quant.Q4_0:
		return kindQ4_0, true
	case quant.Q4_1:
		return kindQ4_1, true
	case quant.Q5_0:
		return kindQ5_0, true
	case quant.Q5_1:
		return kindQ5_1, true
	case quant.Q8_0:
		return kindQ8_0, true
	case quant.Q4_K:
		return kindQ4_K, true
	case quant.Q5_K:
		return kindQ5_K, true
	case quant.Q6_K:
		return kindQ6_K, true
	}
	return kindF32, false
}

// unpack takes sub-block s of a panel's block apart.
func (b *subBlock) unpack(k kind, p []byte, s int) {
	switch k {
	case kindQ4_0:
		b.q4_0(p)
	case kindQ4_1:
		b.q4_1(p)
	case kindQ5_0:
		b.q5_0(p)
	case kindQ5_1:
		b.q5_1(p)
	case kindQ8_0:
		b.q8_0(p)
	case kindQ4_K:
		b.q4_K(p, s)
	case kindQ5_K:
		b.q5_K(p, s)
	case kindQ6_K:
		b.q6_K(p, s)
	}
}

// readHalves reads the 16 halves at the start of b.
func readHalves(dst *[lanes]float32, b []byte) {
	for r := range dst {
		dst[r] = quant.F16ToF32(binary.LittleEndian.Uint16(b[2*r:]))
	}
}

// nibbles reads four registers whose low halves are groups 0 to 3 and whose high halves are groups 4 to 7.
func (b *subBlock) nibbles(q []byte) {
	for i := range 4 {
		for r := range lanes {
			for j := range 4 {
				c := q[64*i+4*r+j]
				b.code[i][r][j] = c & 15
				b.code[i+4][r][j] = c >> 4
			}
		}
	}
}

// high adds bits of the bytes of register i to the codes of group i from bit 4 on: those that mask keeps, from the one
// numbered bit on. Registers are stride bytes apart.
func (b *subBlock) high(q []byte, stride, bit int, mask uint8) {
	for i := range b.code {
		for r := range lanes {
			for j := range 4 {
				b.code[i][r][j] |= q[stride*i+4*r+j] >> bit & mask << 4
			}
		}
	}
}

// highBits adds bit i of one register to the codes of group i.
func (b *subBlock) highBits(q []byte) {
	for i := range b.code {
		for r := range lanes {
			for j := range 4 {
				b.code[i][r][j] |= q[4*r+j] >> i & 1 << 4
			}
		}
	}
}

func (b *subBlock) q4_0(p []byte) {
	readHalves(&b.scale[0], p)
	b.nibbles(p[32:])
}

func (b *subBlock) q4_1(p []byte) {
	readHalves(&b.scale[0], p)
	readHalves(&b.min, p[32:])
	b.nibbles(p[64:])
}

func (b *subBlock) q5_0(p []byte) {
	readHalves(&b.scale[0], p)
	b.nibbles(p[96:])
	b.highBits(p[32:])
}

func (b *subBlock) q5_1(p []byte) {
	readHalves(&b.scale[0], p)
	readHalves(&b.min, p[32:])
	b.nibbles(p[128:])
	b.highBits(p[64:])
}

func (b *subBlock) q8_0(p []byte) {
	readHalves(&b.scale[0], p)
	for i := range b.code {
		for r := range lanes {
			copy(b.code[i][r][:], p[32+64*i+4*r:])
		}
	}
}

// scalesK multiplies the scales and mins of sub-block s with those of the whole block; the products are exact.
func (b *subBlock) scalesK(p []byte, s int) {
	readHalves(&b.scale[0], p)
	readHalves(&b.min, p[32:])
	for r := range lanes {
		b.scale[0][r] *= float32(p[64+16*s+r])
		b.min[r] *= -float32(p[192+16*s+r])
	}
}

// half takes the codes of a sub-block from one half of the bytes of eight registers, stride bytes apart.
func (b *subBlock) half(q []byte, stride, shift int) {
	for i := range b.code {
		for r := range lanes {
			for j := range 4 {
				b.code[i][r][j] = q[stride*i+4*r+j] >> shift & 15
			}
		}
	}
}

func (b *subBlock) q4_K(p []byte, s int) {
	b.scalesK(p, s)
	b.half(p[320+s/2*512:], 64, s%2*4)
}

func (b *subBlock) q5_K(p []byte, s int) {
	b.scalesK(p, s)
	if s < 2 {
		b.half(p[384:], 128, s*4)
	} else {
		b.half(p[832+s/2*512:], 64, s%2*4)
	}
	b.high(p[320:], 128, s, 1)
}

func (b *subBlock) q6_K(p []byte, s int) {
	readHalves(&b.scale[0], p)
	for r := range lanes {
		d := b.scale[0][r]
		b.scale[0][r] = d * float32(int8(p[32+16*(2*s)+r]))
		b.scale[1][r] = d * float32(int8(p[32+16*(2*s+1)+r]))
	}
	p, part := p[288+s/4*1536:], s%4
	if part%2 == 0 {
		b.half(p, 128, part/2*4)
	} else {
		b.half(p[1024:], 64, part/2*4)
	}
	b.high(p[64:], 128, 2*part, 3)
}

// floatWeights reads column c of a panel of one of the float kinds.
func floatWeights(k kind, dst *[lanes]float32, panel []byte, c int) {
	switch k {
	case kindF32:
		for r := range dst {
			dst[r] = math.Float32frombits(binary.LittleEndian.Uint32(panel[64*c+4*r:]))
		}
	case kindF16:
		readHalves(dst, panel[32*c:])
	default:
		for r := range dst {
			dst[r] = quant.BF16ToF32(binary.LittleEndian.Uint16(panel[32*c+2*r:]))
		}
	}
}
