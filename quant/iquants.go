package quant

import (
	"encoding/binary"
	"math"
)

// The formats whose four bits choose one of 16 fixed values:
//
//	IQ4_NL  d, qs[16]                          32 elements, x = d v(q)
//	IQ4_XS  d, scales_h, scales_l[4], qs[128]  256 elements in groups of 32 with a 6-bit scale less 32
//	MXFP4   e, qs[16]                          32 elements, x = 2^(e-127) v(q), v the values of a 4-bit float (E2M1)
//
// Byte j of a group of 32 holds elements j and j+16, as in Q4_0.

// iq4Values are the levels of IQ4_NL and IQ4_XS: denser near zero, where weights are.
var iq4Values = [16]float32{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}

// mxfp4Values are twice the values of E2M1, so that they are integers; the scale is halved instead.
var mxfp4Values = [16]float32{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}

// decodeNibbles writes d*v[q] for the 32 nibbles of qs.
func decodeNibbles(out *[32]float32, qs *[16]byte, d float32, v *[16]float32) {
	for j, q := range qs {
		out[j] = d * v[q&15]
		out[j+16] = d * v[q>>4]
	}
}

func decodeIQ4_NL(dst []float32, src []byte) {
	for len(dst) >= 32 && len(src) >= 18 {
		decodeNibbles((*[32]float32)(dst), (*[16]byte)(src[2:]), half(src), &iq4Values)
		dst, src = dst[32:], src[18:]
	}
}

func decodeIQ4_XS(dst []float32, src []byte) {
	for len(dst) >= 256 && len(src) >= 136 {
		y, b := (*[256]float32)(dst), (*[136]byte)(src)
		d, high := half(b[:2]), binary.LittleEndian.Uint16(b[2:4])
		for g := range 8 {
			s := int(b[4+g/2]>>(g%2*4)&15) | int(high>>(2*g)&3)<<4
			decodeNibbles((*[32]float32)(y[32*g:]), (*[16]byte)(b[8+16*g:]), d*float32(s-32), &iq4Values)
		}
		dst, src = dst[256:], src[136:]
	}
}

// halfScale returns 2^(e-128), half the scale that an E8M0 exponent stands for. The two smallest are subnormal.
func halfScale(e byte) float32 {
	if e < 2 {
		return math.Float32frombits(0x00200000 << e)
	}
	return math.Float32frombits(uint32(e-1) << 23)
}

func decodeMXFP4(dst []float32, src []byte) {
	for len(dst) >= 32 && len(src) >= 17 {
		decodeNibbles((*[32]float32)(dst), (*[16]byte)(src[1:]), halfScale(src[0]), &mxfp4Values)
		dst, src = dst[32:], src[17:]
	}
}
