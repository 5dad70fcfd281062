package decoder

import (
	"math"

	"github.com/tandemrun/tandem/model"
)

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
	a.eps = float32(r.Float("attention.layer_norm_rms_epsilon"))
	if a.Softcap && r.Has("final_logit_softcapping") {
		a.softcap = float32(r.Float("final_logit_softcapping"))
	}
	if r.Has("expert_count") && r.Int("expert_count", 0) > 0 {
		r.Fail("expert_count", "mixtures of experts are not supported")
	}
	a.readLayers(r, n)
	if r.Err != nil {
		return
	}
	a.readRope(r)
	a.readScale(r)
	return context
}

// readLayers reads the shapes of n layers.
func (a *arch) readLayers(r *model.Reader, n int) {
	heads := r.IntPerLayer("attention.head_count", n, 1)
	kvHeads := heads
	if r.Has("attention.head_count_kv") {
		kvHeads = r.IntPerLayer("attention.head_count_kv", n, 1)
	} else {
		r.Note("%s is not in the file: as many as query heads, the format's default", r.Key("attention.head_count_kv"))
	}
	ffn := r.IntPerLayer("feed_forward_length", n, 1)
	if r.Err != nil {
		return
	}
	keyDim, valueDim := a.headDim(r, "attention.key_length", heads[0]), a.headDim(r, "attention.value_length", heads[0])
	sliding, window := a.readWindow(r, n)
	if r.Err != nil {
		return
	}
	for i := range n {
		l := model.Layer{Owner: i, Heads: heads[i], KVHeads: kvHeads[i], KeyDim: keyDim, ValueDim: valueDim, FFN: ffn[i]}
		if sliding[i] {
			l.Kind, l.Window = model.Sliding, window
		}
		if l.Heads%l.KVHeads != 0 {
			r.Fail("attention.head_count_kv", "layer %d has %d query heads over %d KV heads", i, l.Heads, l.KVHeads)
			return
		}
		a.layers = append(a.layers, l)
	}
}

// headDim reads the size of a head; the format's default divides the state
// among the heads.
func (a *arch) headDim(r *model.Reader, key string, heads int) int {
	if !r.Has(key) && a.hidden%heads != 0 {
		r.Fail(key, "is missing, and embedding_length %d does not divide into %d heads", a.hidden, heads)
	}
	return r.IntOr(key, 1, a.hidden/heads)
}

// readWindow reads which of n layers see only a window, and its size.
func (a *arch) readWindow(r *model.Reader, n int) (sliding []bool, window int) {
	const key, pattern = "attention.sliding_window", "attention.sliding_window_pattern"
	sliding = make([]bool, n)
	if a.Sliding == nil {
		if r.Has(key) && r.Int(key, 0) > 0 {
			r.Fail(key, "is set, but tandem has no sliding layers for the architecture %s", r.Arch)
		}
		return sliding, 0
	}
	window = r.Int(key, 1)
	if r.IsArray(pattern) {
		return r.BoolPerLayer(pattern, n), window
	}
	period := r.IntOr(pattern, 1, a.Sliding.Period)
	for i := range sliding {
		sliding[i] = (i+1)%period != 0
	}
	return sliding, window
}

// readRope reads the rotation of full and of sliding layers. Scaling concerns
// the full ones alone.
func (a *arch) readRope(r *model.Reader) {
	keyDim := a.layers[0].KeyDim
	dims := r.IntOr("rope.dimension_count", 2, keyDim)
	if dims > keyDim || dims%2 != 0 || !a.Interleaved && dims != keyDim {
		r.Fail("rope.dimension_count", "%d values cannot rotate in heads of %d", dims, keyDim)
	}
	full := rope{dims: dims, factor: a.readScaling(r)}
	if a.FreqBase > 0 {
		full.base = r.FloatOr("rope.freq_base", a.FreqBase)
	} else {
		full.base = r.Float("rope.freq_base")
	}
	a.rope[model.Full] = full
	if a.Sliding != nil {
		a.rope[model.Sliding] = rope{dims: dims, factor: 1, base: r.FloatOr("rope.freq_base_swa", a.Sliding.FreqBase)}
	}
}

// readScaling returns what positions are divided by. The factors of Llama 3
// come as the tensor rope_freqs.weight instead.
func (a *arch) readScaling(r *model.Reader) float64 {
	const typ, factor, legacy = "rope.scaling.type", "rope.scaling.factor", "rope.scale_linear"
	key := factor
	if !r.Has(factor) && r.Has(legacy) {
		key = legacy // the name the format had first
	}
	if r.Has("rope.scaling.attn_factor") && r.Float("rope.scaling.attn_factor") != 1 {
		r.Fail("rope.scaling.attn_factor", "only 1 is supported")
	}
	kind := "none"
	switch {
	case r.Has(typ):
		kind = r.String(typ)
	case r.Has(key):
		kind = "linear"
		r.Note("%s is not in the file: linear, the format's default", r.Key(typ))
	}
	switch kind {
	case "none":
		if r.Has(key) && r.Float(key) != 1 {
			r.Fail(key, "is %g, but %s is none", r.Float(key), r.Key(typ))
		}
		return 1
	case "linear":
		return r.Float(key)
	}
	r.Fail(typ, "%q is not supported: only none and linear are, and factors in rope_freqs.weight", kind)
	return 1
}

// readScale reads the factor of attention scores.
func (a *arch) readScale(r *model.Reader) {
	if r.Has("attention.scale") {
		a.scale = float32(r.Float("attention.scale"))
		return
	}
	dim := 0
	if a.QueryDim != nil {
		dim = a.QueryDim(r, a.hidden, a.layers)
	}
	if dim == 0 {
		dim = a.layers[0].KeyDim
	}
	a.scale = float32(1 / math.Sqrt(float64(dim)))
}
