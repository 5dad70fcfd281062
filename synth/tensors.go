package synth

import (
	"fmt"
	"math"

	"github.com/tandemrun/tandem/quant"
)

// tensors returns the model's tensors in the order of the file.
//
// Standard deviations are such that a product of a normalised vector has values near 1 (1/sqrt(columns)), so that
// nothing grows or fades from layer to layer, and norms have the weight 1. Where that would not give values of ordinary
// size, the comment says so.
func (s Shape) tensors(m mix) []tensor {
	w := &writer{Shape: s, mix: m}
	embed := 1 / math.Sqrt(float64(s.Hidden))
	w.matrix("token_embd", s.Vocab, s.Hidden, embed)
	if s.PLE > 0 {
		// Rows are multiplied by sqrt(PLE).
		w.matrix("per_layer_token_embd", s.Vocab, s.Layers*s.PLE, 1/math.Sqrt(float64(s.PLE)))
		w.matrix("per_layer_model_proj", s.Layers*s.PLE, s.Hidden, embed)
		w.constant("per_layer_proj_norm", s.PLE, 1)
	}
	w.constant("output_norm", s.Hidden, 1)
	if f := s.ropeFactors(); f != nil {
		w.vector("rope_freqs.weight", f)
	}
	for i := range s.Layers {
		w.layer(i)
	}
	return w.list
}

// writer collects tensors.
type writer struct {
	Shape
	mix  mix
	list []tensor
}

func (w *writer) matrix(name string, rows, cols int, sigma float64) {
	w.add(tensor{name: name + ".weight", typ: w.mix.typeOf(name, cols), rows: rows, cols: cols, sigma: sigma})
}

// constant adds a vector of n equal values.
func (w *writer) constant(name string, n int, value float32) {
	values := make([]float32, n)
	for i := range values {
		values[i] = value
	}
	w.vector(name+".weight", values)
}

func (w *writer) vector(name string, values []float32) {
	w.add(tensor{name: name, typ: quant.F32, cols: len(values), values: values})
}

func (w *writer) bias(name string, n int) {
	w.add(tensor{name: name + ".bias", typ: quant.F32, cols: n, sigma: 0.25})
}

func (w *writer) add(t tensor) {
	t.bytes = int64(t.elements()) / int64(t.typ.BlockSize()) * int64(t.typ.BlockBytes())
	w.list = append(w.list, t)
}

// layer adds the tensors of layer i.
func (w *writer) layer(i int) {
	name := func(s string) string { return fmt.Sprintf("blk.%d.%s", i, s) }
	h, d, ffn := w.Hidden, w.headDim(i), w.ffn(i)
	q, kv := w.Heads*d, w.KVHeads*d
	product := func(s string, typ quant.Type, rows, cols int) {
		w.add(tensor{name: name(s) + ".weight", typ: fit(typ, cols), rows: rows, cols: cols, sigma: 1 / math.Sqrt(float64(cols))})
	}
	base := w.mix.base
	gemma := w.Arch == "gemma3" || w.Arch == "gemma4"

	w.constant(name("attn_norm"), h, 1)
	product("attn_q", base, q, h)
	if !w.shared(i) {
		product("attn_k", base, kv, h)
		product("attn_v", w.mix.attnV(i, w.Layers-w.Shared, w.Heads/w.KVHeads), kv, h)
	}
	if w.Arch == "qwen2" {
		w.bias(name("attn_q"), q)
		w.bias(name("attn_k"), kv)
		w.bias(name("attn_v"), kv)
	}
	if gemma || w.Arch == "qwen3" {
		w.constant(name("attn_q_norm"), d, 1)
		if !w.shared(i) {
			// gemma4 does not scale its scores; with the weight 1 they would be sqrt(d) times too large.
			k := float32(1)
			if w.Arch == "gemma4" {
				k = float32(1 / math.Sqrt(float64(d)))
			}
			w.constant(name("attn_k_norm"), d, k)
		}
	}
	product("attn_output", w.mix.attnOutput(), h, q)
	if gemma {
		w.constant(name("post_attention_norm"), h, 1)
	}
	w.constant(name("ffn_norm"), h, 1)
	product("ffn_gate", base, ffn, h)
	product("ffn_up", base, ffn, h)
	product("ffn_down", w.mix.ffnDown(i, w.Layers), h, ffn)
	if gemma {
		w.constant(name("post_ffw_norm"), h, 1)
	}
	if w.PLE > 0 {
		product("inp_gate", base, w.PLE, h)
		product("proj", base, h, w.PLE)
		w.constant(name("post_norm"), h, 1)
		// Each layer adds three vectors of size 1. Less than 1 here keeps the sum from growing.
		w.constant(name("layer_output_scale"), 1, 0.75)
	}
}
