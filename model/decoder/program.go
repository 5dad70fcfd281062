package decoder

import (
	"math"

	"github.com/tandemrun/tandem/model"
	"github.com/tandemrun/tandem/program"
)

func (a *arch) build(first, last int) (*program.Program, error) {
	b := writer{a, model.NewBuilder(first, last)}
	h := b.Buffer("h", a.hidden, program.All)
	if first == 0 {
		scale := float32(1)
		if a.ScaleEmbedding {
			scale = float32(math.Sqrt(float64(a.hidden)))
		}
		b.Do(program.Embed{Table: a.embed, Out: h, Scale: scale})
	} else {
		b.Input(program.Hidden(first), 0, h)
	}
	for i := first; i < last; i++ {
		h = b.layer(i, h)
	}
	if last < len(a.layers) {
		b.Output(program.Hidden(last), 0, h)
		return b.P, nil
	}
	logits := b.Buffer("logits", a.vocab, program.Wanted)
	b.norm(h, h, a.outNorm)
	b.product(linear{a.head, a.headBias}, h, logits)
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

// norm normalises each group of len(w) columns; without w it does nothing.
func (b writer) norm(in, out program.View, w []float32) {
	if w != nil {
		b.Do(program.RMSNorm{In: in, Out: out, Group: len(w), Weight: w, Eps: b.eps})
	}
}

func (b writer) product(l linear, in, out program.View) {
	b.Do(program.MatMul{W: l.w, In: in, Out: out, Bias: l.bias})
}

// rotate normalises the heads in x, if the architecture does, and rotates them.
func (b writer) rotate(l model.Layer, x program.View, norm []float32) {
	b.norm(x, x, norm)
	b.Do(program.Rope{X: x, HeadDim: l.KeyDim, Freqs: b.rope[l.Kind].freqs, Magnitude: 1, Interleaved: b.Interleaved})
}

// layer writes layer i on the state h and returns where the next state is.
func (b writer) layer(i int, h program.View) program.View {
	l, t := b.layers[i], b.blocks[i]
	cache := b.Cache(b.layers, i)
	x := b.Buffer("x", b.hidden, program.All)
	b.norm(h, x, t.attnNorm)

	rows, narrow := program.All, i == len(b.layers)-1
	if narrow {
		rows = program.Wanted
	}
	q := b.Buffer("q", l.Heads*l.KeyDim, rows)
	k := b.Buffer("k", l.KVHeads*l.KeyDim, program.All)
	v := b.Buffer("v", l.KVHeads*l.ValueDim, program.All)
	if !narrow {
		b.product(t.q, x, q)
	}
	b.product(t.k, x, k)
	b.product(t.v, x, v)
	b.rotate(l, k, t.kNorm)
	b.Do(program.Store{K: k, V: v, Cache: cache})
	if narrow {
		// Nothing but this layer's keys and values is seen by later positions.
		all, allX := h, x
		h, x = b.Buffer("h", b.hidden, rows), b.Buffer("x", b.hidden, rows)
		b.Do(program.Narrow{In: all, Out: h}, program.Narrow{In: allX, Out: x})
		b.product(t.q, x, q)
	}
	attn := b.Buffer("attn", l.Heads*l.ValueDim, rows)
	b.rotate(l, q, t.qNorm)
	b.Do(program.Attention{Q: q, Out: attn, Cache: cache, Heads: l.Heads, Scale: b.scale})
	b.product(t.o, attn, x)
	b.norm(x, x, t.postAttn)
	b.Do(program.Add{A: h, B: x, Out: h})

	gate, up := b.Buffer("gate", l.FFN, rows), b.Buffer("up", l.FFN, rows)
	b.norm(h, x, t.ffnNorm)
	b.product(t.gate, x, gate)
	b.product(t.up, x, up)
	b.Do(program.Gated{Act: b.Activation, Gate: gate, Up: up, Out: gate})
	b.product(t.down, gate, x)
	b.norm(x, x, t.postFFN)
	b.Do(program.Add{A: h, B: x, Out: h})
	return h
}
