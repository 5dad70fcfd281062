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
	dotRowsNEON(&scores[0], &q[0], &k[0], len(scores), stride, len(q))
}

//go:noinline
func (s *Set) addRows(dst, w []float32, v []float32, stride int) {
	n := s.whole(len(dst))
	if n == 0 {
		addRowsGeneric(dst, w, v, stride)
		return
	}
	_ = v[(len(w)-1)*stride+len(dst)-1]
	addRowsNEON(&dst[0], &w[0], &v[0], len(w), stride, n)
	if n < len(dst) {
		addRowsGeneric(dst[n:], w, v[n:], stride)
	}
}

//go:noinline
func (s *Set) dotRowsF16(scores, q []float32, k []uint16, stride int) {
	if n := s.whole(len(q)); n == 0 || n != len(q) || len(scores) == 0 {
		dotRowsF16Generic(scores, q, k, stride)
		return
	}
	_ = k[(len(scores)-1)*stride+len(q)-1]
	dotRowsF16NEON(&scores[0], &q[0], &k[0], len(scores), stride, len(q))
}

//go:noinline
func (s *Set) addRowsF16(dst, w []float32, v []uint16, stride int) {
	n := s.whole(len(dst))
	if n == 0 {
		addRowsF16Generic(dst, w, v, stride)
		return
	}
	_ = v[(len(w)-1)*stride+len(dst)-1]
	addRowsF16NEON(&dst[0], &w[0], &v[0], len(w), stride, n)
	if n < len(dst) {
		addRowsF16Generic(dst[n:], w, v[n:], stride)
	}
}

//go:noinline
func (s *Set) q8Row(dst []byte, src []float32) {
	if s.isa == Generic {
		q8RowGeneric(dst, src)
		return
	}
	q8RowNEON(&dst[0], &src[0], len(src)/q8Values)
}

//go:noinline
func (s *Set) q8Values(dst []float32, src []byte) {
	if s.isa == Generic {
		q8ValuesGeneric(dst, src)
		return
	}
	q8ValuesNEON(&dst[0], &src[0], len(dst)/q8Values)
}
