package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tandemrun/tandem/quant"
)

// lengths are those of the tails and of several registers.
var lengths = []int{1, 2, 3, 7, 8, 15, 16, 17, 31, 32, 33, 64, 100, 129, 256, 515}

// values returns n values of many magnitudes.
func values(rng *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rng.NormFloat64() * math.Exp(rng.NormFloat64()*2))
	}
	return x
}

func halves(x []float32) []uint16 {
	h := make([]uint16, len(x))
	for i, v := range x {
		h[i] = quant.F32ToF16(v)
	}
	return h
}

// operations runs each vector operation on n elements and returns its results.
func operations(s *Set, rng *rand.Rand, n int) map[string][]float32 {
	a, b, w := values(rng, n), values(rng, n), values(rng, n)
	// Where the functions change their form, and beyond what they can represent.
	for i, v := range []float32{0, float32(math.Copysign(0, -1)), 0.625, -0.625, 0.6249999, 1e-30, -1e-40, 88, 89, -87.3, -87.4, 1000, -1000, float32(math.Inf(1)), float32(math.Inf(-1))} {
		if i < n-2 {
			a[i] = v
		}
	}
	finite := values(rng, n)
	const rows = 11
	stride := n + 3
	m := values(rng, rows*stride)
	h := halves(m)
	out := map[string][]float32{}
	run := func(name string, f func(dst []float32)) {
		dst := slices.Repeat([]float32{7}, n+1)
		f(dst[:n])
		if dst[n] != 7 {
			panic(name + " wrote behind its result")
		}
		out[name] = dst[:n]
	}
	run("norm", func(d []float32) { s.RMSNorm(d, finite, w, 1e-6) })
	run("norm without weights", func(d []float32) { copy(d, finite); s.RMSNorm(d, d, nil, 1e-5) })
	run("gelu", func(d []float32) { s.GeluMul(d, a, b) })
	run("silu", func(d []float32) { s.SiluMul(d, a, b) })
	run("add", func(d []float32) { s.Add(d, a, b) })
	run("scale", func(d []float32) { s.Scale(d, a, 0.3) })
	run("softcap", func(d []float32) { copy(d, a); s.Softcap(d, 30) })
	run("softmax", func(d []float32) { copy(d, finite); s.Softmax(d) })
	run("add rows", func(d []float32) { copy(d, b); s.AddRows(d, w[:min(n, rows)], m, stride) })
	run("add half rows", func(d []float32) { copy(d, b); s.AddRowsF16(d, w[:min(n, rows)], h, stride) })
	run("rope", func(d []float32) {
		copy(d, b)
		s.Rope(d, a[:n/2], w[:n/2], true)
		s.Rope(d, w[:n/2], finite[:n/2], false)
		s.Rope(d, w[:n/4], finite[:n/4], false)
	})
	out["dot rows"] = make([]float32, rows)
	s.DotRows(out["dot rows"], finite, m, stride)
	out["dot half rows"] = make([]float32, rows)
	s.DotRowsF16(out["dot half rows"], finite, h, stride)
	h16 := make([]uint16, n+1)
	s.F16Rows(h16[:n], a)
	if h16[n] != 0 {
		panic("F16Rows wrote behind its result")
	}
	wide := make([]float32, n)
	s.F32Rows(wide, h16[:n])
	out["half"] = wide
	return out
}

// TestVectorsAgree compares the vector operations of every instruction set with plain Go, bit for bit.
func TestVectorsAgree(t *testing.T) {
	generic, _ := New(Generic)
	for _, isa := range Available() {
		s, err := New(isa)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range lengths {
			t.Run(fmt.Sprintf("%v/%d", isa, n), func(t *testing.T) {
				want := operations(generic, rand.New(rand.NewPCG(5, uint64(n))), n)
				for name, got := range operations(s, rand.New(rand.NewPCG(5, uint64(n))), n) {
					for i := range got {
						g, w := got[i], want[name][i]
						if math.Float32bits(g) != math.Float32bits(w) && !(g != g && w != w) {
							t.Fatalf("%s: element %d is %v, want %v", name, i, g, w)
						}
					}
				}
			})
		}
	}
}

