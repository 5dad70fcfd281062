package quant

import "encoding/binary"

// The formats of 32 elements with one scale d, a half, and for the _1 forms one minimum m, a half:
//
//	Q4_0  d, qs[16]         x = d (q - 8)
//	Q4_1  d, m, qs[16]      x = d q + m
//	Q5_0  d, qh[4], qs[16]  x = d (q - 16)
//	Q5_1  d, m, qh[4], qs[16]
//	Q8_0  d, qs[32]         x = d q, q signed
//
// Byte j of qs holds the low four bits of elements j (low nibble) and j+16 (high nibble); bit j of qh, a little-endian
// word, is the fifth bit of element j.

func decodeQ4_0(dst []float32, src []byte) {
	for len(dst) >= 32 && len(src) >= 18 {
		y, b := (*[32]float32)(dst), (*[18]byte)(src)
		d := half(b[:2])
		for j, q := range b[2:] {
			y[j] = d * float32(int(q&15)-8)
			y[j+16] = d * float32(int(q>>4)-8)
		}
		dst, src = dst[32:], src[18:]
	}
}

func decodeQ4_1(dst []float32, src []byte) {
	for len(dst) >= 32 && len(src) >= 20 {
		y, b := (*[32]float32)(dst), (*[20]byte)(src)
		d, m := half(b[:2]), half(b[2:4])
		for j, q := range b[4:] {
			y[j] = float32(d*float32(q&15)) + m
			y[j+16] = float32(d*float32(q>>4)) + m
		}
		dst, src = dst[32:], src[20:]
	}
}

func decodeQ5_0(dst []float32, src []byte) {
	for len(dst) >= 32 && len(src) >= 22 {
		y, b := (*[32]float32)(dst), (*[22]byte)(src)
		d, h := half(b[:2]), binary.LittleEndian.Uint32(b[2:6])
		for j, q := range b[6:] {
			y[j] = d * float32(int(uint32(q&15)|h<<4&16)-16)
			y[j+16] = d * float32(int(uint32(q>>4)|h>>12&16)-16)
			h >>= 1
		}
		dst, src = dst[32:], src[22:]
	}
}

func decodeQ5_1(dst []float32, src []byte) {
	for len(dst) >= 32 && len(src) >= 24 {
		y, b := (*[32]float32)(dst), (*[24]byte)(src)
		d, m, h := half(b[:2]), half(b[2:4]), binary.LittleEndian.Uint32(b[4:8])
		for j, q := range b[8:] {
			y[j] = float32(d*float32(uint32(q&15)|h<<4&16)) + m
			y[j+16] = float32(d*float32(uint32(q>>4)|h>>12&16)) + m
			h >>= 1
		}
		dst, src = dst[32:], src[24:]
	}
}

func decodeQ8_0(dst []float32, src []byte) {
	for len(dst) >= 32 && len(src) >= 34 {
		y, b := (*[32]float32)(dst), (*[34]byte)(src)
		d := half(b[:2])
		for j, q := range b[2:] {
			y[j] = d * float32(int8(q))
		}
		dst, src = dst[32:], src[34:]
	}
}
