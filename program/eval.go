package program

import (
	"fmt"
	"math"

	"github.com/tandemrun/tandem/quant"
)

// A Block is what a program runs on: the tokens at positions
// [Pos, Pos+len(Tokens)) of one sequence. Wanted lists the rows of the block,
// ascending, whose logits are wanted; it may be empty.
type Block struct {
	Tokens []int32
	Pos    int
	Wanted []int
}

// Matrix is a row-major float32 matrix.
type Matrix struct {
	Width int
	Data  []float32
}

// Row returns row r of m, sharing its data.
func (m Matrix) Row(r int) []float32 { return m.Data[r*m.Width : (r+1)*m.Width] }

// Rows is the number of rows of m.
func (m Matrix) Rows() int {
	if m.Width == 0 {
		return 0
	}
	return len(m.Data) / m.Width
}

// An Evaluator holds the caches of one sequence and the float32 form of the
// weights it has met. Its zero value is ready to use. It is not safe for
// concurrent use.
type Evaluator struct {
	// KV is the type that cache rows are rounded to when they are written; the
	// zero value F32 keeps them. Heads are whole blocks of it.
	KV quant.Type

	keys, values map[int][][]float32 // layer → position → row
	weights      map[string][]float32
	handoff      map[string]Matrix
	handoffCol   map[string]int
}

// Run runs the programs, which together are the layers of a model in order, on
// a block that continues the sequence. It returns the logits, one row a wanted
// position, or an empty matrix when the last program has no head.
func (e *Evaluator) Run(b Block, programs ...*Program) (Matrix, error) {
	if e.keys == nil {
		e.keys, e.values = map[int][][]float32{}, map[int][][]float32{}
		e.weights = map[string][]float32{}
	}
	e.handoff, e.handoffCol = map[string]Matrix{}, map[string]int{}
	var logits Matrix
	for _, p := range programs {
		if err := p.Validate(); err != nil {
			return Matrix{}, err
		}
		m, err := e.run(p, b)
		if err != nil {
			return Matrix{}, fmt.Errorf("evaluating layers %d..%d: %w", p.First, p.Last-1, err)
		}
		logits = m
	}
	return logits, nil
}

// Port returns what the last Run handed over under a name, such as
// [Hidden](3): one row for each row of the port's class.
func (e *Evaluator) Port(name string) (Matrix, bool) {
	m, ok := e.handoff[name]
	return m, ok
}

// Cache returns the keys and the values of a layer, one row a position, as
// they are kept. They are the evaluator's own.
func (e *Evaluator) Cache(layer int) (keys, values [][]float32) {
	return e.keys[layer], e.values[layer]
}

func (e *Evaluator) run(p *Program, b Block) (Matrix, error) {
	bufs := make([]Matrix, len(p.Buffers))
	for i, x := range p.Buffers {
		n := len(b.Tokens)
		if x.Rows == Wanted {
			n = len(b.Wanted)
		}
		bufs[i] = Matrix{x.Width, make([]float32, n*x.Width)}
	}
	f := frame{e, p, b, bufs}
	for _, in := range p.Inputs {
		src, ok := e.handoff[in.Name]
		if !ok {
			return Matrix{}, fmt.Errorf("nothing was handed over as %s", in.Name)
		}
		lo := in.Col - e.handoffCol[in.Name]
		for r := range f.rows(in.View) {
			copy(f.row(in.View, r), src.Row(r)[lo:])
		}
	}
	for _, op := range p.Ops {
		if err := f.do(op); err != nil {
			return Matrix{}, fmt.Errorf("%s: %w", op.Name(), err)
		}
	}
	for _, out := range p.Outputs {
		m := Matrix{out.View.Width, nil}
		for r := range f.rows(out.View) {
			m.Data = append(m.Data, f.row(out.View, r)...)
		}
		e.handoff[out.Name], e.handoffCol[out.Name] = m, out.Col
	}
	if p.Logits < 0 {
		return Matrix{}, nil
	}
	return bufs[p.Logits], nil
}

