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
//
// Inside, the rows of a head follow each other, and then those of the next
// head: attention reads one head's rows at a time, and read them at half the
// speed where they were as far apart as the rows of all heads are long.
type cache struct {
	program.Cache
	kv     unit.KV
	rows   int
	k, v   []slab // by slot
	kw, vw int    // of a row of all heads
}

// key and value are where a head's part of a row begins.
func (c *cache) key(head, row int) int   { return (head*c.rows + row) * c.KeyDim }
func (c *cache) value(head, row int) int { return (head*c.rows + row) * c.ValueDim }

// slab is the rows of one slot, in one of the types.
type slab struct {
	f32 []float32
	f16 []uint16
	q8  []byte // blocks of 32 values
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
	switch kv {
	case unit.F16:
		return slab{f16: make([]uint16, n)}
	case unit.Q8_0:
		return slab{q8: make([]byte, kv.Size(n))}
	}
	return slab{f32: make([]float32, n)}
}

func (c *cache) bytes() int64 {
	return int64(len(c.k)) * int64(c.rows) * c.kv.Size(c.kw+c.vw)
}

// store writes one row at a position.
func (c *cache) store(s *kernel.Set, slot, pos int, k, v []float32) {
	r := pos % c.rows
	for h := range c.KVHeads {
		c.k[slot].put(s, c.key(h, r), k[h*c.KeyDim:][:c.KeyDim])
		c.v[slot].put(s, c.value(h, r), v[h*c.ValueDim:][:c.ValueDim])
	}
}

func (x slab) put(s *kernel.Set, at int, row []float32) {
	switch {
	case x.f16 != nil:
		s.F16Rows(x.f16[at:at+len(row)], row)
	case x.q8 != nil:
		s.Q8Row(x.blocks(at, len(row)), row)
	default:
		copy(x.f32[at:], row)
	}
}

// blocks are the bytes of n values from value i on.
func (x slab) blocks(i, n int) []byte {
	lo, size := unit.Q8_0.Size(i), unit.Q8_0.Size(n)
	return x.q8[lo : lo+size : lo+size]
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

// raw is the bytes of n values from value i on.
func (x slab) raw(i, n int) []byte {
	switch {
	case n == 0:
		return nil
	case x.f16 != nil:
		return unsafe.Slice((*byte)(unsafe.Pointer(&x.f16[i])), 2*n)
	case x.q8 != nil:
		return x.blocks(i, n)
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
	for i := range n {
		row := (pos + i) % c.rows
		for h := range c.KVHeads {
			ck, cv := c.k[slot].raw(c.key(h, row), c.KeyDim), c.v[slot].raw(c.value(h, row), c.ValueDim)
			bk, bv := k[c.kv.Size(i*c.kw+h*c.KeyDim):], v[c.kv.Size(i*c.vw+h*c.ValueDim):]
			if out {
				copy(bk, ck)
				copy(bv, cv)
			} else {
				copy(ck, bk)
				copy(cv, bv)
			}
		}
	}
	return nil
}
