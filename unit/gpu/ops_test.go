package gpu

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tandemrun/tandem/program"
	"github.com/tandemrun/tandem/quant"
	"github.com/tandemrun/tandem/unit"
	"github.com/tandemrun/tandem/unit/gpu/compute"
	"github.com/tandemrun/tandem/unit/gpu/vulkan"
)

// device opens a device with the validation layer on, which must be silent.
func device(t testing.TB) compute.Device {
	t.Helper()
	v, err := vulkan.Open(vulkan.Config{Validate: true})
	if err != nil {
		missing(t, err)
	}
	d, err := v.Device(0)
	if err != nil {
		t.Fatal(err)
	}
	dev := newVulkan(d)
	t.Cleanup(func() {
		if err := errors.Join(dev.Close(), v.Close()); err != nil {
			t.Error(err)
		}
		for _, m := range v.Messages() {
			t.Error(m)
		}
	})
	return dev
}

// limited is a device that says less of itself.
type limited struct {
	compute.Device
	alter func(*compute.Limits)
}

func (l limited) Limits() compute.Limits {
	x := l.Device.Limits()
	l.alter(&x)
	return x
}

// A bench runs a program on a device as a chunk does, recording anew each time.
type bench struct {
	t       testing.TB
	dev     compute.Device
	x       *plan
	weights *placement
	caches  []*cache
}

func newBench(t testing.TB, dev compute.Device, p *program.Program, o unit.Options) *bench {
	t.Helper()
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, dev: dev}
	var err error
	if b.weights, err = place(t.Context(), dev, p, o); err != nil {
		t.Fatal(err)
	}
	alloc := func(n int) compute.Binding {
		x, err := dev.Alloc(int64(4*n), compute.Local)
		if err != nil {
			t.Fatal(err)
		}
		at := compute.Binding{Buffer: x, Size: int64(4 * n)}
		if err := dev.Clear(at); err != nil {
			t.Fatal(err)
		}
		return at
	}
	for _, c := range p.Caches {
		n := o.CacheRows(c)
		b.caches = append(b.caches, &cache{Cache: c, kv: o.KV, rows: n,
			k: alloc(o.Slots * n * words(o.KV, c.KeyWidth())), v: alloc(o.Slots * n * words(o.KV, c.ValueWidth()))})
	}
	x, err := newPlan(dev, p, o, b.weights.pieces, b.caches)
	if err != nil {
		t.Fatal(err)
	}
	b.x = x
	return b
}

func (b *bench) close() {
	err := errors.Join(b.x.close(), b.weights.close())
	for _, c := range b.caches {
		err = errors.Join(err, c.k.Buffer.Close(), c.v.Buffer.Close())
	}
	if err != nil {
		b.t.Error(err)
	}
}

func (b *bench) run(task *unit.Task) {
	b.t.Helper()
	runs, err := b.x.cut(task)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, r := range runs {
		list := b.x.list(b.x.fill(r))
		c, err := b.dev.Record(list, false)
		if err != nil {
			b.t.Fatal(err)
		}
		if err := b.dev.Run(b.t.(*testing.T).Context(), c); err != nil {
			b.t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			b.t.Fatal(err)
		}
		b.x.take(r)
	}
}

// single is a program of one operation that takes inputs and gives an output.
type single struct {
	program.Program
}

func (s *single) buffer(width int) program.View {
	s.Logits = -1
	s.Buffers = append(s.Buffers, program.Buffer{Name: fmt.Sprint("b", len(s.Buffers)), Width: width})
	return program.View{Buf: len(s.Buffers) - 1, Width: width}
}

func (s *single) in(v program.View) {
	s.Inputs = append(s.Inputs, program.Port{Name: fmt.Sprint("in", len(s.Inputs)), View: v})
}

func (s *single) out(v program.View) {
	s.Outputs = append(s.Outputs, program.Port{Name: "out", View: v})
}

