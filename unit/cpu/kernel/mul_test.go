package kernel

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tandemrun/tandem/quant"
)

var productTypes = []quant.Type{
	quant.F32, quant.F16, quant.BF16, quant.Q4_0, quant.Q4_1, quant.Q5_0, quant.Q5_1, quant.Q8_0,
	quant.Q4_K, quant.Q5_K, quant.Q6_K, quant.Q2_K, quant.Q3_K, quant.IQ4_NL, quant.IQ4_XS, quant.MXFP4,
}

// weights returns random bits of type t as rows of weights, with scales that are finite: small, negative, subnormal
// and zero ones among them.
func weights(rng *rand.Rand, t quant.Type, rows, cols int) []byte {
	rowBytes, err := t.RowBytes(cols)
	if err != nil {
		panic(err)
	}
	data := make([]byte, rows*int(rowBytes))
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	scale := func() uint16 {
		switch rng.IntN(16) {
		case 0:
			return uint16(rng.IntN(0x400)) // subnormal
		case 1:
			return 0x8000 * uint16(rng.IntN(2)) // zero
		}
		return uint16(0x1800+rng.IntN(0x1000)) | 0x8000*uint16(rng.IntN(2))
	}
	var at []int // where the half precision scales of a block are
	switch t {
	case quant.F32:
		for i := 0; i < len(data); i += 4 {
			binary.LittleEndian.PutUint32(data[i:], math.Float32bits(float32(rng.NormFloat64())))
		}
	case quant.F16, quant.BF16:
		for i := 0; i < len(data); i += 2 {
			h := quant.F32ToF16(float32(rng.NormFloat64()))
			if t == quant.F16 && rng.IntN(16) == 0 {
				h = uint16(rng.IntN(0x400))
			}
			if t == quant.BF16 {
				h = quant.F32ToBF16(float32(rng.NormFloat64()))
			}
			binary.LittleEndian.PutUint16(data[i:], h)
		}
	case quant.Q4_0, quant.Q5_0, quant.Q8_0, quant.IQ4_NL, quant.IQ4_XS:
		at = []int{0}
	case quant.Q4_1, quant.Q5_1, quant.Q4_K, quant.Q5_K:
		at = []int{0, 2}
	case quant.Q6_K:
		at = []int{208}
	case quant.Q2_K:
		at = []int{80, 82}
	case quant.Q3_K:
		at = []int{108}
	case quant.MXFP4:
		for i := 0; i < len(data); i += 17 {
			data[i] = byte(120 + rng.IntN(10))
		}
	}
	for b := 0; len(at) > 0 && b < len(data); b += t.BlockBytes() {
		for _, o := range at {
			binary.LittleEndian.PutUint16(data[b+o:], scale())
		}
	}
	return data
}

// activations returns n rows with an outlier, a zero block, a tiny block and a block whose largest value is negative.
func activations(rng *rand.Rand, n, stride, cols int) []float32 {
	x := make([]float32, n*stride)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	for r := range n {
		row := x[r*stride:][:cols]
		for i := range min(32, cols) {
			switch r % 4 {
			case 1:
				row[i] = 0
			case 2:
				row[i] *= 1e-33
			case 3:
				row[i] = -127
			}
		}
		row[cols-1] *= 50
	}
	return x
}

// product runs one product in the given layout and fails on a write outside of it.
func product(t testing.TB, s *Set, typ quant.Type, rows, cols int, data []byte, layout Layout, x []float32, xstride, n int) []float32 {
	t.Helper()
	m, err := s.Matrix(typ, rows, cols, data, layout)
	if err != nil {
		t.Fatal(err)
	}
	for lo := 0; lo < rows; lo += 32 {
		s.Pack(m, lo, min(lo+32, rows))
	}
	in := s.NewInput(n, cols)
	s.SetInput(in, x, xstride, n, cols)
	if m.WantsInt8() {
		s.QuantizeInput(in, 0, n/2)
		s.QuantizeInput(in, n/2, n)
	}
	const guard = 12345.5
	stride := rows + 3
	dst := slices.Repeat([]float32{guard}, n*stride)
	s.Mul(dst, stride, m, in, 0, rows)
	out := make([]float32, 0, n*rows)
	for r := range n {
		out = append(out, dst[r*stride:][:rows]...)
		for _, v := range dst[r*stride+rows : (r+1)*stride] {
			if v != guard {
				t.Fatalf("row %d: wrote behind its outputs", r)
			}
		}
	}
	return out
}

func equalBits(a, b []float32) (int, bool) {
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
			return i, false
		}
	}
	return 0, len(a) == len(b)
}

