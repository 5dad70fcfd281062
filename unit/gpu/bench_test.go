package gpu

import (
	"fmt"
	"testing"

	"github.com/tandemrun/tandem/program"
	"github.com/tandemrun/tandem/quant"
	"github.com/tandemrun/tandem/unit"
)

// BenchmarkProduct is one product of 8192 outputs of 2048 values.
func BenchmarkProduct(b *testing.B) {
	dev := device(b)
	for _, typ := range []quant.Type{quant.Q4_0, quant.Q8_0, quant.Q4_K, quant.Q6_K, quant.F16} {
		for _, n := range []int{1, 4, 64} {
			b.Run(fmt.Sprintf("%s/%d", typ, n), func(b *testing.B) {
				var s single
				in, out := s.buffer(2048), s.buffer(8192)
				s.Ops = []program.Op{program.MatMul{W: weight(b, typ, 8192, 2048, 1), In: in, Out: out}}
				x := newBench(b, dev, &s.Program, options(n))
				defer x.close()
				r, err := x.x.cut(&unit.Task{Parts: []unit.Part{{Tokens: make([]int32, n)}}})
				if err != nil {
					b.Fatal(err)
				}
				c, err := dev.Record(x.x.list(x.x.fill(r[0])), false)
				if err != nil {
					b.Fatal(err)
				}
				defer c.Close()
				if err := dev.Run(b.Context(), c); err != nil { // compiles
					b.Fatal(err)
				}
				for b.Loop() {
					if err := dev.Run(b.Context(), c); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(n)*8192*2048*float64(b.N)/b.Elapsed().Seconds()/1e9, "GMAC/s")
			})
		}
	}
}
