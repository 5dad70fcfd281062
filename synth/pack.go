package synth

import "encoding/binary"

// The pack functions write the levels that were drawn, in the layouts of package quant. Which level comes first does not
// matter, since all are drawn alike; what belongs together, the low and the high bits of a level, does.

// nibbles packs two levels into each byte of b.
func nibbles(b, q []uint8) {
	q = q[:2*len(b)]
	for j := range b {
		b[j] = q[j]&15 | q[len(b)+j]<<4
	}
}

// packQ4 packs Q4_0 and Q4_1.
func packQ4(f *filler, b []byte, r *source) {
	if len(b) == 18 {
		f.scale(b, r)
	} else {
		f.scaleLow(b, b[2:], r)
	}
	nibbles(b[len(b)-16:], f.drawn[:32])
}

// packQ5 packs Q5_0 and Q5_1.
func packQ5(f *filler, b []byte, r *source) {
	if len(b) == 22 {
		f.scale(b, r)
	} else {
		f.scaleLow(b, b[2:], r)
	}
	var high uint32
	for j, q := range f.drawn[:32] {
		high |= uint32(q>>4) << j
	}
	binary.LittleEndian.PutUint32(b[len(b)-20:], high)
	nibbles(b[len(b)-16:], f.drawn[:32])
}

func packQ8(f *filler, b []byte, r *source) {
	f.scale(b, r)
	for j, q := range f.drawn[:32] {
		b[2+j] = q ^ 0x80 // level 128 is the value 0
	}
}

// packQ2K gives each group of 16 a scale of 8 to 15 and the same minimum.
func packQ2K(f *filler, b []byte, r *source) {
	x := r.next()
	for g := range b[:16] {
		b[g] = (8 | uint8(x>>(4*g)&7)) * 0x11
	}
	q := f.drawn[:]
	for j := range b[16:80] {
		b[16+j] = q[j] | q[j+64]<<2 | q[j+128]<<4 | q[j+192]<<6
	}
	f.scaleLow(b[80:], b[82:], r)
}

// packQ3K gives each group of 16 a scale of 16 to 31, stored with 32 added.
func packQ3K(f *filler, b []byte, r *source) {
	q := f.drawn[:]
	for j := range b[:32] { // bit and pair i of element 32i+j
		var high uint8
		for i := range 8 {
			high |= q[32*i+j] >> 2 << i
		}
		b[j] = high
		for half := range 2 {
			var low uint8
			for i := range 4 {
				low |= q[128*half+32*i+j] & 3 << (2 * i)
			}
			b[32+32*half+j] = low
		}
	}
	binary.LittleEndian.PutUint64(b[96:], r.next()) // low four bits of the scales
	for i := range 4 {
		b[104+i] = 0xff // high bits: 48 to 63
	}
	f.scale(b[108:], r)
}

// sixBits packs scales of 48 to 63 for the eight groups of Q4_K and Q5_K, and the same minima.
func sixBits(b []byte, r *source) {
	x := r.next()
	for g := range 4 {
		a, c := uint8(x>>(4*g)&15), uint8(x>>(16+4*g)&15)
		b[g] = 0xf0 | a // the group's own 48 + a, and above it the high bits of group g+4
		b[g+4] = 0xf0 | a
		b[g+8] = c | c<<4
	}
}

func packQ4K(f *filler, b []byte, r *source) {
	f.scaleLow(b, b[2:], r)
	sixBits(b[4:16], r)
	nibbles(b[16:], f.drawn[:])
}

func packQ5K(f *filler, b []byte, r *source) {
	f.scaleLow(b, b[2:], r)
	sixBits(b[4:16], r)
	q := f.drawn[:]
	for j := range 32 {
		var high uint8
		for g := range 8 {
			high |= q[32*g+j] >> 4 << g
		}
		b[16+j] = high
	}
	for p := range 4 {
		nibbles(b[48+32*p:80+32*p], q[64*p:])
	}
}

// packQ6K gives each group of 16 a scale of 96 to 126.
func packQ6K(f *filler, b []byte, r *source) {
	for n := range 2 {
		q := f.drawn[128*n : 128*n+128]
		for j := range 32 {
			b[64*n+j] = q[j]&15 | q[j+64]<<4
			b[64*n+32+j] = q[j+32]&15 | q[j+96]<<4
			b[128+32*n+j] = q[j]>>4 | q[j+32]>>4<<2 | q[j+64]>>4<<4 | q[j+96]>>4<<6
		}
	}
	x := r.next()
	for g := range 16 {
		b[192+g] = 96 + 2*uint8(x>>(4*g)&15)
	}
	f.scale(b[208:], r)
}
