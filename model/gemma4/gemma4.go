// Package gemma4 reads models of the architecture gemma4 (Gemma 4, text) and
// writes their layers as programs.
//
// What sets the architecture apart: sliding and full layers with heads of
// different sizes; the last layers share the KV cache of the last sliding and
// the last full layer that have one; every layer adds a row of its own from a
// table indexed by token (per-layer embeddings, PLE); in full layers only the
// first quarter of the RoPE pairs rotates, which the file says through
// rope_freqs.weight.
//
// The order of operations follows the public description of the model; the
// golden files in testdata/tiny are the judge.
package gemma4

import (
	"fmt"
	"math"

	"github.com/tandemrun/tandem/gguf"
	"github.com/tandemrun/tandem/model"
	"github.com/tandemrun/tandem/program"
)

// Arch is the architecture's name in general.architecture.
const Arch = "gemma4"

// arch is the architecture as one file has it.
type arch struct {
	hidden, vocab int
	layers        []model.Layer
	lastOwn       int // the last layer with a KV cache of its own
	ple           int // width of a layer's per-layer embedding; 0 for none
	eps           float32
	softcap       float32 // 0 for none
	freqs         [2][]float64

	embed, head, pleTable, pleProj program.Weight
	pleNorm, outNorm               []float32
	blocks                         []block
}

// block is the tensors of one layer.
type block struct {
	q, k, v, o, gate, up, down, pleGate, pleProj             program.Weight
	attnNorm, qNorm, kNorm, postAttn, ffnNorm, postFFN, post []float32
	scale                                                    float32
}

// Read reads the model's keys and tensors.
func Read(f *gguf.File) (*model.Model, error) {
	r := model.NewReader(f)
	a := &arch{}
	context := a.readKeys(r)
	if r.Err != nil {
		return nil, r.Err
	}
	a.readTensors(r)
	if r.Err != nil {
		return nil, r.Err
	}
	name, _ := f.String("general.name")
	return &model.Model{
		Arch: Arch, Name: name, Context: context, Vocab: a.vocab, Hidden: a.hidden,
		Layers: a.layers, OwnEnd: a.lastOwn + 1, Notes: r.Notes, Build: a.build,
	}, nil
}

// readKeys reads the hyperparameters and returns the context length.
func (a *arch) readKeys(r *model.Reader) (context int) {
	const mostLayers = 4096
	context = r.Int("context_length", 1)
	a.hidden = r.Int("embedding_length", 1)
	n := r.Int("block_count", 1)
	if n > mostLayers {
		r.Fail("block_count", "%d layers; at most %d are possible", n, mostLayers)
		return
	}
	shared := r.Int("attention.shared_kv_layers", 0)
	if shared >= n {
		r.Fail("attention.shared_kv_layers", "%d of %d layers share a cache that no layer has", shared, n)
		return
	}
	a.lastOwn = n - shared - 1
	a.ple = r.Int("embedding_length_per_layer_input", 0)
	a.eps = float32(r.Float("attention.layer_norm_rms_epsilon"))
	if r.Has("final_logit_softcapping") {
		a.softcap = float32(r.Float("final_logit_softcapping"))
	} else {
		r.Fail("final_logit_softcapping", "is missing")
	}
	if r.Has("expert_count") && r.Int("expert_count", 0) > 0 {
		r.Fail("expert_count", "mixtures of experts are not supported")
	}

	heads := r.IntPerLayer("attention.head_count", n, 1)
	kvHeads := r.IntPerLayer("attention.head_count_kv", n, 1)
	ffn := r.IntPerLayer("feed_forward_length", n, 1)
	sliding := r.BoolPerLayer("attention.sliding_window_pattern", n)
	window := r.Int("attention.sliding_window", 1)
	keyDim := [2]int{r.Int("attention.key_length", 2), r.Int("attention.key_length_swa", 2)}
	valueDim := [2]int{r.Int("attention.value_length", 1), r.Int("attention.value_length_swa", 1)}
	theta := [2]float64{r.Float("rope.freq_base"), r.Float("rope.freq_base_swa")}
	for i, key := range []string{"rope.dimension_count", "rope.dimension_count_swa"} {
		if dim := r.Int(key, 2); r.Err == nil && (dim != keyDim[i] || dim%2 != 0) {
			r.Fail(key, "%d differs from the heads' %d values; the pairs that do not rotate are said by rope_freqs.weight", dim, keyDim[i])
		}
	}
	if r.Err != nil {
		return
	}

	producer := [2]int{-1, -1}
	for i := range n {
		kind, w := model.Full, 0
		if sliding[i] {
			kind, w = model.Sliding, window
		}
		l := model.Layer{Kind: kind, Owner: i, Heads: heads[i], KVHeads: kvHeads[i],
			KeyDim: keyDim[kind], ValueDim: valueDim[kind], FFN: ffn[i], Window: w}
		if l.Heads%l.KVHeads != 0 {
			r.Fail("attention.head_count_kv", "layer %d has %d query heads over %d KV heads", i, l.Heads, l.KVHeads)
			return
		}
		if i <= a.lastOwn {
			producer[kind] = i
		} else {
			l.Owner = producer[kind]
			if l.Owner < 0 {
				r.Fail("attention.shared_kv_layers", "layer %d (%s) shares a cache, but no %s layer has one", i, kind, kind)
				return
			}
			if o := a.layers[l.Owner]; o.KVHeads != l.KVHeads {
				r.Fail("attention.head_count_kv", "layer %d shares the cache of layer %d but has %d KV heads instead of %d", i, l.Owner, l.KVHeads, o.KVHeads)
				return
			}
		}
		a.layers = append(a.layers, l)
	}
	for kind, d := range keyDim {
		for i := range d / 2 {
			a.freqs[kind] = append(a.freqs[kind], math.Pow(theta[kind], -2*float64(i)/float64(d)))
		}
	}
	return context
}