// compare runs a program on both and returns the device's rows and the largest
// difference, relative to one more than the value.
func (s *single) compare(t *testing.T, dev compute.Device, inputs [][]float32, n int, blocks []int, o unit.Options) (got []float32, worst float64) {
	t.Helper()
	b := newBench(t, dev, &s.Program, o)
	defer b.close()
	width := s.Outputs[0].View.Width
	for pos := 0; pos < n; {
		for _, size := range blocks {
			m := min(size, n-pos)
			if m == 0 {
				break
			}
			part := unit.Part{Pos: pos, Tokens: make([]int32, m), Out: []unit.Rows{{Data: make([]float32, m*width), Stride: width}}}
			for i := range part.Tokens {
				part.Tokens[i] = token(pos + i)
			}
			for i, in := range s.Inputs {
				w := in.View.Width
				part.In = append(part.In, unit.Rows{Data: inputs[i][pos*w : (pos+m)*w], Stride: w})
			}
			b.run(&unit.Task{Parts: []unit.Part{part}})
			got = append(got, part.Out[0].Data...)
			pos += m
		}
	}
	want := s.reference(t, inputs, n, o.KV)
	for i, x := range want {
		d := math.Abs(float64(x)-float64(got[i])) / (1 + math.Abs(float64(x)))
		if math.IsNaN(float64(x)) != math.IsNaN(float64(got[i])) || math.IsInf(float64(x), 0) && x != got[i] {
			t.Fatalf("row %d, column %d is %g, not %g", i/width, i%width, got[i], x)
		}
		if d > worst {
			worst = d
		}
	}
	return got, worst
}

// reference is what the evaluator makes of the inputs.
func (s *single) reference(t *testing.T, inputs [][]float32, n int, kv unit.KV) []float32 {
	t.Helper()
	e := program.Evaluator{KV: kv.Type()}
	first := &program.Program{Logits: -1}
	tokens := make([]int32, n)
	for i := range tokens {
		tokens[i] = token(i)
	}
	// Inputs come from a program that looks them up by position.
	for i, in := range s.Inputs {
		w := in.View.Width
		table := program.Weight{Name: fmt.Sprint("input", i), Type: quant.F32, Rows: 97, Cols: w, Data: make([]byte, 4*97*w)}
		for p := range n {
			if err := quant.F32.Quantize(table.Data[int(token(p))*4*w:][:4*w], inputs[i][p*w:(p+1)*w]); err != nil {
				t.Fatal(err)
			}
		}
		first.Buffers = append(first.Buffers, program.Buffer{Name: in.Name, Width: w})
		v := program.View{Buf: i, Width: w}
		first.Ops = append(first.Ops, program.Embed{Table: table, Out: v, Scale: 1})
		first.Outputs = append(first.Outputs, program.Port{Name: in.Name, View: v})
	}
	if _, err := e.Run(program.Block{Tokens: tokens}, first, &s.Program); err != nil {
		t.Fatal(err)
	}
	m, _ := e.Port("out")
	return m.Data
}

// token is the token at a position: all different.
func token(pos int) int32 { return int32(pos * 31 % 97) }

func random(seed uint64, n int, size float64) []float32 {
	r := rand.New(rand.NewPCG(seed, 3))
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64() * size)
	}
	return x
}

// extreme replaces some values by small, large and subnormal ones.
func extreme(x []float32) []float32 {
	for i, v := range []float32{0, float32(math.Copysign(0, -1)), 1e-30, -1e-38, 1e-42, 3e18, -3e18, 1e30, 88.9, -88.9, -104, 700, 0.625, 0.6249} {
		if 7*i < len(x) {
			x[7*i] = v
		}
	}
	return x
}

