// Package llama reads models of the architecture llama: Llama 2 and 3, and the
// models that share their form, such as SmolLM2 and Mistral.
//
// Files of this architecture have the rows of the query and key weights
// permuted, so that RoPE turns neighbours (2i, 2i+1). Llama 3.1 and later slow
// down the longer waves of RoPE; their files carry the factors as
// rope_freqs.weight.
package llama

import (
	"github.com/tandemrun/tandem/gguf"
	"github.com/tandemrun/tandem/model"
	"github.com/tandemrun/tandem/model/decoder"
	"github.com/tandemrun/tandem/program"
)

// Arch is the architecture's name in general.architecture.
const Arch = "llama"

// Read reads the model in f. The file must stay open while the model is used.
func Read(f *gguf.File) (*model.Model, error) {
	return decoder.Read(f, decoder.Description{
		Activation:  program.SiLU,
		Interleaved: true,
		FreqBase:    1e4, // files of Llama 2 do not say it
	})
}