func (a *arch) readTensors(r *model.Reader) {
	n, h := len(a.layers), a.hidden
	a.embed = r.Matrix("token_embd.weight", 0, h)
	a.vocab = a.embed.Rows
	if a.head = a.embed; r.HasTensor("output.weight") {
		a.head = r.Matrix("output.weight", a.vocab, h)
	}
	a.outNorm = r.Vector("output_norm.weight", h)
	if a.ple > 0 {
		a.pleTable = r.Matrix("per_layer_token_embd.weight", a.vocab, n*a.ple)
		a.pleProj = r.Matrix("per_layer_model_proj.weight", n*a.ple, h)
		a.pleNorm = r.Vector("per_layer_proj_norm.weight", a.ple)
	}
	for i, factor := range r.Vector("rope_freqs.weight", len(a.freqs[model.Full])) {
		if !(factor > 0) {
			r.Fail("rope.freq_base", "rope_freqs.weight[%d] is %g, not a positive number", i, factor)
			return
		}
		a.freqs[model.Full][i] /= float64(factor)
	}
	for i, l := range a.layers {
		t := func(name string) string { return fmt.Sprintf("blk.%d.%s.weight", i, name) }
		q, kv, v := l.Heads*l.KeyDim, l.KVHeads*l.KeyDim, l.KVHeads*l.ValueDim
		b := block{
			attnNorm: r.Vector(t("attn_norm"), h),
			q:        r.Matrix(t("attn_q"), q, h),
			qNorm:    r.Vector(t("attn_q_norm"), l.KeyDim),
			o:        r.Matrix(t("attn_output"), h, l.Heads*l.ValueDim),
			postAttn: r.Vector(t("post_attention_norm"), h),
			ffnNorm:  r.Vector(t("ffn_norm"), h),
			gate:     r.Matrix(t("ffn_gate"), l.FFN, h),
			up:       r.Matrix(t("ffn_up"), l.FFN, h),
			down:     r.Matrix(t("ffn_down"), h, l.FFN),
			postFFN:  r.Vector(t("post_ffw_norm"), h),
			scale:    r.Vector(t("layer_output_scale"), 1)[0],
		}
		if l.Owner == i {
			b.k, b.v = r.Matrix(t("attn_k"), kv, h), r.Matrix(t("attn_v"), v, h)
			b.kNorm = r.Vector(t("attn_k_norm"), l.KeyDim)
		}
		if a.ple > 0 {
			b.pleGate, b.pleProj = r.Matrix(t("inp_gate"), a.ple, h), r.Matrix(t("proj"), h, a.ple)
			b.post = r.Vector(t("post_norm"), h)
		}
		if r.Err != nil {
			return
		}
		a.blocks = append(a.blocks, b)
	}
}