func weight(t testing.TB, typ quant.Type, rows, cols int, seed uint64) program.Weight {
	t.Helper()
	n, err := typ.RowBytes(cols)
	if err != nil {
		t.Fatal(err)
	}
	w := program.Weight{Name: fmt.Sprint("w", seed), Type: typ, Rows: rows, Cols: cols, Data: make([]byte, int(n)*rows)}
	r := rand.New(rand.NewPCG(seed, uint64(typ)))
	if typ == quant.F32 {
		if err := typ.Quantize(w.Data, random(seed, rows*cols, 1)); err != nil {
			t.Fatal(err)
		}
		return w
	}
	// Any bits are a block; scales that are not finite or huge are made tame.
	for i := range w.Data {
		w.Data[i] = byte(r.Uint32())
	}
	x := make([]float32, typ.BlockSize())
	for b := 0; b < len(w.Data); b += typ.BlockBytes() {
		block := w.Data[b : b+typ.BlockBytes()]
		for {
			if err := typ.Dequantize(x, block); err != nil {
				t.Fatal(err)
			}
			ok := true
			for _, v := range x {
				ok = ok && math.Abs(float64(v)) < 1e6
			}
			if ok {
				break
			}
			for i := range block {
				block[i] = byte(r.Uint32())
			}
		}
	}
	return w
}

var types = []quant.Type{quant.F32, quant.F16, quant.BF16, quant.Q4_0, quant.Q4_1, quant.Q5_0, quant.Q5_1, quant.Q8_0,
	quant.Q2_K, quant.Q3_K, quant.Q4_K, quant.Q5_K, quant.Q6_K, quant.IQ4_NL, quant.IQ4_XS, quant.MXFP4}

func options(block int) unit.Options {
	return unit.Options{Slots: 3, Context: 97, Block: block}
}

// Every type of weights is converted bit for bit as package quant does it.
func TestEmbed(t *testing.T) {
	dev := device(t)
	for _, typ := range types {
		t.Run(typ.String(), func(t *testing.T) {
			block := typ.BlockSize()
			cols, lo := 3*max(block, 64), max(block, 64)
			if block == 1 {
				cols, lo = 173, 7
			}
			var s single
			v := s.buffer(cols - lo)
			s.Ops = []program.Op{program.Embed{Table: weight(t, typ, 97, cols, 1), Col: lo, Out: v, Scale: 0.75}}
			s.out(v)
			got, _ := s.compare(t, dev, nil, 97, []int{16}, options(16))
			for i, x := range s.reference(t, nil, 97, unit.F32) {
				if x != got[i] {
					t.Fatalf("row %d, column %d is %g, not %g", i/v.Width, i%v.Width, got[i], x)
				}
			}
		})
	}
}

// Products agree with the evaluator, and rows have the same bits in blocks of
// any size, that is in all kernels.
func TestProducts(t *testing.T) {
	dev := device(t)
	for i, typ := range types {
		if testing.Short() && i%5 != 3 {
			continue
		}
		for _, shape := range [][2]int{{67, 3}, {1030, 1}, {130, 9}, {33, 1}, {1, 1}} {
			rows, blocks := shape[0], shape[1]
			if testing.Short() && rows == 130 {
				break
			}
			cols := max(typ.BlockSize(), 32) * blocks
			if typ.BlockSize() == 1 {
				cols = cols - 32 + 29
			}
			if typ.BlockSize() == 256 && blocks == 9 {
				cols = 256 * 5
			}
			t.Run(fmt.Sprintf("%s/%d×%d", typ, rows, cols), func(t *testing.T) {
				const n = 37
				var s single
				in, out := s.buffer(cols+3).Cols(3*(rows%2), cols), s.buffer(rows+1).Cols(1, rows)
				op := program.MatMul{W: weight(t, typ, rows, cols, 2), In: in, Out: out}
				if rows > 1 {
					op.Bias = random(9, rows, 1)
				}
				s.Ops = []program.Op{op}
				s.in(in)
				s.out(out)
				input := [][]float32{random(5, n*cols, 1)}
				want, _ := s.compare(t, dev, input, n, []int{n}, options(n))
				// Sums cancel, so the difference is judged beside what is summed.
				w, err := op.W.Vector()
				if err != nil {
					t.Fatal(err)
				}
				for i, x := range s.reference(t, input, n, unit.F32) {
					r, o, sum := i/rows, i%rows, 1.0
					for c, f := range input[0][r*cols : (r+1)*cols] {
						sum += math.Abs(float64(f) * float64(w[o*cols+c]))
					}
					if d := math.Abs(float64(x) - float64(want[i])); !(d <= 1e-6*sum) {
						t.Fatalf("row %d, column %d is %g, not %g; the terms' magnitudes sum to %g", r, o, want[i], x, sum)
					}
				}
				for _, sizes := range [][]int{{1}, {2, 3}, {5, 8, 4}, {33}} {
					for _, lanes := range []int{0, 4, 8} {
						if lanes > dev.Limits().Lanes {
							continue
						}
						got, _ := s.compare(t, limited{dev, func(l *compute.Limits) { l.Lanes = lanes }}, input, n, sizes, options(n))
						for i, x := range want {
							if math.Float32bits(x) != math.Float32bits(got[i]) {
								t.Fatalf("blocks of %v, %d lanes: row %d, column %d is %g, not %g", sizes, lanes, i/rows, i%rows, got[i], x)
							}
						}
					}
				}
			})
		}
	}
}

