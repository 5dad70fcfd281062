package quant

import (
	"encoding/binary"
	"math"
)

// F16ToF32 converts an IEEE 754 half to float32; every half is exact. NaN keeps its payload.
func F16ToF32(h uint16) float32 {
	// Shifted by 13 the fraction stands where float32 has it and the exponent is too small by 127-15: a
	// multiplication by 2^112 corrects it, for subnormal halves as well, and exactly.
	f := math.Float32frombits(uint32(h&0x7fff)<<13) * 0x1p112
	bits := math.Float32bits(f)
	if h&0x7c00 == 0x7c00 {
		bits = uint32(h&0x3ff)<<13 | 0x7f800000
	}
	return math.Float32frombits(bits | uint32(h&0x8000)<<16)
}

// F32ToF16 converts to an IEEE 754 half, rounding to nearest, ties to even; values from 65520 up become infinite. NaN
// becomes a quiet NaN with the payload's upper bits.
func F32ToF16(f float32) uint16 {
	bits := math.Float32bits(f)
	sign := uint16(bits >> 16 & 0x8000)
	bits &= 0x7fffffff
	switch {
	case bits > 0x7f800000: // NaN
		return sign | 0x7e00 | uint16(bits>>13&0x3ff)
	case bits >= 0x477ff000: // rounds to 2^16
		return sign | 0x7c00
	case bits < 0x38800000: // below 2^-14: a subnormal half counts units of 2^-24
		// Adding 2^-1 leaves exactly those units in the fraction, rounded to even by the addition itself.
		return sign | uint16(math.Float32bits(math.Float32frombits(bits)+0.5)-0x3f000000)
	}
	bits -= (127 - 15) << 23
	return sign | uint16((bits+0xfff+(bits>>13&1))>>13)
}

// BF16ToF32 converts a bfloat16, the upper half of a float32; every one is exact.
func BF16ToF32(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// F32ToBF16 converts to bfloat16, rounding to nearest, ties to even. NaN becomes quiet.
func F32ToBF16(f float32) uint16 {
	bits := math.Float32bits(f)
	if bits&0x7fffffff > 0x7f800000 {
		return uint16(bits>>16) | 0x40
	}
	return uint16((bits + 0x7fff + (bits >> 16 & 1)) >> 16)
}

// half reads the half at the start of b.
func half(b []byte) float32 { return F16ToF32(binary.LittleEndian.Uint16(b)) }

// putHalf writes f as a half at the start of b.
func putHalf(b []byte, f float32) { binary.LittleEndian.PutUint16(b, F32ToF16(f)) }

func decodeF32(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
	}
}

func encodeF32(dst []byte, src []float32) {
	for i, f := range src {
		binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(f))
	}
}

func decodeF16(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = half(src[2*i:])
	}
}

func encodeF16(dst []byte, src []float32) {
	for i, f := range src {
		putHalf(dst[2*i:], f)
	}
}

func decodeBF16(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = BF16ToF32(binary.LittleEndian.Uint16(src[2*i:]))
	}
}

func encodeBF16(dst []byte, src []float32) {
	for i, f := range src {
		binary.LittleEndian.PutUint16(dst[2*i:], F32ToBF16(f))
	}
}