// frame is one run of one program.
type frame struct {
	e    *Evaluator
	p    *Program
	b    Block
	bufs []Matrix
}

func (f *frame) rows(v View) int { return f.bufs[v.Buf].Rows() }

func (f *frame) row(v View, r int) []float32 {
	return f.bufs[v.Buf].Row(r)[v.Col : v.Col+v.Width]
}

// at returns the index in the block of row r of the view's class.
func (f *frame) at(v View, r int) int {
	if f.p.Buffers[v.Buf].Rows == Wanted {
		return f.b.Wanted[r]
	}
	return r
}

// weight returns w as float32, converting it at first use.
func (f *frame) weight(w Weight) ([]float32, error) {
	if x, ok := f.e.weights[w.Name]; ok {
		return x, nil
	}
	x, err := w.Vector()
	if err == nil {
		f.e.weights[w.Name] = x
	}
	return x, err
}

func (f *frame) do(op Op) error {
	switch op := op.(type) {
	case Embed:
		w, err := f.weight(op.Table)
		if err != nil {
			return err
		}
		for r := range f.rows(op.Out) {
			t := int(f.b.Tokens[f.at(op.Out, r)])
			if t < 0 || t >= op.Table.Rows {
				return fmt.Errorf("token %d is not in the table %s of %d", t, op.Table.Name, op.Table.Rows)
			}
			src := w[t*op.Table.Cols+op.Col:]
			for i, out := 0, f.row(op.Out, r); i < len(out); i++ {
				out[i] = src[i] * op.Scale
			}
		}
	case MatMul:
		w, err := f.weight(op.W)
		if err != nil {
			return err
		}
		for r := range f.rows(op.In) {
			in, out := f.row(op.In, r), f.row(op.Out, r)
			for o := range out {
				out[o] = float32(dot(in, w[o*op.W.Cols:]))
				if op.Bias != nil {
					out[o] += op.Bias[o]
				}
			}
		}
	case RMSNorm:
		for r := range f.rows(op.In) {
			in, out := f.row(op.In, r), f.row(op.Out, r)
			for g := 0; g < len(in); g += op.Group {
				rmsNorm(out[g:g+op.Group], in[g:g+op.Group], op.Weight, op.Eps)
			}
		}
	case Rope:
		for r := range f.rows(op.X) {
			pos := float64(f.b.Pos + f.at(op.X, r))
			x := f.row(op.X, r)
			for h := 0; h < len(x); h += op.HeadDim {
				rotate(x[h:h+op.HeadDim], pos, op)
			}
		}
	case Store:
		c, block := f.p.Caches[op.Cache], f.e.KV.BlockSize()
		if block == 0 || c.KeyDim%block != 0 || c.ValueDim%block != 0 {
			return fmt.Errorf("the cache of layer %d, with heads of %d keys and %d values, cannot have the type %v", c.Layer, c.KeyDim, c.ValueDim, f.e.KV)
		}
		for r := range f.b.Tokens {
			k, err := f.e.round(f.row(op.K, r))
			if err != nil {
				return err
			}
			v, err := f.e.round(f.row(op.V, r))
			if err != nil {
				return err
			}
			f.e.keys[c.Layer] = append(f.e.keys[c.Layer][:f.b.Pos+r], k)
			f.e.values[c.Layer] = append(f.e.values[c.Layer][:f.b.Pos+r], v)
		}
	case Attention:
		c := f.p.Caches[op.Cache]
		keys, values := f.e.keys[c.Layer], f.e.values[c.Layer]
		for r := range f.rows(op.Q) {
			pos := f.b.Pos + f.at(op.Q, r)
			if pos >= len(keys) {
				return fmt.Errorf("the cache of layer %d ends at position %d, before %d", c.Layer, len(keys), pos)
			}
			first := 0
			if c.Window > 0 {
				first = max(0, pos-c.Window+1)
			}
			q, out := f.row(op.Q, r), f.row(op.Out, r)
			for h := range op.Heads {
				kv := h / (op.Heads / c.KVHeads)
				attend(out[h*c.ValueDim:(h+1)*c.ValueDim], q[h*c.KeyDim:(h+1)*c.KeyDim],
					keys[first:pos+1], values[first:pos+1], kv*c.KeyDim, kv*c.ValueDim, op.Scale)
			}
		}
	case Gated:
		for r := range f.rows(op.Out) {
			g, u, out := f.row(op.Gate, r), f.row(op.Up, r), f.row(op.Out, r)
			for i := range out {
				out[i] = float32(activate(op.Act, float64(g[i])) * float64(u[i]))
			}
		}
	case Add:
		for r := range f.rows(op.Out) {
			a, b, out := f.row(op.A, r), f.row(op.B, r), f.row(op.Out, r)
			for i := range out {
				out[i] = a[i] + b[i]
			}
		}
	case Scale:
		for r := range f.rows(op.X) {
			for i, x := 0, f.row(op.X, r); i < len(x); i++ {
				x[i] *= op.Factor
			}
		}
	case Softcap:
		for r := range f.rows(op.X) {
			for i, x := 0, f.row(op.X, r); i < len(x); i++ {
				x[i] = op.Cap * float32(math.Tanh(float64(x[i]/op.Cap)))
			}
		}
	case Narrow:
		for r, from := range f.b.Wanted {
			copy(f.row(op.Out, r), f.row(op.In, from))
		}
	}
	return nil
}

