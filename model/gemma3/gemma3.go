// Package gemma3 reads models of the architecture gemma3 (Gemma 3, text).
//
// Five of six layers see a window of positions and rotate with a base of their
// own; each head of queries and keys is normalised; attention and feed-forward
// results are normalised again before they are added; embeddings are scaled.
// Norm weights are stored with the one that the model adds to them.
package gemma3

import (
	"github.com/tandemrun/tandem/gguf"
	"github.com/tandemrun/tandem/model"
	"github.com/tandemrun/tandem/model/decoder"
	"github.com/tandemrun/tandem/program"
)

// Arch is the architecture's name in general.architecture.
const Arch = "gemma3"

// Read reads the model in f. The file must stay open while the model is used.
func Read(f *gguf.File) (*model.Model, error) {
	return decoder.Read(f, decoder.Description{
		Activation:     program.GELU,
		HeadNorm:       true,
		PostNorm:       true,
		ScaleEmbedding: true,
		Softcap:        true,
		Sliding:        &decoder.Sliding{Period: 6, FreqBase: 1e4},
		QueryDim:       queryDim,
	})
}

// queryDim tells the 27B model apart, which scales attention scores by the
// state's share of a head (5376/32) and not by the head's own size (128). Its
// files say so only through their number of layers.
func queryDim(r *model.Reader, hidden int, layers []model.Layer) int {
	const layers27B = 62
	if len(layers) != layers27B {
		return 0
	}
	dim := hidden / layers[0].Heads
	r.Note("%s is not in the file: (%d/%d)^-0.5, the format's default for %d layers", r.Key("attention.scale"), hidden, layers[0].Heads, layers27B)
	return dim
}
