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
	if n > 0 {
		scaleMulNEON(&dst[0], &x[0], &w[0], n, f)
	}
	return n
}

//go:noinline
func (s *Set) scale(dst, x []float32, f float32) int {
	n := s.whole(len(x))
	if n > 0 {
		scaleNEON(&dst[0], &x[0], n, f)
	}
	return n
}

//go:noinline
func (s *Set) add(dst, a, b []float32) int {
	n := s.whole(len(a))
	if n > 0 {
		addNEON(&dst[0], &a[0], &b[0], n)
	}
	return n
}

//go:noinline
func (s *Set) toHalf(dst []uint16, src []float32) int {
	n := s.whole(len(src))
	if n > 0 {
		toHalfNEON(&dst[0], &src[0], n)
	}
	return n
}

//go:noinline
func (s *Set) fromHalf(dst []float32, src []uint16) int {
	n := s.whole(len(src))
	if n > 0 {
		fromHalfNEON(&dst[0], &src[0], n)
	}
	return n
}

//go:noinline
func (s *Set) geluMul(dst, gate, up []float32) int {
	n := s.whole(len(gate))
	if n > 0 {
		geluMulNEON(&dst[0], &gate[0], &up[0], n)
	}
	return n
}

//go:noinline
func (s *Set) siluMul(dst, gate, up []float32) int {
	n := s.whole(len(gate))
	if n > 0 {
		siluMulNEON(&dst[0], &gate[0], &up[0], n)
	}
	return n
}

//go:noinline
func (s *Set) softcap(x []float32, limit float32) int {
	n := s.whole(len(x))
	if n > 0 {
		softcapNEON(&x[0], n, limit)
	}
	return n
}

//go:noinline
func (s *Set) sumSquares(x []float32, sum *[lanes]float32) int {
	n := s.whole(len(x))
	if n > 0 {
		sumSquaresNEON(&x[0], n, &sum[0])
	}
	return n
}

//go:noinline
func (s *Set) maximum(x []float32, most *[lanes]float32) int {
	n := s.whole(len(x))
	if n > 0 {
		maximumNEON(&x[0], n, &most[0])
	}
	return n
}

//go:noinline
func (s *Set) expSum(x []float32, most float32, sum *[lanes]float32) int {
	n := s.whole(len(x))
	if n > 0 {
		expSumNEON(&x[0], n, &sum[0], most)
	}
	return n
}

//go:noinline
func (s *Set) ropeHalves(a, b, cos, sin []float32) int {
	n := s.whole(len(cos))
	if n > 0 {
		ropeHalvesNEON(&a[0], &b[0], &cos[0], &sin[0], n)
	}
	return n
}

//go:noinline
func (s *Set) ropePairs(x, cos, sin []float32) int {
	n := s.whole(len(cos))
	if n > 0 {
		ropePairsNEON(&x[0], &cos[0], &sin[0], n)
	}
	return n
}

//go:noinline
func (s *Set) quantizeRow(tile []byte, t, slot int, x []float32) {
	if s.isa == Generic {
		quantizeRow(tile, t, slot, x)
		return
	}
	quantizeRowNEON(&tile[0], &x[0], len(x)/32, t, slot)
}

// readBytes reads the first bytes of b and returns how many.
//
//go:noinline
func (s *Set) readBytes(b []byte) int {
	n := len(b) &^ 511
	if n == 0 || s.isa == Generic {
		return 0
	}
	readBytesNEON(&b[0], n)
	return n
}

// multiplyBytes takes about a microsecond and returns the operations done.
//
//go:noinline
func (s *Set) multiplyBytes() int64 {
	const n = 256
	switch s.isa {
	case NEONDot:
		multiplyBytesNEONDot(n)
	case NEON:
		multiplyBytesNEON(n)
	default:
		return multiplyGeneric()
	}
	return n * 16 * 16 * 2
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
	packWordsNEON(&dst[w.dst], &src[w.src], m.rowBytes, blocks, f.bytes, f.file, quads, w.step, uint32(f.flip)*0x01010101)
	return 4 * quads
}

func (s *Set) packHalves(dst, src []byte, m *Matrix) int { return 0 }

func (s *Set) packScales(dst, src []byte, m *Matrix) bool { return false }
