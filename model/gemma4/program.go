package gemma4

import (
	"math"

	"github.com/tandemrun/tandem/model"
	"github.com/tandemrun/tandem/program"
)

// Names of the per-layer embeddings in a handoff. Columns of the first are the
// layers before the last one with a cache, for all rows; columns of the second
// are the layers from it on, for the wanted rows, the only ones that get there.
const (
	pleAll    = "ple"
	pleWanted = "ple_wanted"
)

func (a *arch) build(first, last int) (*program.Program, error) {
	b := writer{a, model.NewBuilder(first, last)}
	rows := program.All
	if first > a.lastOwn {
		rows = program.Wanted
	}
	h := b.Buffer("h", a.hidden, rows)
	if first == 0 {
		b.Do(program.Embed{Table: a.embed, Out: h, Scale: b.embedScale()})
	} else {
		b.Input(program.Hidden(first), 0, h)
	}
	ple := b.perLayer(h)
	for i := first; i < last; i++ {
		h = b.layer(i, h, ple(i))
	}
	if last < len(a.layers) {
		b.Output(program.Hidden(last), 0, h)
		return b.P, nil
	}
	logits := b.Buffer("logits", a.vocab, program.Wanted)
	b.norm(h, h, a.outNorm)
	b.Do(program.MatMul{W: a.head, In: h, Out: logits})
	if a.softcap > 0 {
		b.Do(program.Softcap{X: logits, Cap: a.softcap})
	}
	b.P.Logits = logits.Buf
	return b.P, nil
}

type writer struct {
	*arch
	*model.Builder
}

func (b writer) embedScale() float32 { return float32(math.Sqrt(float64(b.hidden))) }

func (b writer) norm(in, out program.View, w []float32) {
	b.Do(program.RMSNorm{In: in, Out: out, Group: in.Width, Weight: w, Eps: b.eps})
}

// perLayer makes the per-layer embeddings of all layers, or takes those of the
// program's own layers from the handoff, and returns where a layer's are.
func (b writer) perLayer(h program.View) func(layer int) program.View {
	if b.ple == 0 {
		return func(int) program.View { return program.View{} }
	}
	n, first, last := len(b.layers), b.P.First, b.P.Last
	var all, wanted program.View // of layers [allFrom, ...) and [wantedFrom, ...)
	allFrom, wantedFrom := first, max(first, b.lastOwn)
	if first == 0 {
		if b.lastOwn > 0 {
			all = b.Buffer("ple", b.lastOwn*b.ple, program.All)
			b.makePerLayer(h, all, 0)
		}
		// The wanted rows are looked up again: layer 0 overwrites h.
		hw := b.Buffer("h0", b.hidden, program.Wanted)
		b.Do(program.Embed{Table: b.embed, Out: hw, Scale: b.embedScale()})
		wanted = b.Buffer("ple", (n-b.lastOwn)*b.ple, program.Wanted)
		b.makePerLayer(hw, wanted, b.lastOwn)
		if last < b.lastOwn {
			b.Output(pleAll, last*b.ple, all.Cols(last*b.ple, (b.lastOwn-last)*b.ple))
		}
		if from := max(last, b.lastOwn); from < n {
			b.Output(pleWanted, (from-b.lastOwn)*b.ple, wanted.Cols((from-b.lastOwn)*b.ple, (n-from)*b.ple))
		}
	} else {
		if to := min(last, b.lastOwn); first < to {
			all = b.Buffer("ple", (to-first)*b.ple, program.All)
			b.Input(pleAll, first*b.ple, all)
		}
		if wantedFrom < last {
			wanted = b.Buffer("ple", (last-wantedFrom)*b.ple, program.Wanted)
			b.Input(pleWanted, (wantedFrom-b.lastOwn)*b.ple, wanted)
		}
	}
	return func(layer int) program.View {
		if layer < b.lastOwn {
			return all.Cols((layer-allFrom)*b.ple, b.ple)
		}
		return wanted.Cols((layer-wantedFrom)*b.ple, b.ple)
	}
}

