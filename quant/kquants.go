package quant

import "encoding/binary"

// The formats of 256 elements ("super-blocks") with a scale for each group of 16 or 32, itself a small integer times
// the half d; where there is a minimum for each group, it is a small integer times the half dmin and is subtracted:
//
//	Q2_K  scales[16], qs[64], d, dmin              groups of 16: 4-bit scale (low) and minimum (high)
//	Q3_K  hmask[32], qs[64], scales[12], d         groups of 16: 6-bit scale less 32
//	Q4_K  d, dmin, scales[12], qs[128]             groups of 32: 6-bit scale and minimum
//	Q5_K  d, dmin, scales[12], qh[32], qs[128]     groups of 32: 6-bit scale and minimum
//	Q6_K  ql[128], qh[64], scales[16], d           groups of 16: signed 8-bit scale

func decodeQ2_K(dst []float32, src []byte) {
	for len(dst) >= 256 && len(src) >= 84 {
		y, b := (*[256]float32)(dst), (*[84]byte)(src)
		d, dmin := half(b[80:82]), half(b[82:84])
		// A run of 32 bytes holds 128 elements, two bits each: group by group of 32 elements from the low bits up.
		for g := range 16 {
			sc := b[g]
			scale, low := d*float32(sc&15), float32(dmin*float32(sc>>4))
			q := (*[16]byte)(b[16+g/8*32+g%2*16:])
			shift := g / 2 % 4 * 2
			out := (*[16]float32)(y[16*g:])
			for j := range out {
				out[j] = float32(scale*float32(q[j]>>shift&3)) - low
			}
		}
		dst, src = dst[256:], src[84:]
	}
}

func decodeQ3_K(dst []float32, src []byte) {
	for len(dst) >= 256 && len(src) >= 110 {
		y, b := (*[256]float32)(dst), (*[110]byte)(src)
		d, sc := half(b[108:110]), (*[12]byte)(b[96:])
		for g := range 16 {
			// The scale's low four bits are in sc[0..7], the groups 8..15 in the high nibbles; its two high bits in sc[8..11].
			low := sc[g%8] >> (g / 8 * 4) & 15
			high := sc[8+g%4] >> (g / 4 * 2) & 3
			scale := d * float32(int(low|high<<4)-32)
			q := (*[16]byte)(b[32+g/8*32+g%2*16:])
			h := (*[16]byte)(b[g%2*16:])
			shift, bit := g/2%4*2, g/2
			out := (*[16]float32)(y[16*g:])
			for j := range out {
				// The third bit is stored so that a set bit means no subtraction.
				out[j] = scale * float32(int(q[j]>>shift&3|h[j]>>bit&1<<2)-4)
			}
		}
		dst, src = dst[256:], src[110:]
	}
}

// ScaleMin returns the 6-bit scale and minimum of group g (0..7) from the 12 bytes that Q4_K and Q5_K pack them in:
// groups 0..3 in the low six bits of bytes 0..3 and 4..7; groups 4..7 in the nibbles of bytes 8..11, with their upper
// two bits in the top of bytes 0..7.
func ScaleMin(p *[12]byte, g int) (scale, low byte) {
	if g < 4 {
		return p[g] & 63, p[g+4] & 63
	}
	return p[g+4]&15 | p[g-4]>>6<<4, p[g+4]>>4 | p[g]>>6<<4
}

func decodeQ4_K(dst []float32, src []byte) {
	for len(dst) >= 256 && len(src) >= 144 {
		y, b := (*[256]float32)(dst), (*[144]byte)(src)
		d, dmin, sc := half(b[:2]), half(b[2:4]), (*[12]byte)(b[4:])
		for p := range 4 { // 32 bytes hold two groups: low nibbles, then high nibbles
			s, m := ScaleMin(sc, 2*p)
			s1, m1 := d*float32(s), float32(dmin*float32(m))
			s, m = ScaleMin(sc, 2*p+1)
			s2, m2 := d*float32(s), float32(dmin*float32(m))
			out := (*[64]float32)(y[64*p:])
			for j, q := range (*[32]byte)(b[16+32*p:]) {
				out[j] = float32(s1*float32(q&15)) - m1
				out[j+32] = float32(s2*float32(q>>4)) - m2
			}
		}
		dst, src = dst[256:], src[144:]
	}
}

func decodeQ5_K(dst []float32, src []byte) {
	for len(dst) >= 256 && len(src) >= 176 {
		y, b := (*[256]float32)(dst), (*[176]byte)(src)
		d, dmin, sc, qh := half(b[:2]), half(b[2:4]), (*[12]byte)(b[4:]), (*[32]byte)(b[16:])
		for p := range 4 { // as Q4_K; the fifth bit of group g is bit g of qh
			s, m := ScaleMin(sc, 2*p)
			s1, m1 := d*float32(s), float32(dmin*float32(m))
			s, m = ScaleMin(sc, 2*p+1)
			s2, m2 := d*float32(s), float32(dmin*float32(m))
			out := (*[64]float32)(y[64*p:])
			for j, q := range (*[32]byte)(b[48+32*p:]) {
				h := qh[j] >> (2 * p)
				out[j] = float32(s1*float32(q&15|h<<4&16)) - m1
				out[j+32] = float32(s2*float32(q>>4|h<<3&16)) - m2
			}
		}
		dst, src = dst[256:], src[176:]
	}
}

func decodeQ6_K(dst []float32, src []byte) {
	for len(dst) >= 256 && len(src) >= 210 {
		y, b := (*[256]float32)(dst), (*[210]byte)(src)
		d := F16ToF32(binary.LittleEndian.Uint16(b[208:]))
		for n := range 2 { // 128 elements: four rows of 32 share the 64 bytes of ql and the 32 of qh
			out := (*[128]float32)(y[128*n:])
			ql, qh := (*[64]byte)(b[64*n:]), (*[32]byte)(b[128+32*n:])
			var s [8]float32
			for g := range s {
				s[g] = d * float32(int8(b[192+8*n+g]))
			}
			for half := range 2 {
				s1, s2, s3, s4 := s[half], s[half+2], s[half+4], s[half+6]
				for j := 16 * half; j < 16*half+16; j++ {
					a, c, h := ql[j&31], ql[j&31+32], qh[j&31]
					out[j] = s1 * float32(int(a&15|h<<4&48)-32)
					out[j+32] = s2 * float32(int(c&15|h<<2&48)-32)
					out[j+64] = s3 * float32(int(a>>4|h&48)-32)
					out[j+96] = s4 * float32(int(c>>4|h>>2&48)-32)
				}
			}
		}
		dst, src = dst[256:], src[210:]
	}
}