// Matrices larger than a binding, and products of more workgroups than a
// dispatch may have, are cut into pieces without a change.
func TestPieces(t *testing.T) {
	dev := device(t)
	const rows, cols, n = 300, 64, 9
	var s single
	in, out := s.buffer(cols), s.buffer(rows)
	s.Ops = []program.Op{program.MatMul{W: weight(t, quant.Q4_0, rows, cols, 2), In: in, Out: out, Bias: random(1, rows, 1)}}
	s.in(in)
	s.out(out)
	input := [][]float32{random(5, n*cols, 1)}
	want, _ := s.compare(t, dev, input, n, []int{n}, options(n))
	for _, alter := range []func(*compute.Limits){
		func(l *compute.Limits) { l.Binding = 4096 },
		func(l *compute.Limits) { l.Groups[0] = 5 },
		func(l *compute.Limits) { l.Lanes, l.Groups[0] = 0, 2 },
	} {
		for _, size := range []int{1, n} {
			got, _ := s.compare(t, limited{dev, alter}, input, n, []int{size}, options(n))
			if !slices.Equal(got, want) {
				t.Error("the results differ")
			}
		}
	}
}

// Operations value by value agree with the evaluator on ordinary and extreme
// values.
func TestMaps(t *testing.T) {
	dev := device(t)
	const n, width = 19, 101
	for name, make := range map[string]func(a, b, out program.View) program.Op{
		"add":  func(a, b, out program.View) program.Op { return program.Add{A: a, B: b, Out: out} },
		"gelu": func(a, b, out program.View) program.Op { return program.Gated{Gate: a, Up: b, Out: out} },
		"silu": func(a, b, out program.View) program.Op {
			return program.Gated{Act: program.SiLU, Gate: a, Up: b, Out: out}
		},
		"scale":   func(a, _, _ program.View) program.Op { return program.Scale{X: a, Factor: 0.3} },
		"softcap": func(a, _, _ program.View) program.Op { return program.Softcap{X: a, Cap: 30} },
	} {
		t.Run(name, func(t *testing.T) {
			var s single
			a, b, out := s.buffer(width+5).Cols(5, width), s.buffer(width), s.buffer(width+2).Cols(1, width)
			op := make(a, b, out)
			if _, ok := op.(program.Scale); ok {
				out = a
			}
			if _, ok := op.(program.Softcap); ok {
				out = a
			}
			s.Ops = []program.Op{op}
			s.in(a)
			s.in(b)
			s.out(out)
			_, worst := s.compare(t, dev, [][]float32{extreme(random(1, n*width, 3)), random(2, n*width, 1)}, n, []int{7}, options(16))
			if worst > 5e-7 {
				t.Errorf("largest difference %g", worst)
			}
		})
	}
}

