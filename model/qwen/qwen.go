// Package qwen reads models of the architectures qwen2 (Qwen 2 and 2.5) and
// qwen3.
//
// Queries, keys and values have biases in qwen2; in qwen3 each head of queries
// and keys is normalised instead. RoPE turns halves (i, i+d/2) of a head in
// both.
package qwen

import (
	"github.com/tandemrun/tandem/gguf"
	"github.com/tandemrun/tandem/model"
	"github.com/tandemrun/tandem/model/decoder"
	"github.com/tandemrun/tandem/program"
)

// The architectures' names in general.architecture.
const (
	Arch2 = "qwen2"
	Arch3 = "qwen3"
)

// Read2 reads the qwen2 model in f. The file must stay open while the model is
// used.
func Read2(f *gguf.File) (*model.Model, error) {
	return decoder.Read(f, decoder.Description{Activation: program.SiLU, QKVBias: true})
}

// Read3 reads the qwen3 model in f. The file must stay open while the model is
// used.
func Read3(f *gguf.File) (*model.Model, error) {
	return decoder.Read(f, decoder.Description{Activation: program.SiLU, HeadNorm: true})
}
