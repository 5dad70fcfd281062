package kernel

import (
	"encoding/binary"
	"math"
)

// packRow puts one row's block into a panel's block.
func (f *format) packRow(dst, src []byte, row int) {
	for _, m := range f.halves {
		for i := range m.n {
			copy(dst[m.dst+32*i+2*row:][:2], src[m.src+2*i:])
		}
	}
	for _, m := range f.octets {
		for i := range m.n {
			dst[m.dst+16*i+row] = src[m.src+i]
		}
	}
	flip := uint32(f.flip) * 0x01010101
	for _, m := range f.words {
		for i := range m.n {
			w := binary.LittleEndian.Uint32(src[m.src+4*i:])
			binary.LittleEndian.PutUint32(dst[m.dst+m.step*i+4*row:], w^flip)
		}
	}
	if f.special != nil {
		f.special(dst, src, row)
	}
}

// packDequantized makes a panel of float32 from rows of a type without a panel format.
func packDequantized(dst []byte, m *Matrix, rows *[lanes][]byte) {
	const most = 256
	size, bytes := m.Type.BlockSize(), m.Type.BlockBytes()
	var block [most]float32
	for r, row := range rows {
		for c := 0; c < m.Cols; c += size {
			// The lengths were checked when the matrix was made.
			_ = m.Type.Dequantize(block[:size], row[c/size*bytes:][:bytes])
			for i, w := range block[:size] {
				binary.LittleEndian.PutUint32(dst[4*((c+i)*lanes+r):], math.Float32bits(w))
			}
		}
	}
}
