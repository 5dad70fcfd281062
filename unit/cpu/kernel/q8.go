package kernel

import (
	"encoding/binary"
	"math"

	"github.com/tandemrun/tandem/quant"
)

// Blocks of Q8_0 as package quant lays them out.
const (
	q8Values = 32
	q8Bytes  = 34
)

// Q8Row rounds src, whose length is a multiple of 32, to blocks of Q8_0 as package quant does: the scale of a block is
// its largest magnitude / 127, and a code the value * (1 / scale), rounded to nearest, halves away from zero. It is not
// quant's in blocks of magnitudes below 1e-30, whose codes are zero as what they stand for is, and in blocks with a NaN,
// which become NaN.
func (s *Set) Q8Row(dst []byte, src []float32) {
	blocks := len(src) / q8Values
	dst, src = dst[:blocks*q8Bytes], src[:blocks*q8Values]
	if blocks > 0 {
		s.q8Row(dst, src)
	}
}

func q8RowGeneric(dst []byte, src []float32) {
	for ; len(src) > 0; dst, src = dst[q8Bytes:], src[q8Values:] {
		var most uint32 // magnitudes order as their bits do, and NaN above all
		for _, v := range src[:q8Values] {
			most = max(most, math.Float32bits(v)&0x7fffffff)
		}
		var scale, inverse float32
		if most >= math.Float32bits(tiny) {
			scale = math.Float32frombits(most) / 127
			inverse = 1 / scale
		}
		binary.LittleEndian.PutUint16(dst, quant.F32ToF16(scale))
		for i, v := range src[:q8Values] {
			// The largest number below a half, towards the value's own side: what is truncated then is rounded.
			p := v * inverse
			half := math.Float32frombits(math.Float32bits(p)&(1<<31) | belowHalf)
			q := int32(0)
			if x := p + half; x == x {
				q = int32(x)
			}
			dst[2+i] = byte(q)
		}
	}
}

// belowHalf is the bits of the largest float32 below 0.5.
const belowHalf = 0x3effffff

// Q8Values writes the values of blocks of Q8_0; len(dst) is a multiple of 32.
func (s *Set) Q8Values(dst []float32, src []byte) {
	blocks := len(dst) / q8Values
	dst, src = dst[:blocks*q8Values], src[:blocks*q8Bytes]
	if blocks > 0 {
		s.q8Values(dst, src)
	}
}

func q8ValuesGeneric(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[q8Values:], src[q8Bytes:] {
		d := quant.F16ToF32(binary.LittleEndian.Uint16(src))
		for i, q := range src[2:q8Bytes] {
			dst[i] = d * float32(int8(q)) // exact
		}
	}
}
