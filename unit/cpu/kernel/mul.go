package kernel

import (
	"encoding/binary"
	"fmt"
	"math"
)

// chunkBytes is how many bytes of packed weights one run over the rows of activations covers: few enough to stay in a
// core's own cache from one tile of activations to the next.
const chunkBytes = 256 << 10

// Mul computes dst[r*stride+o] = the product of row o of the weights with row r of the activations, for all rows of
// the Input and outputs o in [lo, hi), whose bounds are multiples of Align (hi may be the end). Calls for separate
// ranges may run at once. The Input has the columns of the matrix.
func (s *Set) Mul(dst []float32, stride int, m *Matrix, in *Input, lo, hi int) {
	m.checkRange(lo, hi)
	if in.cols != m.Cols {
		panic(fmt.Sprintf("kernel: input of %d columns for a matrix of %d", in.cols, m.Cols))
	}
	if in.n == 0 || lo == hi {
		return
	}
	_ = dst[(in.n-1)*stride+hi-1]
	if m.layout == Panels {
		per := max(1, chunkBytes/m.panel, s.panelRun()) * lanes
		for row := lo; row < hi; row += per {
			end := min(row+per, hi)
			s.mulPanels(dst, stride, m, m.panels[row/lanes*m.panel:], in, row, end)
		}
		return
	}
	scratch, _ := s.scratch.Get().(*[]byte)
	if scratch == nil || len(*scratch) < m.panel {
		b := aligned(m.panel)
		scratch = &b
	}
	for row := lo; row < hi; row += lanes {
		end := min(row+lanes, hi)
		s.packPanel((*scratch)[:m.panel], m, row, end-row)
		s.mulPanels(dst, stride, m, *scratch, in, row, end)
	}
	s.scratch.Put(scratch)
}

// mulPanels computes outputs [lo, hi) of all rows of activations from packed panels, the first of which holds lo.
func (s *Set) mulPanels(dst []float32, stride int, m *Matrix, panels []byte, in *Input, lo, hi int) {
	full := (hi - lo) / lanes
	done := s.mulTiles(dst[lo:], stride, m, panels, full, in)
	for row := 0; row < in.n; {
		t := tileAt(row, in.n)
		if full > 0 && row >= done {
			s.tile(dst[row*stride+lo:], stride, m, panels, full, in, row, t)
		}
		if rest := (hi - lo) % lanes; rest > 0 {
			var out [maxTile * lanes]float32
			s.tile(out[:], lanes, m, panels[full*m.panel:], 1, in, row, t)
			for r := range t {
				copy(dst[(row+r)*stride+hi-rest:][:rest], out[r*lanes:])
			}
		}
		row += t
	}
}

// tileGeneric computes the outputs of n panels for the tile of t activation rows that begins at row.
func tileGeneric(dst []float32, stride int, m *Matrix, panels []byte, n int, in *Input, row, t int) {
	for p := range n {
		panel := panels[p*m.panel:][:m.panel]
		var acc [maxTile][lanes]float32
		if !formats[m.kind].int8 {
			floatPanel(&acc, m, panel, in, row, t)
		} else {
			integerPanel(&acc, m.kind, panel, in.tile(row, t), t)
		}
		for r := range t {
			copy(dst[r*stride+p*lanes:][:lanes], acc[r][:])
		}
	}
}

// floatPanel adds weight times activation, fused, column after column.
func floatPanel(acc *[maxTile][lanes]float32, m *Matrix, panel []byte, in *Input, row, t int) {
	var w [lanes]float32
	for c := range m.Cols {
		floatWeights(m.kind, &w, panel, c)
		for r := range t {
			x := in.x[(row+r)*in.stride+c]
			a := &acc[r]
			for o := range a {
				a[o] = fma(w[o], x, a[o])
			}
		}
	}
}

// integerPanel adds, sub-block after sub-block, (scale*dot + min*sum) * scale of the activations, where dot is the
// exact integer product. The first product is rounded to float32; what is added to it or to the sums is fused with its
// product and rounded once.
func integerPanel(acc *[maxTile][lanes]float32, k kind, panel, records []byte, t int) {
	f := &formats[k]
	var b subBlock
	word := func(rec []byte, at, r int) uint32 { return binary.LittleEndian.Uint32(rec[at*t+4*r:]) }
	for ; len(panel) > 0; panel = panel[f.bytes:] {
		for sub := range f.columns / 32 {
			b.unpack(k, panel, sub)
			rec := records[:t*recordBytes]
			records = records[t*recordBytes:]
			for r := range t {
				scale := math.Float32frombits(word(rec, recordScale, r))
				sum := math.Float32frombits(word(rec, recordFloat, r))
				x := rec[32*r:][:32]
				first := b.dot(x, 0, f.offset*int32(word(rec, recordFirst, r)))
				last := b.dot(x, 4, f.offset*int32(word(rec, recordLast, r)))
				for o := range lanes {
					var y float32
					if f.split {
						y = fma(float32(last[o]), b.scale[1][o], float32(first[o])*b.scale[0][o])
					} else {
						y = float32(first[o]+last[o]) * b.scale[0][o]
					}
					if f.min {
						y = fma(b.min[o], sum, y)
					}
					acc[r][o] = fma(y, scale, acc[r][o])
				}
			}
		}
	}
}

// dot returns start plus the product of the four groups of codes from group on with their activations, for each row.
func (b *subBlock) dot(x []byte, group int, start int32) (out [lanes]int32) {
	for o := range out {
		out[o] = start
	}
	for g := group; g < group+4; g++ {
		x0, x1, x2, x3 := int32(int8(x[4*g])), int32(int8(x[4*g+1])), int32(int8(x[4*g+2])), int32(int8(x[4*g+3]))
		for o := range out {
			c := &b.code[g][o]
			out[o] += int32(c[0])*x0 + int32(c[1])*x1 + int32(c[2])*x2 + int32(c[3])*x3
		}
	}
	return out
}
