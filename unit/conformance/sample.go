package conformance

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/tandemrun/tandem/program"
	"github.com/tandemrun/tandem/quant"
	"github.com/tandemrun/tandem/unit"
)

// shape is a made-up model of three layers. The last one shares the cache of
// the first, and runs for wanted rows only.
type shape struct {
	typ         quant.Type
	kv          unit.KV
	interleaved bool
	silu        bool
	full        bool // no sliding window
	heads       int  // query heads over two KV heads; 0 is 4
	bare        bool // no norms on heads, no biases, no softcap
	fileLayout  bool
	dim         int // values of a head; 0 is 64
	window      int // of the first layer; 0 is the constant
	positions   int // 0 is the constant
}

const (
	layers = 3
	hidden = 256
	ffn    = 512
)

// source makes the same weights for the same shape and name.
type source struct {
	shape
	layer int
}

func (s source) rand(name string) *rand.Rand {
	h := uint64(s.layer)*1000003 + uint64(s.typ)
	for _, c := range name {
		h = h*31 + uint64(c)
	}
	return rand.New(rand.NewPCG(h, 7))
}

func (s source) matrix(name string, rows, cols int, size float64) program.Weight {
	r := s.rand(name)
	x := make([]float32, rows*cols)
	for i := range x {
		x[i] = float32(r.NormFloat64() * size)
	}
	n, err := s.typ.RowBytes(cols)
	if err == nil {
		data := make([]byte, int(n)*rows)
		if err = s.typ.Quantize(data, x); err == nil {
			return program.Weight{Name: fmt.Sprintf("%d.%s", s.layer, name), Type: s.typ, Rows: rows, Cols: cols, Data: data}
		}
	}
	// Validation reports a weight without data by its name.
	return program.Weight{Name: fmt.Sprintf("%s (%v)", name, err), Type: s.typ, Rows: rows, Cols: cols}
}

func (s source) vector(name string, n int) []float32 {
	r := s.rand(name)
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(1 + 0.2*r.NormFloat64())
	}
	return x
}

// program writes layers [first, last) of the shape.
func (s shape) program(first, last int) *program.Program {
	p := &program.Program{First: first, Last: last, Logits: -1}
	buffer := func(name string, width int, rows program.Rows) program.View {
		p.Buffers = append(p.Buffers, program.Buffer{Name: name, Width: width, Rows: rows})
		return program.View{Buf: len(p.Buffers) - 1, Width: width}
	}
	do := func(ops ...program.Op) { p.Ops = append(p.Ops, ops...) }
	top := source{s, -1}
	rows := program.All
	if first == layers-1 {
		rows = program.Wanted
	}
	h := buffer("h", hidden, rows)
	if first == 0 {
		more := buffer("more", hidden, rows)
		do(
			program.Embed{Table: top.matrix("table", vocab, hidden, 1), Out: h, Scale: 1.5},
			program.Embed{Table: top.matrix("more", vocab, 3*hidden, 1), Col: hidden, Out: more, Scale: 0.5},
			program.Add{A: h, B: more, Out: h},
		)
	} else {
		p.Inputs = []program.Port{{Name: program.Hidden(first), View: h, Rows: rows}}
	}
	for i := first; i < last; i++ {
		if i == layers-1 && rows == program.All {
			narrow := buffer("narrow", hidden, program.Wanted)
			do(program.Narrow{In: h, Out: narrow})
			h, rows = narrow, program.Wanted
		}
		s.layer(p, i, h, func(name string, width int) program.View { return buffer(fmt.Sprint(name, i), width, rows) })
	}
	if last < layers {
		p.Outputs = []program.Port{{Name: program.Hidden(last), View: h, Rows: rows}}
		return p
	}
	logits := buffer("logits", vocab, program.Wanted)
	do(
		program.RMSNorm{In: h, Out: h, Group: hidden, Weight: top.vector("norm", hidden), Eps: 1e-6},
		program.MatMul{W: top.matrix("head", vocab, hidden, 0.2), In: h, Out: logits},
	)
	if !s.bare {
		do(program.Softcap{X: logits, Cap: 8})
	}
	p.Logits = logits.Buf
	return p
}

