package kernel

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tandemrun/tandem/machine"
	"github.com/tandemrun/tandem/quant"
)

var benchmarkTypes = []quant.Type{
	quant.Q4_0, quant.Q8_0, quant.Q4_K, quant.Q6_K, quant.Q5_K, quant.Q4_1, quant.Q5_0, quant.Q5_1, quant.F16, quant.BF16, quant.F32,
}

// benchmarkProduct times products with tokens rows of activations over size bytes of weights, shared by threads, and
// reports the median and the best GB/s of packed weights and GOPS (two operations a multiplication).
func benchmarkProduct(b *testing.B, isa ISA, t quant.Type, layout Layout, size int64, tokens, threads int) {
	s, err := New(isa)
	if err != nil {
		b.Skip(err)
	}
	const cols = 2048
	rowBytes, _ := t.RowBytes(cols)
	rows := int(size/rowBytes) / (lanes * threads) * lanes * threads
	data := weights(rand.New(rand.NewPCG(1, 1)), t, lanes*threads, cols)
	for len(data) < rows*int(rowBytes) {
		data = append(data, data[:min(len(data), rows*int(rowBytes)-len(data))]...)
	}
	m, err := s.MatrixIn(t, rows, cols, data, layout, hugePages(b, int(PanelBytes(t, rows, cols))))
	if err != nil {
		b.Fatal(err)
	}
	s.Pack(m, 0, rows)
	in := s.NewInput(tokens, cols)
	s.SetInput(in, activations(rand.New(rand.NewPCG(2, 2)), tokens, cols, cols), cols, tokens, cols)
	s.QuantizeInput(in, 0, tokens)
	dst := make([]float32, tokens*rows)
	share := rows / threads
	b.ResetTimer()
	best, seconds := timeThreads(b, threads, func(i int) { s.Mul(dst, rows, m, in, i*share, (i+1)*share) })
	b.ReportMetric(float64(m.Bytes())/best/1e9, "GB/s-best")
	b.ReportMetric(2*float64(rows)*cols*float64(tokens)/best/1e9, "GOPS-best")
	b.ReportMetric(float64(m.Bytes())/seconds/1e9, "GB/s")
	b.ReportMetric(2*float64(rows)*cols*float64(tokens)/seconds/1e9, "GOPS")
}

func BenchmarkDecode(b *testing.B) {
	for _, isa := range Available()[1:] {
		for _, t := range benchmarkTypes {
			for threads := 1; threads <= 2; threads++ {
				b.Run(fmt.Sprintf("%v/%v/threads=%d", isa, t, threads), func(b *testing.B) {
					benchmarkProduct(b, isa, t, Panels, 512<<20, 1, threads)
				})
			}
		}
	}
}

func BenchmarkPrefill(b *testing.B) {
	for _, isa := range Available()[1:] {
		for _, t := range benchmarkTypes {
			for threads := 1; threads <= 2; threads++ {
				b.Run(fmt.Sprintf("%v/%v/threads=%d", isa, t, threads), func(b *testing.B) {
					benchmarkProduct(b, isa, t, Panels, 4<<20, 512, threads)
				})
			}
		}
	}
}

// BenchmarkBatch is decode of several streams at once.
func BenchmarkBatch(b *testing.B) {
	for _, n := range []int{1, 2, 3, 4, 7, 8, 15, 16} {
		b.Run(fmt.Sprintf("%v/%v/n=%d", Best(), quant.Q4_0, n), func(b *testing.B) {
			benchmarkProduct(b, Best(), quant.Q4_0, Panels, 256<<20, n, 1)
		})
	}
}

func BenchmarkFileRows(b *testing.B) {
	for _, t := range benchmarkTypes {
		for _, n := range []int{1, 128} {
			b.Run(fmt.Sprintf("%v/%v/n=%d", Best(), t, n), func(b *testing.B) {
				benchmarkProduct(b, Best(), t, FileRows, 32<<20, n, 1)
			})
		}
	}
}

func BenchmarkPack(b *testing.B) {
	for _, isa := range Available() {
		s, _ := New(isa)
		for _, t := range benchmarkTypes {
			b.Run(fmt.Sprintf("%v/%v", isa, t), func(b *testing.B) {
				const rows, cols = 4096, 2048
				m, err := s.Matrix(t, rows, cols, weights(rand.New(rand.NewPCG(1, 1)), t, rows, cols), Panels)
				if err != nil {
					b.Fatal(err)
				}
				b.SetBytes(int64(len(m.data)))
				for b.Loop() {
					s.Pack(m, 0, rows)
				}
			})
		}
	}
}

