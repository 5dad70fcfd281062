// Package model turns a model file's metadata and tensors into programs.
//
// A [Model] is what an architecture package (model/gemma4, ...) reads from a
// GGUF file: the layers' shapes and a function that writes the program of any
// run of layers. Package model/catalog chooses the architecture.
//
// Every hyperparameter is read from the file. A missing or contradictory key is
// an error that names it; where the format itself defines a default for an
// architecture, the default is used and a line in [Model.Notes] says so.
//
// A Model holds views into the file, which must stay open as long as the model
// or a program of it is in use. Models are immutable and may be shared between
// goroutines.
package model

import (
	"fmt"

	"github.com/tandemrun/tandem/program"
)

// Kind says which positions a layer's queries see.
type Kind uint8

const (
	// Full attention sees all earlier positions.
	Full Kind = iota
	// Sliding attention sees the last Window positions, the query's included.
	Sliding
)

func (k Kind) String() string {
	if k == Sliding {
		return "sliding"
	}
	return "full"
}

// A Layer is the shape of one layer.
type Layer struct {
	Kind             Kind
	Owner            int // the layer whose KV cache it reads; its own index if it has one
	Heads, KVHeads   int
	KeyDim, ValueDim int // of one head
	FFN              int
	Window           int // 0 for full attention
}

// A Model is an architecture's reading of a file.
type Model struct {
	Arch, Name string
	Context    int // positions the model was trained for
	Vocab      int
	Hidden     int
	Layers     []Layer
	// OwnEnd is one more than the last layer that owns a KV cache. Layers from
	// OwnEnd on are needed only for positions whose logits are wanted.
	OwnEnd int
	Notes  []string

	// Build writes the program of layers [first, last).
	Build func(first, last int) (*program.Program, error)
}

// Program writes and validates the program of layers [first, last).
func (m *Model) Program(first, last int) (*program.Program, error) {
	if first < 0 || last > len(m.Layers) || first >= last {
		return nil, fmt.Errorf("layers %d..%d of a model with %d", first, last-1, len(m.Layers))
	}
	p, err := m.Build(first, last)
	if err != nil {
		return nil, err
	}
	return p, p.Validate()
}
