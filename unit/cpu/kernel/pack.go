package kernel

import (
	"encoding/binary"
	"math"
)

// Pack fills the panels of output rows [lo, hi); lo is a multiple of Align and hi one as well or the end. Ranges may
// be packed by several goroutines at once. It does nothing for FileRows.
func (s *Set) Pack(m *Matrix, lo, hi int) {
	if m.layout != Panels {
		return
	}
	m.checkRange(lo, hi)
	for row := lo; row < hi; row += lanes {
		s.packPanel(m.panels[row/lanes*m.panel:][:m.panel], m, row, min(lanes, hi-row))
	}
}

// packPanel packs up to 16 rows from row on. Lanes without a row are zero.
func (s *Set) packPanel(dst []byte, m *Matrix, row, n int) {
	src := m.data[row*m.rowBytes : (row+n)*m.rowBytes]
	if n < lanes {
		clear(dst)
	}
	if !m.native {
		for r := range n {
			packDequantized(dst, m, src[r*m.rowBytes:][:m.rowBytes], r)
		}
		return
	}
	f := &formats[m.kind]
	for _, w := range f.words {
		blocks, done := m.blocks, 0
		if f.columns == 1 { // the row is one long run
			blocks, w.n = 1, m.blocks
		}
		if n == lanes {
			done = s.packWords(dst, src, m, blocks, w)
		}
		packWords(dst, src, m, n, blocks, w, done)
	}
	if f.columns == 1 {
		done := 0
		if n == lanes && len(f.halves) > 0 {
			done = s.packHalves(dst, src, m)
		}
		for _, h := range f.halves {
			for c := done; c < m.blocks; c++ {
				for r := range n {
					binary.LittleEndian.PutUint16(dst[h.dst+32*c+2*r:], binary.LittleEndian.Uint16(src[r*m.rowBytes+2*c:]))
				}
			}
		}
		return
	}
	fast := n == lanes && s.packScales(dst, src, m)
	if fast && len(f.octets) == 0 && f.special == nil {
		return
	}
	for b := range m.blocks {
		to := dst[b*f.bytes : (b+1)*f.bytes]
		for r := range n {
			from := src[r*m.rowBytes+b*f.file:][:f.file]
			if !fast {
				f.packHalves(to, from, r)
				f.packBits(to, from, r)
			}
			for _, o := range f.octets {
				to := to[o.dst+r:]
				for i, b := range from[o.src : o.src+o.n] {
					to[16*i] = b
				}
			}
			if f.special != nil {
				f.special(to, from, r)
			}
		}
	}
}

// packWords copies a run of words of n rows, from word done of each block on.
func packWords(dst, src []byte, m *Matrix, n, blocks int, w run, done int) {
	f := &formats[m.kind]
	if done == w.n {
		return
	}
	flip := uint32(f.flip) * 0x01010101
	for b := range blocks {
		for r := range n {
			from, to := src[r*m.rowBytes+b*f.file+w.src:][:4*w.n], dst[b*f.bytes+w.dst+4*r:]
			for i := done; i < w.n; i++ {
				binary.LittleEndian.PutUint32(to[w.step*i:], binary.LittleEndian.Uint32(from[4*i:])^flip)
			}
		}
	}
}

// packHalves puts the halves of one row's block into a panel's block.
func (f *format) packHalves(dst, src []byte, row int) {
	for _, h := range f.halves {
		for i := range h.n {
			binary.LittleEndian.PutUint16(dst[h.dst+32*i+2*row:], binary.LittleEndian.Uint16(src[h.src+2*i:]))
		}
	}
}

// packBits puts the high bits of one row's block into a panel's block.
func (f *format) packBits(dst, src []byte, row int) {
	for _, b := range f.bits {
		binary.LittleEndian.PutUint32(dst[b.dst+4*row:], spread(binary.LittleEndian.Uint32(src[b.src:])))
	}
}

// packDequantized puts a row of a type without a panel format into a panel of float32.
func packDequantized(dst []byte, m *Matrix, src []byte, row int) {
	const most = 256
	size, bytes := m.Type.BlockSize(), m.Type.BlockBytes()
	var block [most]float32
	for c := 0; c < m.Cols; c += size {
		// The lengths were checked when the matrix was made.
		_ = m.Type.Dequantize(block[:size], src[c/size*bytes:][:bytes])
		for i, w := range block[:size] {
			binary.LittleEndian.PutUint32(dst[4*((c+i)*lanes+row):], math.Float32bits(w))
		}
	}
}

// spread moves bit 4g+j of the 32 high bits of a block to bit g of byte j.
func spread(h uint32) uint32 {
	// Two of the four j at a time, each in half of 64 bits: every fourth bit moves next to the one before.
	const every = 0x1111111111111111
	low := uint64(h)&0xffffffff | uint64(h)<<31
	high := low >> 2
	low, high = low&every, high&every
	close := func(x uint64) uint64 {
		x = (x | x>>3) & 0x0303030303030303
		x = (x | x>>6) & 0x000f000f000f000f
		x = (x | x>>12) & 0x000000ff000000ff
		return x | x>>24
	}
	return uint32(close(low)&0xffff | close(high)&0xffff<<16)
}

// packScalesK widens the eight 6-bit scales and mins of Q4_K and Q5_K to bytes.
func packScalesK(dst, src []byte, row int) {
	q := src[4:16]
	scales, mins := dst[64+row:][:113], dst[192+row:][:113]
	for j := range 4 {
		scales[16*j] = q[j] & 63
		mins[16*j] = q[j+4] & 63
		scales[16*(j+4)] = q[j+8]&15 | q[j]>>6<<4
		mins[16*(j+4)] = q[j+8]>>4 | q[j+4]>>6<<4
	}
}
