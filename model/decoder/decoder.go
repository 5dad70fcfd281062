// Package decoder reads plain transformers (decoders whose layers are attention
// and a gated feed-forward network, each with a norm before it and a residual
// around it) and writes their layers as programs.
//
// An architecture package (model/llama, model/qwen, model/gemma3) fills in a
// [Description] of what sets it apart and calls [Read]. Architectures whose
// layers share caches or have further inputs, such as gemma4, do not fit and
// write their own.
//
// A layer, with parts that only some architectures have in brackets:
//
//	x = norm(h)
//	q, k, v = Wq x [+ bq], Wk x [+ bk], Wv x [+ bv]
//	q, k = rope([norm](q)), rope([norm](k))      per head
//	h = h + [norm](Wo attention(q, cache) [+ bo])
//	x = norm(h)
//	h = h + [norm](Wdown (act(Wgate x) · Wup x))
//
// Every layer owns a KV cache. Behind the keys and values of the last layer
// everything is computed for the wanted rows only.
//
// [Read] keeps the first error and never panics on what a file holds: a tensor
// that is missing, of another shape, or that nothing would read is an error, as
// is a key that asks for something not written here. The package holds no
// state; what it returns is immutable.
package decoder

import (
	"github.com/tandemrun/tandem/gguf"
	"github.com/tandemrun/tandem/model"
	"github.com/tandemrun/tandem/program"
)

// A Description says what sets an architecture apart.
type Description struct {
	Activation  program.Activation // of the feed-forward gate
	Interleaved bool               // RoPE pairs are neighbours; otherwise halves of the head
	FreqBase    float64            // the format's default for rope.freq_base; 0 if the file must say it

	QKVBias        bool // queries, keys and values have biases; otherwise they may have
	HeadNorm       bool // each head of queries and keys is normalised before RoPE
	PostNorm       bool // attention and feed-forward results are normalised too
	ScaleEmbedding bool // embeddings are multiplied by sqrt(embedding_length)
	Softcap        bool // final_logit_softcapping is followed if the file has it

	Sliding *Sliding // nil if every layer sees all positions

	// QueryDim returns the size whose inverse square root scales attention
	// scores, for files without attention.scale. If it is nil, or returns 0,
	// that is key_length.
	QueryDim func(r *model.Reader, hidden int, layers []model.Layer) int
}

// Sliding says which layers see only a window of positions and what the format
// defines for them.
type Sliding struct {
	Period   int     // the last of each Period layers is a full one; default for attention.sliding_window_pattern
	FreqBase float64 // default for rope.freq_base_swa
}

// arch is an architecture as one file has it.
type arch struct {
	Description
	hidden, vocab int
	layers        []model.Layer
	eps           float32
	scale         float32 // of attention scores
	softcap       float32 // 0 for none
	rope          [2]rope // by kind of layer

	embed, head program.Weight
	headBias    []float32
	outNorm     []float32
	blocks      []block
}

// rope is the rotation of one kind of layer.
type rope struct {
	dims   int     // values of a head that rotate
	base   float64 // pair i turns by base^(-2i/dims) / factor a position
	factor float64
	freqs  []float64
}

// linear is a weight with its bias, which may be nil.
type linear struct {
	w    program.Weight
	bias []float32
}

// block is the tensors of one layer; norms that the architecture lacks are nil.
type block struct {
	q, k, v, o, gate, up, down linear

	attnNorm, qNorm, kNorm, postAttn, ffnNorm, postFFN []float32
}

// Read reads the model in f, which must stay open while the model is used.
func Read(f *gguf.File, d Description) (*model.Model, error) {
	r := model.NewReader(f)
	a := &arch{Description: d}
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
		Arch: r.Arch, Name: name, Context: context, Vocab: a.vocab, Hidden: a.hidden,
		Layers: a.layers, OwnEnd: len(a.layers), Notes: r.Notes, Build: a.build,
	}, nil
}
