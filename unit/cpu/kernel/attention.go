package kernel

import "github.com/tandemrun/tandem/quant"

// attentionBytes bounds the rows of one call of assembly; they stay in a core's own cache between its passes.
const attentionBytes = 128 << 10

// rowsPerCall is how many rows of n elements fit.
func rowsPerCall(n int) int { return max(4, attentionBytes/(4*max(n, 1))&^3) }

// DotRows computes scores[i] = q · k[i*stride : i*stride+len(q)] for all of scores. Each product is summed fused in 16
// lanes.
func (s *Set) DotRows(scores, q []float32, k []float32, stride int) {
	for per := rowsPerCall(len(q)); len(scores) > per; k = k[per*stride:] {
		s.dotRows(scores[:per], q, k, stride)
		scores = scores[per:]
	}
	s.dotRows(scores, q, k, stride)
}

func dotRowsGeneric(scores, q []float32, k []float32, stride int) {
	for i := range scores {
		row := k[i*stride:][:len(q)]
		var sum [lanes]float32
		for j, v := range q {
			sum[j%lanes] = fma(v, row[j], sum[j%lanes])
		}
		scores[i] = sumLanes(&sum)
	}
}

// AddRows computes dst += Σ w[i] * v[i*stride : i*stride+len(dst)], fused, i ascending: two calls over parts of the
// rows give the same bits as one.
func (s *Set) AddRows(dst, w []float32, v []float32, stride int) {
	for per := rowsPerCall(len(dst)); len(w) > per; v = v[per*stride:] {
		s.addRows(dst, w[:per], v, stride)
		w = w[per:]
	}
	if len(w) > 0 {
		s.addRows(dst, w, v, stride)
	}
}

func addRowsGeneric(dst, w []float32, v []float32, stride int) {
	for i, f := range w {
		row := v[i*stride:][:len(dst)]
		for j := range dst {
			dst[j] = fma(f, row[j], dst[j])
		}
	}
}

// DotTile is DotRows for several queries over the same rows: scores[a*sstride+i] = q[a*qstride:][:n] · k[i*kstride:][:n]
// for queries a and rows i. It gives the same bits, faster.
func (s *Set) DotTile(scores []float32, sstride int, q []float32, qstride, queries, n int, k []float32, kstride, rows int) {
	for per := rowsPerCall(n); rows > 0; {
		part := min(per, rows)
		done := s.dotTile(scores, sstride, q, qstride, queries, n, k, kstride, part)
		for a := range queries {
			// Whole groups of four queries are done but for the last rows.
			first := 0
			if a < queries&^3 {
				first = done
			}
			if first < part {
				s.dotRows(scores[a*sstride+first:a*sstride+part], q[a*qstride:][:n], k[first*kstride:], kstride)
			}
		}
		if rows -= part; rows > 0 {
			scores, k = scores[part:], k[part*kstride:]
		}
	}
}

// AddTile is AddRows for several sums over the same rows: dst[a*dstride:][:n] += Σ w[a*wstride+i] * v[i*vstride:][:n]
// for queries a and rows i, i ascending. It gives the same bits, faster.
func (s *Set) AddTile(dst []float32, dstride, queries, n int, w []float32, wstride int, v []float32, vstride, rows int) {
	for per := rowsPerCall(n); rows > 0; {
		part := min(per, rows)
		for a := s.addTile(dst, dstride, queries, n, w, wstride, v, vstride, part); a < queries; a++ {
			s.addRows(dst[a*dstride:][:n], w[a*wstride:][:part], v, vstride)
		}
		if rows -= part; rows > 0 {
			w, v = w[part:], v[part*vstride:]
		}
	}
}

// DotRowsF16 is DotRows over half precision rows.
func (s *Set) DotRowsF16(scores, q []float32, k []uint16, stride int) {
	for per := rowsPerCall(len(q)); len(scores) > per; k = k[per*stride:] {
		s.dotRowsF16(scores[:per], q, k, stride)
		scores = scores[per:]
	}
	s.dotRowsF16(scores, q, k, stride)
}

func dotRowsF16Generic(scores, q []float32, k []uint16, stride int) {
	for i := range scores {
		row := k[i*stride:][:len(q)]
		var sum [lanes]float32
		for j, v := range q {
			sum[j%lanes] = fma(v, quant.F16ToF32(row[j]), sum[j%lanes])
		}
		scores[i] = sumLanes(&sum)
	}
}

// AddRowsF16 is AddRows over half precision rows.
func (s *Set) AddRowsF16(dst, w []float32, v []uint16, stride int) {
	for per := rowsPerCall(len(dst)); len(w) > per; v = v[per*stride:] {
		s.addRowsF16(dst, w[:per], v, stride)
		w = w[per:]
	}
	if len(w) > 0 {
		s.addRowsF16(dst, w, v, stride)
	}
}

func addRowsF16Generic(dst, w []float32, v []uint16, stride int) {
	for i, f := range w {
		row := v[i*stride:][:len(dst)]
		for j := range dst {
			dst[j] = fma(f, quant.F16ToF32(row[j]), dst[j])
		}
	}
}

// DotTileF16 is DotTile over half precision rows.
func (s *Set) DotTileF16(scores []float32, sstride int, q []float32, qstride, queries, n int, k []uint16, kstride, rows int) {
	for per := rowsPerCall(n); rows > 0; {
		part := min(per, rows)
		done := s.dotTileF16(scores, sstride, q, qstride, queries, n, k, kstride, part)
		for a := range queries {
			// Whole groups of four queries are done but for the last rows.
			first := 0
			if a < queries&^3 {
				first = done
			}
			if first < part {
				s.dotRowsF16(scores[a*sstride+first:a*sstride+part], q[a*qstride:][:n], k[first*kstride:], kstride)
			}
		}
		if rows -= part; rows > 0 {
			scores, k = scores[part:], k[part*kstride:]
		}
	}
}

// AddTileF16 is AddTile over half precision rows.
func (s *Set) AddTileF16(dst []float32, dstride, queries, n int, w []float32, wstride int, v []uint16, vstride, rows int) {
	for per := rowsPerCall(n); rows > 0; {
		part := min(per, rows)
		for a := s.addTileF16(dst, dstride, queries, n, w, wstride, v, vstride, part); a < queries; a++ {
			s.addRowsF16(dst[a*dstride:][:n], w[a*wstride:][:part], v, vstride)
		}
		if rows -= part; rows > 0 {
			w, v = w[part:], v[part*vstride:]
		}
	}
}
