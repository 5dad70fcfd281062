package kernel

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"testing"
)

// TestSameEverywhere holds the results to one hash on every machine and instruction set: the compilers of some
// architectures fuse multiplications and additions where a conversion does not forbid it.
func TestSameEverywhere(t *testing.T) {
	const want = "880cd9f1d46eb572"
	for _, isa := range Available() {
		s, _ := New(isa)
		rng := rand.New(rand.NewPCG(12, 12))
		uniform := func(n int) []float32 {
			x := make([]float32, n)
			for i := range x {
				x[i] = (rng.Float32()*2 - 1) * 8
			}
			return x
		}
		hash := fnv.New64a()
		sum := func(x []float32) {
			for _, v := range x {
				if v != v {
					t.Fatalf("%v: a result is not a number", isa)
				}
				hash.Write(binary.LittleEndian.AppendUint32(nil, math.Float32bits(v)))
			}
		}
		const rows, cols, n = 21, 256, 3
		for _, typ := range productTypes {
			bytes, _ := typ.RowBytes(cols)
			data := make([]byte, rows*int(bytes))
			// Bytes without the exponent of an infinity in any type.
			for i := range data {
				data[i] = byte(rng.Uint32()) & 0x3b
			}
			sum(product(t, s, typ, rows, cols, data, Panels, uniform(n*cols), cols, n))
		}
		a, b, c := uniform(200), uniform(200), uniform(200)
		for _, f := range []func(){
			func() { s.RMSNorm(c, a, b, 1e-6) }, func() { s.GeluMul(c, a, b) }, func() { s.SiluMul(c, a, b) }, func() { s.Softcap(c, 5) },
			func() { s.Softmax(c) }, func() { s.Rope(c, a[:100], b[:100], false) }, func() { s.Rope(c, a[:100], b[:100], true) },
			func() { s.DotRows(c[:3], a[:60], b, 60) }, func() { s.AddRows(c[:60], a[:3], b, 60) },
			func() { row := make([]byte, 6*q8Bytes); s.Q8Row(row, a[:192]); s.Q8Values(c[:192], row) },
		} {
			f()
			sum(c)
		}
		if got := fmt.Sprintf("%016x", hash.Sum64()); got != want {
			t.Errorf("%v: the results have the hash %s, want %s", isa, got, want)
		}
	}
}
