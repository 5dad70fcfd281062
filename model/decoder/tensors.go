package decoder

import (
	"fmt"
	"math"

	"github.com/tandemrun/tandem/model"
)

func (a *arch) readTensors(r *model.Reader) {
	h := a.hidden
	a.embed = r.Matrix("token_embd.weight", 0, h)
	if r.Err != nil {
		return
	}
	a.vocab = a.embed.Rows
	if r.Has("vocab_size") {
		if n := r.Int("vocab_size", 1); n != a.vocab {
			r.Fail("vocab_size", "%d tokens, but token_embd.weight has %d rows", n, a.vocab)
		}
	}
	if a.head = a.embed; r.HasTensor("output.weight") {
		a.head = r.Matrix("output.weight", a.vocab, h)
	}
	a.headBias = bias(r, "output.bias", a.vocab, false)
	a.outNorm = r.Vector("output_norm.weight", h)
	for i, l := range a.layers {
		b := a.readBlock(r, i, l)
		if r.Err != nil {
			return
		}
		a.blocks = append(a.blocks, b)
	}
	// After the weights, so that a head's size has been checked against them.
	a.makeFreqs(r)
	r.AllRead()
}

func (a *arch) readBlock(r *model.Reader, i int, l model.Layer) block {
	h, q, k, v := a.hidden, l.Heads*l.KeyDim, l.KVHeads*l.KeyDim, l.KVHeads*l.ValueDim
	name := func(s string) string { return fmt.Sprintf("blk.%d.%s", i, s) }
	read := func(s string, rows, cols int, biased bool) linear {
		return linear{r.Matrix(name(s+".weight"), rows, cols), bias(r, name(s+".bias"), rows, biased)}
	}
	norm := func(s string, n int) []float32 { return r.Vector(name(s+".weight"), n) }
	b := block{
		attnNorm: norm("attn_norm", h),
		q:        read("attn_q", q, h, a.QKVBias),
		k:        read("attn_k", k, h, a.QKVBias),
		v:        read("attn_v", v, h, a.QKVBias),
		o:        read("attn_output", h, l.Heads*l.ValueDim, false),
		ffnNorm:  norm("ffn_norm", h),
		gate:     read("ffn_gate", l.FFN, h, false),
		up:       read("ffn_up", l.FFN, h, false),
		down:     read("ffn_down", h, l.FFN, false),
	}
	if a.HeadNorm {
		b.qNorm, b.kNorm = norm("attn_q_norm", l.KeyDim), norm("attn_k_norm", l.KeyDim)
	}
	if a.PostNorm {
		b.postAttn, b.postFFN = norm("post_attention_norm", h), norm("post_ffw_norm", h)
	}
	return b
}

// bias reads a bias of n values, or nil if there is none and none is required.
func bias(r *model.Reader, name string, n int, required bool) []float32 {
	if !required && !r.HasTensor(name) {
		return nil
	}
	return r.Vector(name, n)
}

// makeFreqs computes the RoPE frequencies. Those of full layers are divided by
// rope_freqs.weight if the file has it: the scaling of Llama 3.
func (a *arch) makeFreqs(r *model.Reader) {
	for kind := range a.rope {
		x := &a.rope[kind]
		for i := range x.dims / 2 {
			x.freqs = append(x.freqs, math.Pow(x.base, -2*float64(i)/float64(x.dims))/x.factor)
		}
	}
	const factors = "rope_freqs.weight"
	if !r.HasTensor(factors) {
		return
	}
	freqs := a.rope[model.Full].freqs
	for i, factor := range r.Vector(factors, len(freqs)) {
		if !(factor > 0) {
			r.Fail("rope.freq_base", "%s[%d] is %g, not a positive number", factors, i, factor)
			return
		}
		freqs[i] /= float64(factor)
	}
}