// TestGenericProduct compares plain Go with a product in float64 of the dequantised weights and, for the integer form,
// the activations as quantised.
func TestGenericProduct(t *testing.T) {
	s, err := New(Generic)
	if err != nil {
		t.Fatal(err)
	}
	for _, typ := range productTypes {
		t.Run(typ.String(), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, uint64(typ)))
			rows, cols, n := 19, 512, 7
			data := weights(rng, typ, rows, cols)
			x := activations(rng, n, cols, cols)
			got := product(t, s, typ, rows, cols, data, Panels, x, cols, n)
			k, native := kindOf(typ)
			integer := native && formats[k].int8
			w := make([]float32, cols)
			for o := range rows {
				if err := typ.Dequantize(w, data[o*len(data)/rows:(o+1)*len(data)/rows]); err != nil {
					t.Fatal(err)
				}
				for r := range n {
					row := slices.Clone(x[r*cols:][:cols])
					if integer {
						roundActivations(row)
					}
					var want, size float64
					for c := range cols {
						want += float64(w[c]) * float64(row[c])
						size += math.Abs(float64(w[c]) * float64(row[c]))
					}
					// The min of a format can cancel what its codes add, so size alone is no bound.
					if diff := math.Abs(float64(got[r*rows+o]) - want); diff > 3e-6*size+1e-9 {
						t.Fatalf("row %d, output %d: got %v, want %v (difference %.2g, magnitude %.2g)", r, o, got[r*rows+o], want, diff, size)
					}
				}
			}
		})
	}
}

// roundActivations replaces x by what its int8 form stands for, by the definition in words.
func roundActivations(x []float32) {
	for ; len(x) > 0; x = x[32:] {
		var most float32
		for _, v := range x[:32] {
			most = max(most, float32(math.Abs(float64(v))))
		}
		d := most / 127
		for i, v := range x[:32] {
			if most < tiny {
				x[i] = 0
				continue
			}
			x[i] = float32(math.RoundToEven(float64(float32(v*(127/most))))) * d
		}
	}
}

// TestProductsAgree compares every instruction set and layout with plain Go, bit for bit.
func TestProductsAgree(t *testing.T) {
	generic, _ := New(Generic)
	for _, isa := range Available() {
		for _, typ := range productTypes {
			t.Run(fmt.Sprintf("%v/%v", isa, typ), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(2, uint64(typ)))
				block := typ.BlockSize()
				for _, c := range []struct{ rows, cols, n int }{
					{1, block, 1}, {16, 3 * max(block, 32), 1}, {50, 4 * max(block, 32), 31}, {33, max(block, 96), 16}, {64, 768, 5}, {37, max(block, 64), 53}, {274, 768, 33},
				} {
					data := weights(rng, typ, c.rows, c.cols)
					x := activations(rng, c.n, c.cols+5, c.cols)
					want := product(t, generic, typ, c.rows, c.cols, data, Panels, x, c.cols+5, c.n)
					for _, form := range []struct {
						layout Layout
						ahead  int
					}{{FileRows, 0}, {Panels, 0}, {Panels, 8 << 10}} {
						s := newSet(isa)
						s.ahead = form.ahead
						got := product(t, s, typ, c.rows, c.cols, data, form.layout, x, c.cols+5, c.n)
						if i, ok := equalBits(got, want); !ok {
							t.Fatalf("%d x %d weights in %v, prefetching %d bytes ahead, %d rows: row %d output %d is %v, want %v", c.rows, c.cols, form.layout, form.ahead, c.n, i/c.rows, i%c.rows, got[i], want[i])
						}
					}
				}
			})
		}
	}
}

// TestProductInvariance: an output's bits do not depend on the other rows of activations or on the range of outputs.
func TestProductInvariance(t *testing.T) {
	for _, isa := range Available() {
		s, err := New(isa)
		if err != nil {
			t.Fatal(err)
		}
		for _, typ := range []quant.Type{quant.F32, quant.Q4_0, quant.Q6_K} {
			t.Run(fmt.Sprintf("%v/%v", isa, typ), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(3, uint64(typ)))
				rows, cols, n := 72, 512, 37
				data := weights(rng, typ, rows, cols)
				x := activations(rng, n, cols, cols)
				whole := product(t, s, typ, rows, cols, data, Panels, x, cols, n)
				for _, cut := range [][2]int{{0, 1}, {36, 37}, {5, 22}, {9, 16}} {
					got := product(t, s, typ, rows, cols, data, Panels, x[cut[0]*cols:], cols, cut[1]-cut[0])
					if i, ok := equalBits(got, whole[cut[0]*rows:cut[1]*rows]); !ok {
						t.Fatalf("activation rows %v alone: output %d differs", cut, i)
					}
				}
				for _, layout := range []Layout{FileRows, Panels} {
					m, err := s.Matrix(typ, rows, cols, data, layout)
					if err != nil {
						t.Fatal(err)
					}
					s.Pack(m, 0, rows)
					in := s.NewInput(n, cols)
					s.SetInput(in, x, cols, n, cols)
					s.QuantizeInput(in, 0, n)
					got := make([]float32, n*rows)
					cuts := []int{0, 16, 64, rows}
					if layout == FileRows {
						cuts = []int{0, 1, 18, 50, 51, rows}
					}
					for i := range len(cuts) - 1 {
						s.Mul(got, rows, m, in, cuts[i], cuts[i+1])
					}
					if i, ok := equalBits(got, whole); !ok {
						t.Fatalf("%v in ranges %v: output %d differs", layout, cuts, i)
					}
				}
			})
		}
	}
}