// TestGenericVectors compares plain Go with float64.
func TestGenericVectors(t *testing.T) {
	s, _ := New(Generic)
	near := func(name string, got float32, want, relative, absolute float64) {
		t.Helper()
		if d := math.Abs(float64(got) - want); !(d <= relative*math.Abs(want)+absolute) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
	rng := rand.New(rand.NewPCG(6, 6))
	x, up := values(rng, 500), values(rng, 500)
	gelu, silu, capped := make([]float32, 500), make([]float32, 500), slices.Clone(x)
	s.GeluMul(gelu, x, up)
	s.SiluMul(silu, x, up)
	s.Softcap(capped, 30)
	for i, v := range x {
		v := float64(v)
		u := float64(up[i])
		z := math.Sqrt(2/math.Pi) * (v + 0.044715*v*v*v)
		near(fmt.Sprintf("gelu(%v)", v), gelu[i], v/(1+math.Exp(-2*z))*u, 5e-6, 1e-30)
		near(fmt.Sprintf("silu(%v)", v), silu[i], v/(1+math.Exp(-v))*u, 1e-6, 1e-30)
		near(fmt.Sprintf("softcap(%v)", v), capped[i], 30*math.Tanh(v/30), 1e-6, 0)
	}
	for v := -87.2; v < 88; v += 0.37 {
		near("exp", exp(float32(v)), math.Exp(float64(float32(v))), 3e-7, 0)
	}
	soft := slices.Clone(x)
	s.Softmax(soft)
	most, sum := float64(slices.Max(x)), 0.0
	for _, v := range x {
		sum += math.Exp(float64(v) - most)
	}
	for i, v := range x {
		near("softmax", soft[i], math.Exp(float64(v)-most)/sum, 1e-5, 1e-30)
	}
	norm := make([]float32, 500)
	s.RMSNorm(norm, x, up, 1e-6)
	var squares float64
	for _, v := range x {
		squares += float64(v) * float64(v)
	}
	for i, v := range x {
		near("norm", norm[i], float64(v)/math.Sqrt(squares/500+1e-6)*float64(up[i]), 1e-6, 0)
	}
	scores := make([]float32, 4)
	s.DotRows(scores, x[:100], up, 125)
	for i, got := range scores {
		var want, size float64
		for j, v := range x[:100] {
			want += float64(v) * float64(up[i*125+j])
			size += math.Abs(float64(v) * float64(up[i*125+j]))
		}
		near("dot", got, want, 0, 1e-6*size)
	}
	head := []float32{1, 2, 3, 4, 5, 6}
	s.Rope(head, []float32{0, 0.5}, []float32{1, 0.25}, false)
	if want := []float32{-4, -0.25, 3, 1, 3, 6}; !slices.Equal(head, want) {
		t.Errorf("rope of split halves: got %v, want %v", head, want)
	}
	head = []float32{1, 2, 3, 4, 5, 6}
	s.Rope(head, []float32{0, 0.5}, []float32{1, 0.25}, true)
	if want := []float32{-2, 1, 0.5, 2.75, 5, 6}; !slices.Equal(head, want) {
		t.Errorf("rope of neighbours: got %v, want %v", head, want)
	}
}

// TestRowsSplit: attention over parts of a run of rows gives the bits of the whole.
func TestRowsSplit(t *testing.T) {
	for _, isa := range Available() {
		s, _ := New(isa)
		rng := rand.New(rand.NewPCG(7, 7))
		const n, stride, rows = 80, 96, 128
		m, q, w := values(rng, rows*stride), values(rng, n), values(rng, rows)
		h := halves(m)
		whole, parts := make([]float32, rows+n), make([]float32, rows+n)
		for _, half := range []bool{false, true} {
			for _, c := range []struct {
				out  []float32
				cuts []int
			}{{whole, []int{0, 128}}, {parts, []int{0, 64, 67, 128}}} {
				clear(c.out[rows:])
				for i := range len(c.cuts) - 1 {
					lo, hi := c.cuts[i], c.cuts[i+1]
					if half {
						s.DotRowsF16(c.out[lo:hi], q, h[lo*stride:], stride)
						s.AddRowsF16(c.out[rows:], w[lo:hi], h[lo*stride:], stride)
					} else {
						s.DotRows(c.out[lo:hi], q, m[lo*stride:], stride)
						s.AddRows(c.out[rows:], w[lo:hi], m[lo*stride:], stride)
					}
				}
			}
			if i, ok := equalBits(parts, whole); !ok {
				t.Errorf("%v, half precision %v: element %d differs", isa, half, i)
			}
		}
	}
}

// TestTiles: several queries at once give the bits of each alone.
func TestTiles(t *testing.T) {
	for _, isa := range Available() {
		s, _ := New(isa)
		rng := rand.New(rand.NewPCG(11, 11))
		for _, c := range []struct{ queries, n, rows int }{{1, 16, 1}, {4, 64, 4}, {9, 80, 71}, {8, 256, 200}, {5, 24, 7}, {4, 176, 3}} {
			stride, sstride := c.n+8, c.rows+5
			kv, q, w := values(rng, c.rows*stride), values(rng, c.queries*stride), values(rng, c.queries*sstride)
			h := halves(kv)
			for _, half := range []bool{false, true} {
				scores, dst := make([]float32, c.queries*sstride), slices.Clone(q)
				wantScores, wantDst := slices.Clone(scores), slices.Clone(q)
				if half {
					s.DotTileF16(scores, sstride, q, stride, c.queries, c.n, h, stride, c.rows)
					s.AddTileF16(dst, stride, c.queries, c.n, w, sstride, h, stride, c.rows)
				} else {
					s.DotTile(scores, sstride, q, stride, c.queries, c.n, kv, stride, c.rows)
					s.AddTile(dst, stride, c.queries, c.n, w, sstride, kv, stride, c.rows)
				}
				for a := range c.queries {
					to, sum, weights := wantScores[a*sstride:][:c.rows], wantDst[a*stride:][:c.n], w[a*sstride:][:c.rows]
					if half {
						s.DotRowsF16(to, q[a*stride:][:c.n], h, stride)
						s.AddRowsF16(sum, weights, h, stride)
					} else {
						s.DotRows(to, q[a*stride:][:c.n], kv, stride)
						s.AddRows(sum, weights, kv, stride)
					}
				}
				if i, ok := equalBits(scores, wantScores); !ok {
					t.Errorf("%v, half precision %v, %v: score %d differs", isa, half, c, i)
				}
				if i, ok := equalBits(dst, wantDst); !ok {
					t.Errorf("%v, half precision %v, %v: sum %d differs", isa, half, c, i)
				}
			}
		}
	}
}

// TestQ8 compares rows of Q8_0 with package quant, bit for bit, and their values too.
func TestQ8(t *testing.T) {
	for _, isa := range Available() {
		s, _ := New(isa)
		rng := rand.New(rand.NewPCG(13, 13))
		for _, n := range []int{32, 64, 96, 480, 544, 4096} {
			x := values(rng, n)
			// Ties and their neighbours, of both signs, zeros and halves that underflow, in blocks whose largest value makes the
			// scale 1 or 2.
			copy(x, []float32{127, 0.5, -0.5, 0.49999997, -0.49999997, 0.50000006, 1.5, 2.5, -2.5, 2.4999998, 126.5, -126.5, 0, float32(math.Copysign(0, -1)), 1e-40})
			if n > 128 {
				copy(x[32:], []float32{-254, 1, 3, -3, 4.9999995, 5, 253, 5.0000005})
				clear(x[64:96])
				copy(x[96:], slices.Repeat([]float32{1e-7}, 32)) // the scale is no normal half
			}
			size, _ := quant.Q8_0.RowBytes(n)
			want, got := make([]byte, size), make([]byte, size+1)
			if err := quant.Q8_0.Quantize(want, x); err != nil {
				t.Fatal(err)
			}
			s.Q8Row(got, x)
			for i := range want {
				if got[i] != want[i] {
					t.Fatalf("%v, %d values: byte %d is %d, want %d", isa, n, i, got[i], want[i])
				}
			}
			wide, all := make([]float32, n+32), make([]float32, n)
			wide[n] = 7
			s.Q8Values(wide[:n], got)
			if err := quant.Q8_0.Dequantize(all, want); err != nil {
				t.Fatal(err)
			}
			if i, ok := equalBits(wide[:n], all); !ok {
				t.Fatalf("%v, %d values: value %d differs", isa, n, i)
			}
			if got[size] != 0 || wide[n] != 7 {
				t.Fatalf("%v, %d values: wrote behind the end", isa, n)
			}
		}
		// What is not finite does not come back as a number.
		for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			x, row := values(rng, 64), make([]byte, 2*q8Bytes)
			x[5] = float32(bad)
			s.Q8Row(row, x)
			s.Q8Values(x, row)
			for i, v := range x {
				if (v != v) != (i < 32) {
					t.Errorf("%v: with %g in the first block value %d is %g", isa, bad, i, v)
				}
			}
		}
		// Blocks that are next to nothing are nothing.
		x, row := slices.Repeat([]float32{1e-38}, 32), slices.Repeat([]byte{1}, q8Bytes)
		s.Q8Row(row, x)
		s.Q8Values(x, row)
		if slices.Max(x) != 0 || slices.Min(x) != 0 {
			t.Errorf("%v: tiny values come back as %v", isa, x)
		}
	}
}

// TestFMA compares with exact arithmetic on pairs chosen to fall near ties.
func TestFMA(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	for range 200000 {
		a := math.Float32frombits(rng.Uint32()&0x007fffff | uint32(100+rng.IntN(50))<<23)
		b := math.Float32frombits(rng.Uint32()&0x00700000 | uint32(100+rng.IntN(50))<<23)
		c := math.Float32frombits(rng.Uint32()&0x807fffff | uint32(1+rng.IntN(200))<<23)
		if got, want := fma(a, b, c), exactFMA(a, b, c); got != want {
			t.Fatalf("fma(%x, %x, %x) = %x, want %x", math.Float32bits(a), math.Float32bits(b), math.Float32bits(c), math.Float32bits(got), math.Float32bits(want))
		}
	}
}
