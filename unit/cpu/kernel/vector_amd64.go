//go:build !noasm

package kernel

// The functions here do the first elements of a row in assembly and return how many. They must not be inlined, for
// their beginning is where the scheduler can interrupt a loop that calls them.

// whole is n without the elements that do not fill a step.
func (s *Set) whole(n int) int {
	if s.isa == Generic {
		return 0
	}
	return n &^ (lanes - 1)
}

//go:noinline
func (s *Set) scaleMul(dst, x, w []float32, f float32) int {
	n := s.whole(len(x))
	switch {
	case n == 0:
	case s.isa == AVX512:
		scaleMulAVX512(&dst[0], &x[0], &w[0], n, f)
	default:
		scaleMulAVX2(&dst[0], &x[0], &w[0], n, f)
	}
	return n
}

//go:noinline
func (s *Set) scale(dst, x []float32, f float32) int {
	n := s.whole(len(x))
	switch {
	case n == 0:
	case s.isa == AVX512:
		scaleAVX512(&dst[0], &x[0], n, f)
	default:
		scaleAVX2(&dst[0], &x[0], n, f)
	}
	return n
}

//go:noinline
func (s *Set) add(dst, a, b []float32) int {
	n := s.whole(len(a))
	switch {
	case n == 0:
	case s.isa == AVX512:
		addAVX512(&dst[0], &a[0], &b[0], n)
	default:
		addAVX2(&dst[0], &a[0], &b[0], n)
	}
	return n
}

//go:noinline
func (s *Set) toHalf(dst []uint16, src []float32) int {
	n := s.whole(len(src))
	switch {
	case n == 0:
	case s.isa == AVX512:
		toHalfAVX512(&dst[0], &src[0], n)
	default:
		toHalfAVX2(&dst[0], &src[0], n)
	}
	return n
}

//go:noinline
func (s *Set) fromHalf(dst []float32, src []uint16) int {
	n := s.whole(len(src))
	switch {
	case n == 0:
	case s.isa == AVX512:
		fromHalfAVX512(&dst[0], &src[0], n)
	default:
		fromHalfAVX2(&dst[0], &src[0], n)
	}
	return n
}

//go:noinline
func (s *Set) geluMul(dst, gate, up []float32) int {
	n := s.whole(len(gate))
	switch {
	case n == 0:
	case s.isa == AVX512:
		geluMulAVX512(&dst[0], &gate[0], &up[0], n)
	default:
		geluMulAVX2(&dst[0], &gate[0], &up[0], n)
	}
	return n
}

//go:noinline
func (s *Set) siluMul(dst, gate, up []float32) int {
	n := s.whole(len(gate))
	switch {
	case n == 0:
	case s.isa == AVX512:
		siluMulAVX512(&dst[0], &gate[0], &up[0], n)
	default:
		siluMulAVX2(&dst[0], &gate[0], &up[0], n)
	}
	return n
}

//go:noinline
func (s *Set) softcap(x []float32, limit float32) int {
	n := s.whole(len(x))
	switch {
	case n == 0:
	case s.isa == AVX512:
		softcapAVX512(&x[0], n, limit)
	default:
		softcapAVX2(&x[0], n, limit)
	}
	return n
}

//go:noinline
func (s *Set) sumSquares(x []float32, sum *[lanes]float32) int {
	n := s.whole(len(x))
	switch {
	case n == 0:
	case s.isa == AVX512:
		sumSquaresAVX512(&x[0], n, &sum[0])
	default:
		sumSquaresAVX2(&x[0], n, &sum[0])
	}
	return n
}

//go:noinline
func (s *Set) maximum(x []float32, most *[lanes]float32) int {
	n := s.whole(len(x))
	switch {
	case n == 0:
	case s.isa == AVX512:
		maximumAVX512(&x[0], n, &most[0])
	default:
		maximumAVX2(&x[0], n, &most[0])
	}
	return n
}

//go:noinline
func (s *Set) expSum(x []float32, most float32, sum *[lanes]float32) int {
	n := s.whole(len(x))
	switch {
	case n == 0:
	case s.isa == AVX512:
		expSumAVX512(&x[0], n, most, &sum[0])
	default:
		expSumAVX2(&x[0], n, most, &sum[0])
	}
	return n
}