func (s shape) layer(p *program.Program, i int, h program.View, buffer func(string, int) program.View) {
	do := func(ops ...program.Op) { p.Ops = append(p.Ops, ops...) }
	w := source{s, i}
	const kvHeads = 2
	dim := cmp.Or(s.dim, 64)
	heads := cmp.Or(s.heads, 4)
	owner := i
	if i == layers-1 {
		owner = 0
	}
	cache := -1
	for j, c := range p.Caches {
		if c.Layer == owner {
			cache = j
		}
	}
	if cache < 0 {
		c := program.Cache{Layer: owner, KVHeads: kvHeads, KeyDim: dim, ValueDim: dim, Own: owner == i}
		if !s.full && owner == 0 {
			c.Window = cmp.Or(s.window, window)
		}
		p.Caches = append(p.Caches, c)
		cache = len(p.Caches) - 1
	}
	rope := program.Rope{HeadDim: dim, Magnitude: 1, Interleaved: s.interleaved}
	for j := range dim/2 - 4*i {
		rope.Freqs = append(rope.Freqs, math.Pow(1e4, -2*float64(j)/float64(dim)))
	}
	bias := func(name string, n int) []float32 {
		if s.bare {
			return nil
		}
		return w.vector(name, n)
	}
	norm := func(v program.View, name string) {
		if !s.bare {
			do(program.RMSNorm{In: v, Out: v, Group: dim, Weight: w.vector(name, dim), Eps: 1e-6})
		}
	}
	x, q := buffer("x", hidden), buffer("q", heads*dim)
	small := 1 / math.Sqrt(hidden)
	do(
		program.RMSNorm{In: h, Out: x, Group: hidden, Weight: w.vector("attn_norm", hidden), Eps: 1e-6},
		program.MatMul{W: w.matrix("q", heads*dim, hidden, small), In: x, Out: q, Bias: bias("qb", heads*dim)},
	)
	if owner == i {
		kv := buffer("kv", 2*kvHeads*dim)
		k, v := kv.Cols(0, kvHeads*dim), kv.Cols(kvHeads*dim, kvHeads*dim)
		rope.X = k
		do(
			program.MatMul{W: w.matrix("k", kvHeads*dim, hidden, small), In: x, Out: k, Bias: bias("kb", kvHeads*dim)},
			program.MatMul{W: w.matrix("v", kvHeads*dim, hidden, small), In: x, Out: v},
		)
		norm(k, "k_norm")
		do(rope, program.RMSNorm{In: v, Out: v, Group: dim, Eps: 1e-6}, program.Store{K: k, V: v, Cache: cache})
	}
	norm(q, "q_norm")
	rope.X = q
	attn := buffer("attn", heads*dim)
	gate, up := buffer("gate", ffn), buffer("up", ffn)
	act := program.GELU
	if s.silu {
		act = program.SiLU
	}
	do(
		rope,
		program.Attention{Q: q, Out: attn, Cache: cache, Heads: heads, Scale: 0.125},
		program.MatMul{W: w.matrix("o", hidden, heads*dim, 1/math.Sqrt(float64(dim*4))), In: attn, Out: x},
		program.Add{A: h, B: x, Out: h},
		program.RMSNorm{In: h, Out: x, Group: hidden, Weight: w.vector("ffn_norm", hidden), Eps: 1e-6},
		program.MatMul{W: w.matrix("gate", ffn, hidden, small), In: x, Out: gate},
		program.MatMul{W: w.matrix("up", ffn, hidden, small), In: x, Out: up},
		program.Gated{Act: act, Gate: gate, Up: up, Out: gate},
		program.MatMul{W: w.matrix("down", hidden, ffn, 1/math.Sqrt(ffn)), In: gate, Out: x},
		program.Add{A: h, B: x, Out: h},
		program.Scale{X: h, Factor: 0.9},
	)
}

// runAll runs the text of slot 0 through programs, in blocks, wanting all
// logits.
func runAll(ctx context.Context, u unit.Unit, ps []*program.Program, o unit.Options, size int) (logits []float32, err error) {
	return runText(ctx, u, ps, o, text(0), size)
}

func runText(ctx context.Context, u unit.Unit, ps []*program.Program, o unit.Options, tokens []int32, size int) (logits []float32, err error) {
	var cs []unit.Chunk
	for i, p := range ps {
		// The second chunk keeps a copy of the cache it does not own.
		c, err := u.Compile(ctx, p, o)
		if err != nil {
			return nil, fmt.Errorf("compiling program %d: %w", i, err)
		}
		defer c.Close()
		cs = append(cs, c)
	}
	for at := 0; at < len(tokens); at += size {
		n := min(size, len(tokens)-at)
		part := unit.Part{Pos: at, Tokens: tokens[at : at+n]}
		for i := range n {
			part.Wanted = append(part.Wanted, i)
		}
		var rows []unit.Rows
		for i, p := range ps {
			part.In, part.Out, part.Logits = rows, nil, nil
			rows = nil
			for range p.Outputs {
				rows = append(rows, unit.Rows{Data: make([]float32, n*hidden), Stride: hidden})
			}
			part.Out = rows
			if p.Logits >= 0 {
				part.Logits = make([]float32, n*vocab)
			}
			for _, x := range p.Caches {
				if x.Own || i == 0 {
					continue
				}
				k, v := make([]byte, o.KV.Size(n*x.KeyWidth())), make([]byte, o.KV.Size(n*x.ValueWidth()))
				if err := cs[0].ReadKV(x.Layer, 0, at, n, k, v); err != nil {
					return nil, err
				}
				if err := cs[i].WriteKV(x.Layer, 0, at, n, k, v); err != nil {
					return nil, err
				}
			}
			if err := cs[i].Run(ctx, &unit.Task{Parts: []unit.Part{part}}); err != nil {
				return nil, err
			}
		}
		logits = append(logits, part.Logits...)
	}
	return logits, nil
}
