package cpu

import (
	"github.com/tandemrun/tandem/unit/cpu/kernel"
)

// attentionRoom is what a worker needs to compute a tile.
type attentionRoom struct {
	scores []float32 // as many values as a tile's queries see positions, for each query
	wide   []float32 // q8_0 rows in float32
}

// wideValues is how many values of q8_0 rows are widened at a time. They stay
// in the first cache of a core until all queries of a tile have used them.
const wideValues = 4096

func newAttentionRoom(context int) *attentionRoom {
	return &attentionRoom{scores: make([]float32, positionTile*context)}
}

// widen calls f for runs of the rows of n values that begin at value at, in
// float32; i is the run's first row.
func (r *attentionRoom) widen(s *kernel.Set, x slab, at, n, rows int, f func(wide []float32, i, rows int)) {
	if len(r.wide) < max(n, wideValues) {
		r.wide = make([]float32, max(n, wideValues))
	}
	per := len(r.wide) / n
	for i := 0; i < rows; i += per {
		part := min(per, rows-i)
		s.Q8Values(r.wide[:part*n], x.blocks(at+i*n, part*n))
		f(r.wide, i, part)
	}
}

// A tile is queries whose attention is computed over the same cache rows at
// once: n query heads that share a KV head, or one head at n positions.
type tile struct {
	slot, head       int // head is the KV head
	pos, step        int // the first query's position; step is 0 for heads, 1 for positions
	n                int
	q, out           []float32 // the first query and its place; others follow at the strides
	qstride, ostride int
}

// span is the positions [first, last] that query a of a tile sees.
func (c *cache) span(t *tile, a int) (first, last int) {
	last = t.pos + a*t.step
	if c.Window > 0 {
		first = max(0, last-c.Window+1)
	}
	return first, last
}

// attend computes out = softmax(scale · q·k) · v for each query of a tile over
// the positions it sees, in ascending order. Positions that all queries see are
// taken together; the bits are those of each query alone. room is a worker's
// own.
func (c *cache) attend(s *kernel.Set, t *tile, room *attentionRoom, scale float32) {
	scores := room.scores
	begin, _ := c.span(t, 0)
	from, end := c.span(t, t.n-1)
	stride := end - begin + 1
	_, to := c.span(t, 0) // positions [from, to] are common
	if from > to {
		from, to = end+1, end // none are: each query on its own
	}
	each := func(f func(a, n, first, last int)) {
		for a := range t.n {
			first, last := c.span(t, a)
			f(a, 1, first, min(last, from-1))
		}
		f(0, t.n, from, to)
		for a := range t.n {
			first, last := c.span(t, a)
			f(a, 1, max(first, to+1), last)
		}
	}
	k, v := c.k[t.slot], c.v[t.slot]
	each(func(a, n, first, last int) {
		c.runs(first, last, func(row, rows, i int) {
			at := c.key(t.head, row)
			to, q := scores[a*stride+first-begin+i:], t.q[a*t.qstride:]
			switch {
			case k.f16 != nil:
				s.DotTileF16(to, stride, q, t.qstride, n, c.KeyDim, k.f16[at:], c.KeyDim, rows)
			case k.q8 != nil:
				room.widen(s, k, at, c.KeyDim, rows, func(wide []float32, i, rows int) {
					s.DotTile(to[i:], stride, q, t.qstride, n, c.KeyDim, wide, c.KeyDim, rows)
				})
			default:
				s.DotTile(to, stride, q, t.qstride, n, c.KeyDim, k.f32[at:], c.KeyDim, rows)
			}
		})
	})
	for a := range t.n {
		first, last := c.span(t, a)
		x := scores[a*stride+first-begin : a*stride+last-begin+1]
		if scale != 1 {
			s.Scale(x, x, scale)
		}
		s.Softmax(x)
		clear(t.out[a*t.ostride:][:c.ValueDim])
	}
	each(func(a, n, first, last int) {
		c.runs(first, last, func(row, rows, i int) {
			at := c.value(t.head, row)
			w, out := scores[a*stride+first-begin+i:], t.out[a*t.ostride:]
			switch {
			case v.f16 != nil:
				s.AddTileF16(out, t.ostride, n, c.ValueDim, w, stride, v.f16[at:], c.ValueDim, rows)
			case v.q8 != nil:
				room.widen(s, v, at, c.ValueDim, rows, func(wide []float32, i, rows int) {
					s.AddTile(out, t.ostride, n, c.ValueDim, w[i:], stride, wide, c.ValueDim, rows)
				})
			default:
				s.AddTile(out, t.ostride, n, c.ValueDim, w, stride, v.f32[at:], c.ValueDim, rows)
			}
		})
	})
}