func TestRMSNorm(t *testing.T) {
	dev := device(t)
	const n = 9
	for _, shape := range [][2]int{{1, 1}, {1, 5}, {3, 64}, {2, 200}, {1, 1537}} {
		groups, group := shape[0], shape[1]
		for _, w := range [][]float32{nil, random(4, group, 1)} {
			t.Run(fmt.Sprintf("%d×%d/%t", groups, group, w != nil), func(t *testing.T) {
				var s single
				in, out := s.buffer(groups*group), s.buffer(groups*group+2).Cols(2, groups*group)
				s.Ops = []program.Op{program.RMSNorm{In: in, Out: out, Group: group, Weight: w, Eps: 1e-6}}
				s.in(in)
				s.out(out)
				x := random(3, n*groups*group, 2)
				clear(x[:groups*group]) // a row of zeros
				for i := range group {
					x[groups*group+i] *= 1e10
				}
				if _, worst := s.compare(t, dev, [][]float32{x}, n, []int{4}, options(16)); worst > 1e-6 {
					t.Errorf("largest difference %g", worst)
				}
			})
		}
	}
}

func TestRope(t *testing.T) {
	dev := device(t)
	const n, context = 20, 33000
	for _, interleaved := range []bool{false, true} {
		for _, pairs := range []int{1, 9, 16} {
			t.Run(fmt.Sprintf("%t/%d", interleaved, pairs), func(t *testing.T) {
				var s single
				x := s.buffer(100).Cols(3, 3*32)
				op := program.Rope{X: x, HeadDim: 32, Magnitude: 1.25, Interleaved: interleaved}
				for i := range pairs {
					op.Freqs = append(op.Freqs, math.Pow(1e4, -float64(i)/16))
				}
				s.Ops = []program.Op{op}
				s.in(x)
				s.out(x)
				o := options(n)
				o.Context = context
				b := newBench(t, dev, &s.Program, o)
				defer b.close()
				in := random(7, n*x.Width, 1)
				for _, pos := range []int{0, 250, 4090, context - n} {
					part := unit.Part{Pos: pos, Tokens: make([]int32, n),
						In: []unit.Rows{{Data: in, Stride: x.Width}}, Out: []unit.Rows{{Data: make([]float32, len(in)), Stride: x.Width}}}
					b.run(&unit.Task{Parts: []unit.Part{part}})
					for i := range in {
						r, c := i/x.Width, i%x.Width
						want := rotated(in[r*x.Width:(r+1)*x.Width], c, pos+r, op)
						if d := math.Abs(want - float64(part.Out[0].Data[i])); d > 2e-6 {
							t.Fatalf("position %d, column %d is %g, not %g", pos+r, c, part.Out[0].Data[i], want)
						}
					}
				}
			})
		}
	}
}

// rotated is column c of a row at a position, in double precision.
func rotated(row []float32, c, pos int, op program.Rope) float64 {
	h, i := c/op.HeadDim*op.HeadDim, c%op.HeadDim
	pair, first, other := i%(op.HeadDim/2), i < op.HeadDim/2, (i+op.HeadDim/2)%op.HeadDim
	if op.Interleaved {
		pair, first, other = i/2, i%2 == 0, i^1
	}
	x, y := float64(row[c]), float64(row[h+other])
	if pair >= len(op.Freqs) {
		return x
	}
	sin, cos := math.Sincos(float64(pos) * op.Freqs[pair])
	if first {
		return (x*cos - y*sin) * float64(op.Magnitude)
	}
	return (x*cos + y*sin) * float64(op.Magnitude)
}

