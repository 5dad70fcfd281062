//go:build !noasm

package kernel

// The functions here cover a bounded number of rows. They must not be inlined, for their beginning is where the
// scheduler can interrupt a loop that calls them.

//go:noinline
func (s *Set) dotRows(scores, q []float32, k []float32, stride int) {
	if n := s.whole(len(q)); n == 0 || n != len(q) || len(scores) == 0 {
		dotRowsGeneric(scores, q, k, stride)
		return
	}
	_ = k[(len(scores)-1)*stride+len(q)-1]
	if s.isa == AVX512 {
		dotRowsAVX512(&scores[0], &q[0], &k[0], len(scores), stride, len(q))
	} else {
		dotRowsAVX2(&scores[0], &q[0], &k[0], len(scores), stride, len(q))
	}
}

//go:noinline
func (s *Set) addRows(dst, w []float32, v []float32, stride int) {
	n := s.whole(len(dst))
	if n == 0 {
		addRowsGeneric(dst, w, v, stride)
		return
	}
	_ = v[(len(w)-1)*stride+len(dst)-1]
	if s.isa == AVX512 {
		addRowsAVX512(&dst[0], &w[0], &v[0], len(w), stride, n)
	} else {
		addRowsAVX2(&dst[0], &w[0], &v[0], len(w), stride, n)
	}
	if n < len(dst) {
		addRowsGeneric(dst[n:], w, v[n:], stride)
	}
}

// dotTile does whole groups of four queries and returns how many rows of them it did.
//
//go:noinline
func (s *Set) dotTile(scores []float32, sstride int, q []float32, qstride, queries, n int, k []float32, kstride, rows int) int {
	whole := rows &^ 3
	if s.isa != AVX512 || n == 0 || n%lanes != 0 || queries < 4 || whole == 0 {
		return 0
	}
	_, _, _ = scores[(queries-1)*sstride+rows-1], q[(queries-1)*qstride+n-1], k[(rows-1)*kstride+n-1]
	for a := 0; a < queries&^3; a += 4 {
		dotTileAVX512(&scores[a*sstride], &q[a*qstride], &k[0], sstride, qstride, kstride, whole, n)
	}
	return whole
}

// addTile returns how many queries it did.
//
//go:noinline
func (s *Set) addTile(dst []float32, dstride, queries, n int, w []float32, wstride int, v []float32, vstride, rows int) int {
	whole := queries &^ 3
	if s.isa != AVX512 || n == 0 || n%lanes != 0 || whole == 0 {
		return 0
	}
	_, _, _ = dst[(queries-1)*dstride+n-1], w[(queries-1)*wstride+rows-1], v[(rows-1)*vstride+n-1]
	for a := 0; a < whole; a += 4 {
		addTileAVX512(&dst[a*dstride], &w[a*wstride], &v[0], dstride, wstride, vstride, rows, n)
	}
	return whole
}

//go:noinline
func (s *Set) dotRowsF16(scores, q []float32, k []uint16, stride int) {
	if n := s.whole(len(q)); n == 0 || n != len(q) || len(scores) == 0 {
		dotRowsF16Generic(scores, q, k, stride)
		return
	}
	_ = k[(len(scores)-1)*stride+len(q)-1]
	if s.isa == AVX512 {
		dotRowsF16AVX512(&scores[0], &q[0], &k[0], len(scores), stride, len(q))
	} else {
		dotRowsF16AVX2(&scores[0], &q[0], &k[0], len(scores), stride, len(q))
	}
}

//go:noinline
func (s *Set) addRowsF16(dst, w []float32, v []uint16, stride int) {
	n := s.whole(len(dst))
	if n == 0 {
		addRowsF16Generic(dst, w, v, stride)
		return
	}
	_ = v[(len(w)-1)*stride+len(dst)-1]
	if s.isa == AVX512 {
		addRowsF16AVX512(&dst[0], &w[0], &v[0], len(w), stride, n)
	} else {
		addRowsF16AVX2(&dst[0], &w[0], &v[0], len(w), stride, n)
	}
	if n < len(dst) {
		addRowsF16Generic(dst[n:], w, v[n:], stride)
	}
}

// dotTileF16 does whole groups of four queries and returns how many rows of them it did.
//
//go:noinline
func (s *Set) dotTileF16(scores []float32, sstride int, q []float32, qstride, queries, n int, k []uint16, kstride, rows int) int {
	whole := rows &^ 3
	if s.isa != AVX512 || n == 0 || n%lanes != 0 || queries < 4 || whole == 0 {
		return 0
	}
	_, _, _ = scores[(queries-1)*sstride+rows-1], q[(queries-1)*qstride+n-1], k[(rows-1)*kstride+n-1]
	for a := 0; a < queries&^3; a += 4 {
		dotTileF16AVX512(&scores[a*sstride], &q[a*qstride], &k[0], sstride, qstride, kstride, whole, n)
	}
	return whole
}

// addTileF16 returns how many queries it did.
//
//go:noinline
func (s *Set) addTileF16(dst []float32, dstride, queries, n int, w []float32, wstride int, v []uint16, vstride, rows int) int {
	whole := queries &^ 3
	if s.isa != AVX512 || n == 0 || n%lanes != 0 || whole == 0 {
		return 0
	}
	_, _, _ = dst[(queries-1)*dstride+n-1], w[(queries-1)*wstride+rows-1], v[(rows-1)*vstride+n-1]
	for a := 0; a < whole; a += 4 {
		addTileF16AVX512(&dst[a*dstride], &w[a*wstride], &v[0], dstride, wstride, vstride, rows, n)
	}
	return whole
}

//go:noinline
func (s *Set) q8Row(dst []byte, src []float32) {
	switch s.isa {
	case AVX512:
		q8RowAVX512(&dst[0], &src[0], len(src)/q8Values)
	case AVX2:
		q8RowAVX2(&dst[0], &src[0], len(src)/q8Values)
	default:
		q8RowGeneric(dst, src)
	}
}

//go:noinline
func (s *Set) q8Values(dst []float32, src []byte) {
	switch s.isa {
	case AVX512:
		q8ValuesAVX512(&dst[0], &src[0], len(dst)/q8Values)
	case AVX2:
		q8ValuesAVX2(&dst[0], &src[0], len(dst)/q8Values)
	default:
		q8ValuesGeneric(dst, src)
	}
}
