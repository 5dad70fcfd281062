package cpu

import (
	"fmt"
	"unsafe"

	"github.com/tandemrun/tandem/program"
	"github.com/tandemrun/tandem/unit"
	"github.com/tandemrun/tandem/unit/cpu/kernel"
)

// cache is the KV cache of one layer for all slots. A slot's rows are a ring:
// position p is row p mod rows. A sliding window keeps only what the rows of
// one block can see.
type cache struct {
	program.Cache
	kv     unit.KV
	rows   int
	k, v   []slab // by slot
	kw, vw int
}

// slab is the rows of one slot, in one of the two element types.
type slab struct {
	f32 []float32
	f16 []uint16
}

func newCache(c program.Cache, o unit.Options) *cache {
	x := &cache{Cache: c, kv: o.KV, rows: o.CacheRows(c), kw: c.KeyWidth(), vw: c.ValueWidth()}
	for range o.Slots {
		x.k = append(x.k, newSlab(o.KV, x.rows*x.kw))
		x.v = append(x.v, newSlab(o.KV, x.rows*x.vw))
	}
	return x
}

func newSlab(kv unit.KV, n int) slab {
	if kv == unit.F16 {
		return slab{f16: make([]uint16, n)}
	}
	return slab{f32: make([]float32, n)}
}

func (c *cache) bytes() int64 {
	return int64(len(c.k)) * int64(c.rows) * c.kv.Size(c.kw+c.vw)
}

// store writes one row at a position.
func (c *cache) store(s *kernel.Set, slot, pos int, k, v []float32) {
	r := pos % c.rows
	c.k[slot].put(s, r*c.kw, k)
	c.v[slot].put(s, r*c.vw, v)
}

func (x slab) put(s *kernel.Set, at int, row []float32) {
	if x.f16 != nil {
		s.F16Rows(x.f16[at:at+len(row)], row)
		return
	}
	copy(x.f32[at:], row)
}

// runs calls f for each run of neighbouring rows that together hold positions
// [first, last], in ascending order; i is the run's distance from first.
func (c *cache) runs(first, last int, f func(row, n, i int)) {
	for i, left := 0, last-first+1; left > 0; {
		row := (first + i) % c.rows
		n := min(left, c.rows-row)
		f(row, n, i)
		i, left = i+n, left-n
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
// taken together; the bits are those of each query alone. scores is room for n
// times as many values as the tile sees positions.
func (c *cache) attend(s *kernel.Set, t *tile, scores []float32, scale float32) {
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
	ko, vo := t.head*c.KeyDim, t.head*c.ValueDim
	k, v := c.k[t.slot], c.v[t.slot]
	each(func(a, n, first, last int) {
		c.runs(first, last, func(row, rows, i int) {
			to := scores[a*stride+first-begin+i:]
			if k.f16 != nil {
				s.DotTileF16(to, stride, t.q[a*t.qstride:], t.qstride, n, c.KeyDim, k.f16[row*c.kw+ko:], c.kw, rows)
			} else {
				s.DotTile(to, stride, t.q[a*t.qstride:], t.qstride, n, c.KeyDim, k.f32[row*c.kw+ko:], c.kw, rows)
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
			w := scores[a*stride+first-begin+i:]
			if v.f16 != nil {
				s.AddTileF16(t.out[a*t.ostride:], t.ostride, n, c.ValueDim, w, stride, v.f16[row*c.vw+vo:], c.vw, rows)
			} else {
				s.AddTile(t.out[a*t.ostride:], t.ostride, n, c.ValueDim, w, stride, v.f32[row*c.vw+vo:], c.vw, rows)
			}
		})
	})
}

// raw is the bytes of n values from value i on.
func (x slab) raw(i, n int) []byte {
	if n == 0 {
		return nil
	}
	if x.f16 != nil {
		return unsafe.Slice((*byte)(unsafe.Pointer(&x.f16[i])), 2*n)
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&x.f32[i])), 4*n)
}

// move copies rows [pos, pos+n) between the cache and k and v; out is from the
// cache to them.
func (c *cache) move(slot, pos, n int, k, v []byte, out bool) error {
	if slot < 0 || slot >= len(c.k) || pos < 0 || n < 0 || n > c.rows {
		return fmt.Errorf("cache of layer %d: positions %d..%d of slot %d are not in it", c.Layer, pos, pos+n-1, slot)
	}
	if int64(len(k)) < c.kv.Size(n*c.kw) || int64(len(v)) < c.kv.Size(n*c.vw) {
		return fmt.Errorf("cache of layer %d: no room for %d rows in %d and %d bytes", c.Layer, n, len(k), len(v))
	}
	c.runs(pos, pos+n-1, func(row, n, i int) {
		ck, cv := c.k[slot].raw(row*c.kw, n*c.kw), c.v[slot].raw(row*c.vw, n*c.vw)
		bk, bv := k[c.kv.Size(i*c.kw):], v[c.kv.Size(i*c.vw):]
		if out {
			copy(bk, ck)
			copy(bv, cv)
		} else {
			copy(ck, bk)
			copy(cv, bv)
		}
	})
	return nil
}