// Attention over a cache agrees with the evaluator, and rows have the same bits
// in blocks of any size.
func TestAttention(t *testing.T) {
	dev := device(t)
	for _, c := range []struct {
		heads, kvHeads, key, value, window int
		kv                                 unit.KV
	}{
		{4, 2, 64, 64, 0, unit.F32},
		{4, 2, 64, 64, 12, unit.F32},
		{4, 2, 64, 64, 70, unit.F16},
		{3, 1, 24, 40, 5, unit.F16},
		{3, 3, 10, 7, 0, unit.F16},
		{8, 1, 256, 256, 33, unit.F32},
		{12, 1, 32, 32, 0, unit.F32},
		{2, 2, 512, 512, 0, unit.F16},
		{10, 2, 512, 96, 66, unit.F32},
		{4, 2, 64, 96, 70, unit.Q8_0},
		{3, 3, 32, 32, 0, unit.Q8_0},
	} {
		t.Run(fmt.Sprintf("%d of %d, %d+%d, %d, %s", c.heads, c.kvHeads, c.key, c.value, c.window, c.kv), func(t *testing.T) {
			const n = 97
			var s single
			q, k, v := s.buffer(c.heads*c.key), s.buffer(c.kvHeads*c.key+1).Cols(1, c.kvHeads*c.key), s.buffer(c.kvHeads*c.value)
			out := s.buffer(c.heads*c.value+3).Cols(2, c.heads*c.value)
			s.Caches = []program.Cache{{KVHeads: c.kvHeads, KeyDim: c.key, ValueDim: c.value, Window: c.window, Own: true}}
			s.Ops = []program.Op{program.Store{K: k, V: v}, program.Attention{Q: q, Out: out, Heads: c.heads, Scale: float32(1.5 / math.Sqrt(float64(c.key)))}}
			var inputs [][]float32
			for i, view := range []program.View{q, k, v} {
				s.in(view)
				inputs = append(inputs, random(uint64(i), n*view.Width, 1))
			}
			s.out(out)
			var want []float32
			for i, sizes := range [][]int{{32}, {1}, {3, 5}, {16}} {
				o := unit.Options{Slots: 2, Context: n, Block: 32, KV: c.kv}
				got, worst := s.compare(t, dev, inputs, n, sizes, o)
				if worst > 5e-6 {
					t.Errorf("blocks of %v: largest difference %g", sizes, worst)
				}
				if i == 0 {
					want = got
				}
				for j, x := range want {
					if math.Float32bits(x) != math.Float32bits(got[j]) {
						t.Fatalf("blocks of %v: position %d, column %d is %g, not %g", sizes, j/out.Width, j%out.Width, got[j], x)
					}
				}
			}
		})
	}
}

// Rows of the cache are rounded as package quant does it.
func TestStore(t *testing.T) {
	dev := device(t)
	var s single
	const width, n = 96, 5
	k, v := s.buffer(width), s.buffer(32)
	s.Caches = []program.Cache{{KVHeads: 1, KeyDim: width, ValueDim: 32, Own: true}}
	s.Ops = []program.Op{program.Store{K: k, V: v}}
	s.in(k)
	s.in(v)
	x := random(4, n*width, 1)
	for i := range 240 { // around all powers of two, with ties
		x[i] = float32(math.Ldexp(1+float64(i%7)/4096, i%60-40))
	}
	copy(x[250:], []float32{65504, 65519.99, 65520, -1e10, float32(math.Inf(-1)), 6e-8, 2.9e-8, 2.98e-8, 3e-8, 1e-40, float32(math.Copysign(0, -1)), float32(math.NaN())})
	for _, kv := range unit.KVs() {
		if kv == unit.Q8_0 {
			for i, f := range x { // what is not finite has no meaning in a block
				if math.Abs(float64(f)) > 65000 || f != f {
					x[i] = 1
				}
			}
		}
		b := newBench(t, dev, &s.Program, unit.Options{Slots: 2, Context: 64, Block: n, KV: kv})
		part := unit.Part{Slot: 1, Pos: 7, Tokens: make([]int32, n), In: []unit.Rows{{Data: x, Stride: width}, {Data: make([]float32, 32*n), Stride: 32}}}
		b.run(&unit.Task{Parts: []unit.Part{part}})
		got := make([]byte, b.caches[0].k.Size)
		if err := dev.Transfer(compute.Move{At: b.caches[0].k, Data: got, Read: true}); err != nil {
			t.Fatal(err)
		}
		rowBytes := int(kv.Size(width))
		want := make([]byte, rowBytes)
		for r := range n {
			if err := kv.Type().Quantize(want, x[r*width:(r+1)*width]); err != nil {
				t.Fatal(err)
			}
			if at := 4 * (64 + 7 + r) * words(kv, width); !bytes.Equal(got[at:at+rowBytes], want) {
				t.Errorf("%s: row %d is stored as %x, not %x", kv, r, got[at:at+rowBytes], want)
			}
		}
		b.close()
	}
}