func BenchmarkCeilings(b *testing.B) {
	for _, isa := range Available() {
		s, _ := New(isa)
		buf := hugePages(b, 512<<20)
		if buf == nil {
			buf = make([]byte, 512<<20)
		}
		for i := 0; i < len(buf); i += 4096 {
			buf[i] = 1
		}
		for threads := 1; threads <= 2; threads++ {
			b.Run(fmt.Sprintf("%v/read/threads=%d", isa, threads), func(b *testing.B) {
				share := len(buf) / threads
				best, median := timeThreads(b, threads, func(i int) { s.ReadCeiling(buf[i*share : (i+1)*share]) })
				b.ReportMetric(float64(len(buf))/median/1e9, "GB/s")
				b.ReportMetric(float64(len(buf))/best/1e9, "GB/s-best")
			})
			b.Run(fmt.Sprintf("%v/multiply/threads=%d", isa, threads), func(b *testing.B) {
				var operations int64
				best, median := timeThreads(b, threads, func(i int) {
					if n := s.MultiplyCeiling(2000); i == 0 {
						operations = n * int64(threads)
					}
				})
				b.ReportMetric(float64(operations)/median/1e9, "GOPS")
				b.ReportMetric(float64(operations)/best/1e9, "GOPS-best")
			})
		}
	}
}

// timeThreads runs f once a thread, b.N times, and returns the best and the median seconds.
func timeThreads(b *testing.B, threads int, f func(i int)) (best, median float64) {
	var samples []float64
	for range b.N {
		start := time.Now()
		var wg sync.WaitGroup
		for i := range threads {
			wg.Go(func() { f(i) })
		}
		wg.Wait()
		samples = append(samples, time.Since(start).Seconds())
	}
	slices.Sort(samples)
	return samples[0], samples[len(samples)/2]
}

func BenchmarkVector(b *testing.B) {
	for _, isa := range Available() {
		s, _ := New(isa)
		rng := rand.New(rand.NewPCG(1, 1))
		x, w, up, dst := values(rng, 2048), values(rng, 2048), values(rng, 2048), make([]float32, 2048)
		const rows, width = 64, 256
		kv, scores := values(rng, rows*width), values(rng, rows)
		half, many := halves(kv), make([]float32, 4*rows)
		in := s.NewInput(16, 2048)
		s.SetInput(in, values(rng, 16*2048), 2048, 16, 2048)
		for _, op := range []struct {
			name     string
			elements int
			run      func()
		}{
			{"RMSNorm", 2048, func() { s.RMSNorm(dst, x, w, 1e-6) }},
			{"GeluMul", 2048, func() { s.GeluMul(dst, x, up) }},
			{"SiluMul", 2048, func() { s.SiluMul(dst, x, up) }},
			{"Softcap", 2048, func() { s.Softcap(dst, 30) }},
			{"Softmax", 2048, func() { copy(dst, x); s.Softmax(dst) }},
			{"Rope", width, func() { s.Rope(dst[:width], x[:width/2], w[:width/2], false) }},
			{"RopePairs", width, func() { s.Rope(dst[:width], x[:width/2], w[:width/2], true) }},
			{"DotRows", rows * width, func() { s.DotRows(scores, x[:width], kv, width) }},
			{"DotRowsF16", rows * width, func() { s.DotRowsF16(scores, x[:width], half, width) }},
			{"AddRows", rows * width, func() { s.AddRows(dst[:width], scores, kv, width) }},
			{"AddRowsF16", rows * width, func() { s.AddRowsF16(dst[:width], scores, half, width) }},
			{"DotTile4", 4 * rows * width, func() { s.DotTile(many, rows, x, width, 4, width, kv, width, rows) }},
			{"DotTileF16x4", 4 * rows * width, func() { s.DotTileF16(many, rows, x, width, 4, width, half, width, rows) }},
			{"AddTile4", 4 * rows * width, func() { s.AddTile(dst, width, 4, width, many, rows, kv, width, rows) }},
			{"AddTileF16x4", 4 * rows * width, func() { s.AddTileF16(dst, width, 4, width, many, rows, half, width, rows) }},
			{"QuantizeInput", 16 * 2048, func() { s.QuantizeInput(in, 0, 16) }},
		} {
			b.Run(fmt.Sprintf("%v/%s", isa, op.name), func(b *testing.B) {
				for b.Loop() {
					op.run()
				}
				b.ReportMetric(float64(op.elements)*float64(b.N)/b.Elapsed().Seconds()/1e9, "Gelements/s")
			})
		}
	}
}

// hugePages returns memory that is fast to stream. It is never given back.
func hugePages(b *testing.B, n int) []byte {
	b.Helper()
	p, err := machine.NewPages(int64(n))
	if err != nil {
		return nil
	}
	b.Cleanup(func() { _ = p.Free() })
	return p.Data
}