//go:noinline
func (s *Set) ropeHalves(a, b, cos, sin []float32) int {
	n := s.whole(len(cos))
	switch {
	case n == 0:
	case s.isa == AVX512:
		ropeHalvesAVX512(&a[0], &b[0], &cos[0], &sin[0], n)
	default:
		ropeHalvesAVX2(&a[0], &b[0], &cos[0], &sin[0], n)
	}
	return n
}

//go:noinline
func (s *Set) ropePairs(x, cos, sin []float32) int {
	n := s.whole(len(cos))
	switch {
	case n == 0:
	case s.isa == AVX512:
		ropePairsAVX512(&x[0], &cos[0], &sin[0], n)
	default:
		ropePairsAVX2(&x[0], &cos[0], &sin[0], n)
	}
	return n
}

//go:noinline
func (s *Set) quantizeRow(tile []byte, t, slot int, x []float32) {
	switch s.isa {
	case AVX512:
		quantizeRowAVX512(&tile[0], &x[0], len(x)/32, t, slot)
	case AVX2:
		quantizeRowAVX2(&tile[0], &x[0], len(x)/32, t, slot)
	default:
		quantizeRow(tile, t, slot, x)
	}
}

// readBytes reads the first bytes of b and returns how many.
//
//go:noinline
func (s *Set) readBytes(b []byte) int {
	n := len(b) &^ 511
	switch {
	case n == 0 || s.isa == Generic:
		return 0
	case s.isa == AVX512:
		readBytesAVX512(&b[0], n)
	default:
		readBytesAVX2(&b[0], n)
	}
	return n
}

// multiplyBytes takes about a microsecond and returns the operations done.
//
//go:noinline
func (s *Set) multiplyBytes() int64 {
	const n = 256
	if s.tiles {
		return multiplyTileBytes()
	}
	switch s.isa {
	case AVX512:
		multiplyBytesAVX512(n)
		return n * 12 * 64 * 2
	case AVX2:
		multiplyBytesAVX2(n)
		return n * 12 * 32 * 2
	}
	return multiplyGeneric()
}

// packWords transposes the whole quads of a run of words of 16 rows and returns how many words that is.
//
//go:noinline
func (s *Set) packWords(dst, src []byte, m *Matrix, blocks int, w run) int {
	f := &formats[m.kind]
	quads := w.n / 4
	if quads == 0 || s.isa == Generic {
		return 0
	}
	_ = src[15*m.rowBytes+(blocks-1)*f.file+w.src+16*quads-1]
	_ = dst[(blocks-1)*f.bytes+w.dst+(4*quads-1)*w.step+63]
	flip := uint32(f.flip) * 0x01010101
	if s.isa == AVX512 {
		packWordsAVX512(&dst[w.dst], &src[w.src], m.rowBytes, blocks, f.bytes, f.file, quads, w.step, flip)
	} else {
		packWordsAVX2(&dst[w.dst], &src[w.src], m.rowBytes, blocks, f.bytes, f.file, quads, w.step, flip)
	}
	return 4 * quads
}

// packHalves transposes columns of halves of 16 rows and returns how many.
//
//go:noinline
func (s *Set) packHalves(dst, src []byte, m *Matrix) int {
	n := m.blocks / 8
	if n == 0 || s.isa == Generic {
		return 0
	}
	_, _ = src[15*m.rowBytes+16*n-1], dst[256*n-1]
	if s.isa == AVX512 {
		packHalvesAVX512(&dst[0], &src[0], m.rowBytes, n)
	} else {
		packHalvesAVX2(&dst[0], &src[0], m.rowBytes, n)
	}
	return 8 * n
}

// packScales collects the halves and the high bits of 16 rows.
//
//go:noinline
func (s *Set) packScales(dst, src []byte, m *Matrix) bool {
	if s.isa == Generic {
		return false
	}
	f := &formats[m.kind]
	_, _ = src[16*m.rowBytes-1], dst[m.panel-1]
	for _, h := range f.halves {
		for i := range h.n {
			packColumnAVX2(&dst[h.dst+32*i], &src[h.src+2*i], m.rowBytes, m.blocks, f.bytes, f.file)
		}
	}
	for _, b := range f.bits {
		if s.isa == AVX512 {
			packBitsAVX512(&dst[b.dst], &src[b.src], m.rowBytes, m.blocks, f.bytes, f.file)
		} else {
			packBitsAVX2(&dst[b.dst], &src[b.src], m.rowBytes, m.blocks, f.bytes, f.file)
		}
	}
	return true
}