// round returns a row as a cache gives it back.
func (e *Evaluator) round(row []float32) ([]float32, error) {
	n, err := e.KV.RowBytes(len(row))
	if err != nil {
		return nil, err
	}
	data, out := make([]byte, n), make([]float32, len(row))
	if err := e.KV.Quantize(data, row); err != nil {
		return nil, err
	}
	return out, e.KV.Dequantize(out, data)
}

func dot(a, b []float32) float64 {
	var s float64
	for i, x := range a {
		s += float64(x) * float64(b[i])
	}
	return s
}

func rmsNorm(out, in, w []float32, eps float32) {
	scale := 1 / math.Sqrt(dot(in, in)/float64(len(in))+float64(eps))
	for i, x := range in {
		y := float32(float64(x) * scale)
		if w != nil {
			y *= w[i]
		}
		out[i] = y
	}
}

func rotate(x []float32, pos float64, op Rope) {
	for i, freq := range op.Freqs {
		a, b := i, i+len(x)/2
		if op.Interleaved {
			a, b = 2*i, 2*i+1
		}
		sin, cos := math.Sincos(pos * freq)
		s, c := float32(sin)*op.Magnitude, float32(cos)*op.Magnitude
		x[a], x[b] = x[a]*c-x[b]*s, x[b]*c+x[a]*s
	}
}

// attend is softmax(scale · q·kᵀ) · v for one head; ko and vo are the columns
// at which the head's part of a cache row begins.
func attend(out, q []float32, keys, values [][]float32, ko, vo int, scale float32) {
	scores := make([]float64, len(keys))
	best := math.Inf(-1)
	for i, k := range keys {
		scores[i] = float64(scale) * dot(q, k[ko:])
		best = max(best, scores[i])
	}
	var sum float64
	acc := make([]float64, len(out))
	for i, v := range values {
		w := math.Exp(scores[i] - best)
		sum += w
		for j := range acc {
			acc[j] += w * float64(v[vo+j])
		}
	}
	for j := range out {
		out[j] = float32(acc[j] / sum)
	}
}

func activate(a Activation, x float64) float64 {
	if a == SiLU {
		return x / (1 + math.Exp(-x))
	}
	return 0.5 * x * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
}