// makePerLayer computes the embeddings of the layers from first on that out
// has room for:
//
//	(RMSNorm(Wx · hidden^-0.5) + sqrt(ple) · table[token]) · 2^-0.5
func (b writer) makePerLayer(x, out program.View, first int) {
	lo := first * b.ple
	row := b.Buffer("ple_row", out.Width, b.P.Buffers[out.Buf].Rows)
	b.Do(
		program.MatMul{W: b.pleProj.Slice(lo, lo+out.Width), In: x, Out: out},
		program.Scale{X: out, Factor: float32(1 / math.Sqrt(float64(b.hidden)))},
		program.RMSNorm{In: out, Out: out, Group: b.ple, Weight: b.pleNorm, Eps: b.eps},
		program.Embed{Table: b.pleTable, Col: lo, Out: row, Scale: float32(math.Sqrt(float64(b.ple)))},
		program.Add{A: out, B: row, Out: out},
		program.Scale{X: out, Factor: float32(math.Sqrt(0.5))},
	)
}

// layer writes layer i on the state h and returns where the next state is.
func (b writer) layer(i int, h, ple program.View) program.View {
	l, t := b.layers[i], b.blocks[i]
	rows := b.P.Buffers[h.Buf].Rows
	cache := b.Cache(b.layers, l.Owner)
	rope := program.Rope{HeadDim: l.KeyDim, Freqs: b.freqs[l.Kind], Magnitude: 1}

	x := b.Buffer("x", b.hidden, rows)
	b.norm(h, x, t.attnNorm)
	q := b.Buffer("q", l.Heads*l.KeyDim, rows)
	narrow := i == b.lastOwn
	if !narrow {
		b.Do(program.MatMul{W: t.q, In: x, Out: q})
	}
	if l.Owner == i {
		k := b.Buffer("k", l.KVHeads*l.KeyDim, rows)
		v := b.Buffer("v", l.KVHeads*l.ValueDim, rows)
		rope.X = k
		b.Do(
			program.MatMul{W: t.k, In: x, Out: k},
			program.MatMul{W: t.v, In: x, Out: v},
			program.RMSNorm{In: k, Out: k, Group: l.KeyDim, Weight: t.kNorm, Eps: b.eps},
			rope,
			program.RMSNorm{In: v, Out: v, Group: l.ValueDim, Eps: b.eps},
			program.Store{K: k, V: v, Cache: cache},
		)
	}
	if narrow {
		// Nothing but this layer's keys and values is seen by later positions.
		rows = program.Wanted
		all, allX := h, x
		h, x, q = b.Buffer("h", b.hidden, rows), b.Buffer("x", b.hidden, rows), b.Buffer("q", q.Width, rows)
		b.Do(program.Narrow{In: all, Out: h}, program.Narrow{In: allX, Out: x}, program.MatMul{W: t.q, In: x, Out: q})
	}
	rope.X = q
	attn := b.Buffer("attn", l.Heads*l.ValueDim, rows)
	b.Do(
		program.RMSNorm{In: q, Out: q, Group: l.KeyDim, Weight: t.qNorm, Eps: b.eps},
		rope,
		program.Attention{Q: q, Out: attn, Cache: cache, Heads: l.Heads, Scale: 1},
		program.MatMul{W: t.o, In: attn, Out: x},
	)
	b.norm(x, x, t.postAttn)
	b.Do(program.Add{A: h, B: x, Out: h})

	gate, up := b.Buffer("gate", l.FFN, rows), b.Buffer("up", l.FFN, rows)
	b.norm(h, x, t.ffnNorm)
	b.Do(
		program.MatMul{W: t.gate, In: x, Out: gate},
		program.MatMul{W: t.up, In: x, Out: up},
		program.Gated{Act: program.GELU, Gate: gate, Up: up, Out: gate},
		program.MatMul{W: t.down, In: gate, Out: x},
	)
	b.norm(x, x, t.postFFN)
	b.Do(program.Add{A: h, B: x, Out: h})

	if b.ple > 0 {
		g := b.Buffer("g", b.ple, rows)
		b.Do(
			program.MatMul{W: t.pleGate, In: h, Out: g},
			program.Gated{Act: program.GELU, Gate: g, Up: ple, Out: g},
			program.MatMul{W: t.pleProj, In: g, Out: x},
		)
		b.norm(x, x, t.post)
		b.Do(program.Add{A: h, B: x, Out: h})
	}
	b.Do(program.Scale{X: h, Factor: t.scale})
	return h
}
