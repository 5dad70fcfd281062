package tandem

import (
	"context"
	"fmt"

	"github.com/tandemrun/tandem/synth"
)

// Synthesis says which model file to make up.
type Synthesis struct {
	Shape  string // one of SynthesisShapes
	Type   string // mix of block types: one of SynthesisTypes
	Layers int    // the first so many layers only; 0 for all
	Seed   uint64
	// Workers is how many goroutines draw weights; 0 for as many as run at once. The file does not depend on it.
	Workers int
	// Progress, if not nil, is told as the file grows, in bytes, from one goroutine.
	Progress func(done, total int64)
}

// Synthesize writes a GGUF file with random weights in the shape of a real
// model and returns its size in bytes. It serves to measure a model that is
// not at hand; its text is noise. The file appears whole at path, replacing
// what was there, or not at all.
func Synthesize(ctx context.Context, path string, s Synthesis) (int64, error) {
	shape, err := synth.ShapeNamed(s.Shape)
	if err != nil {
		return 0, fmt.Errorf("--shape: %w", err)
	}
	if s.Layers != 0 {
		if shape, err = shape.Cut(s.Layers); err != nil {
			return 0, fmt.Errorf("--layers: %w", err)
		}
	}
	return synth.WriteFile(ctx, path, synth.Options{Shape: shape, Type: s.Type, Seed: s.Seed, Workers: s.Workers, Progress: s.Progress})
}

// SynthesisShapes lists the shapes that Synthesize knows.
func SynthesisShapes() []string { return synth.Shapes() }

// SynthesisTypes lists the mixes of block types that Synthesize knows, by the
// names that llama-quantize has for them.
func SynthesisTypes() []string { return synth.Types() }
