package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/tandemrun/tandem"
)

type synthCmd struct {
	Shape  string `required:"" placeholder:"NAME" help:"Shape of the model, such as gemma4-e2b."`
	Type   string `default:"q4_0" placeholder:"TYPE" help:"Types of the weights, such as q4_0. Default: q4_0."`
	Out    string `short:"o" required:"" placeholder:"FILE" help:"File to write."`
	Layers *int   `placeholder:"N" help:"Only the first N layers. Default: all."`
	Seed   uint64 `default:"1" placeholder:"S" help:"Seed of the weights; equal seeds give equal files. Default: 1."`
}

// Help is shown by tandem synth --help.
func (synthCmd) Help() string {
	return `Examples:

    tandem synth --shape gemma4-e2b --type q4_0 -o e2b.gguf
    tandem synth --shape llama-1b --type q4_k_m --layers 4 -o small.gguf

Writes a model with random weights, to measure the speed of one that is not at
hand. Other programs load it too. Its text is noise.

Shapes: ` + strings.Join(tandem.SynthesisShapes(), ", ") + `.
Types: ` + strings.Join(tandem.SynthesisTypes(), ", ") + `.`
}

// Run writes the file.
func (s *synthCmd) Run(c *console) error {
	o := tandem.Synthesis{Shape: s.Shape, Type: s.Type, Seed: s.Seed}
	if n := s.Layers; n != nil {
		if *n < 1 {
			return fmt.Errorf("--layers %d: it must be at least 1", *n)
		}
		o.Layers = *n
	}
	ctx, stop := c.context()
	defer stop()
	begin := time.Now()
	p := c.progress()
	p.what = "writing"
	o.Progress = p.update
	n, err := tandem.Synthesize(ctx, s.Out, o)
	p.clear()
	if err != nil {
		return cause(ctx, err)
	}
	_, err = fmt.Fprintf(c.out, "%s: %s in %s, %s in %.1f s\n", s.Out, s.Shape, s.Type, size(n), time.Since(begin).Seconds())
	return err
}