func TestMatrixErrors(t *testing.T) {
	s, _ := New(Generic)
	for name, f := range map[string]func() error{
		"length":  func() error { _, err := s.Matrix(quant.Q4_0, 2, 32, make([]byte, 35), Panels); return err },
		"columns": func() error { _, err := s.Matrix(quant.Q4_0, 2, 33, make([]byte, 36), Panels); return err },
		"type":    func() error { _, err := s.Matrix(quant.IQ2_XXS, 1, 256, make([]byte, 66), FileRows); return err },
		"rows":    func() error { _, err := s.Matrix(quant.F32, 0, 4, nil, FileRows); return err },
		"memory": func() error {
			_, err := s.MatrixIn(quant.F32, 1, 4, make([]byte, 16), Panels, aligned(64*3))
			return err
		},
	} {
		if f() == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestPanelSize holds the panels to at most 3 % more than the file.
func TestPanelSize(t *testing.T) {
	for _, typ := range productTypes {
		file, _ := typ.RowBytes(2048)
		if got := PanelBytes(typ, 16, 2048); float64(got) > 1.03*16*float64(file) {
			t.Errorf("%v: panels take %d bytes, the file %d", typ, got, 16*file)
		}
	}
}

func TestMulAllocations(t *testing.T) {
	for _, isa := range Available() {
		s, _ := New(isa)
		rng := rand.New(rand.NewPCG(4, 4))
		rows, cols, n := 40, 256, 3
		for _, typ := range []quant.Type{quant.F32, quant.Q4_K} {
			m, err := s.Matrix(typ, rows, cols, weights(rng, typ, rows, cols), Panels)
			if err != nil {
				t.Fatal(err)
			}
			s.Pack(m, 0, rows)
			in, x, dst := s.NewInput(n, cols), activations(rng, n, cols, cols), make([]float32, n*rows)
			if got := testing.AllocsPerRun(10, func() {
				s.SetInput(in, x, cols, n, cols)
				s.QuantizeInput(in, 0, n)
				s.Mul(dst, rows, m, in, 0, rows)
			}); got != 0 {
				t.Errorf("%v %v: %v allocations in a product", isa, typ, got)
			}
		}
	}
}

// TestQuantizeAgrees compares the int8 form of every instruction set with plain Go's, with values that are not numbers
// as well.
func TestQuantizeAgrees(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	const n, cols = 23, 288
	x := activations(rng, n, cols, cols)
	for i := range x {
		switch rng.IntN(200) {
		case 0:
			x[i] = float32(math.Inf(1 - 2*rng.IntN(2)))
		case 1:
			x[i] = float32(math.NaN())
		case 2:
			x[i] = math.Float32frombits(rng.Uint32() & 0x807fffff) // subnormal
		case 3:
			x[i] *= 1e37
		}
	}
	var want []byte
	for _, isa := range Available() {
		s, _ := New(isa)
		in := s.NewInput(n, cols)
		s.SetInput(in, x, cols, n, cols)
		s.QuantizeInput(in, 0, n)
		got := in.q[:n*cols/32*recordBytes]
		if isa == Generic {
			want = got
			continue
		}
		for i := 0; i < len(got); i++ {
			// A scale that is not a number may have any payload.
			if got[i] != want[i] {
				w := i / 4 * 4
				g, w2 := math.Float32frombits(binary.LittleEndian.Uint32(got[w:])), math.Float32frombits(binary.LittleEndian.Uint32(want[w:]))
				if g == g || w2 == w2 {
					t.Fatalf("%v: byte %d of the records is %d, want %d", isa, i, got[i], want[i])
				}
			}
		}
	}
}

// TestPackAgrees compares the panels.
func TestPackAgrees(t *testing.T) {
	generic, _ := New(Generic)
	for _, isa := range Available() {
		s, _ := New(isa)
		for _, typ := range productTypes {
			rng := rand.New(rand.NewPCG(10, uint64(typ)))
			rows, cols := 40, 3*max(typ.BlockSize(), 32)
			if typ.BlockSize() == 1 {
				cols = 99
			}
			data := weights(rng, typ, rows, cols)
			a, err := generic.Matrix(typ, rows, cols, data, Panels)
			if err != nil {
				t.Fatal(err)
			}
			b, _ := s.Matrix(typ, rows, cols, data, Panels)
			generic.Pack(a, 0, rows)
			s.Pack(b, 0, 16)
			s.Pack(b, 16, rows)
			if !slices.Equal(a.panels, b.panels) {
				t.Errorf("%v, %v: panels differ", isa, typ)
			}
		}
	}
}
