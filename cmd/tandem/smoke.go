package main

import (
	"errors"
	"fmt"

	"github.com/tandemrun/tandem"
)

type smokeCmd struct {
	layoutFlags
	JSON   bool   `name:"json" help:"Print one JSON object, that of tandem run, instead of the lines."`
	Model  string `arg:"" help:"GGUF file, or 'embedded' for the small model in the binary."`
	Prompt string `arg:"" help:"The prompt, or - to read it from stdin as it is."`
	N      int    `arg:"" help:"Most new tokens."`
}

// Help is shown by tandem smoke --help.
func (smokeCmd) Help() string {
	return `Examples:

    tandem smoke embedded "Hello" 64
    LLM_PROFILE_EVERY_STEP=1 tandem smoke model.gguf "Hello" 16 --place cpu:0

Prints what loading each chunk took, what decode steps took at step 1 and each
10th (all of them with LLM_PROFILE_EVERY_STEP=1), the text, and tok/s.`
}

// Run loads, generates and prints a line for each stage.
func (k *smokeCmd) Run(c *console) (err error) {
	if k.N < 1 {
		return fmt.Errorf("%d new tokens: N must be at least 1", k.N)
	}
	text, err := c.text(k.Prompt)
	if err != nil {
		return err
	}
	ctx, stop := c.context()
	defer stop()
	var prompt []int32
	s, err := c.prepare(ctx, modelFlags{k.Model}, k.layoutFlags, func(m *tandem.Model) (err error) {
		prompt, err = m.Prompt([]tandem.Message{{Role: "user", Content: text}})
		return needsText(m, err)
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.fits(prompt); err != nil {
		return err
	}
	g := tandem.Generation{MaxTokens: k.N}
	if !k.JSON {
		fmt.Fprint(c.out, s.loads())
		profile := s.profiler(func(lines string) { fmt.Fprintln(c.out, lines) })
		g.Emit = func(p tandem.Piece) bool { profile.add(p); return true }
	}
	result, err := s.stream.Generate(ctx, prompt, g)
	if err = cause(ctx, err); err != nil && !errors.Is(err, errInterrupted) {
		return err
	}
	if k.JSON {
		return errors.Join(err, c.jsonLine(s.answer(result)))
	}
	_, failed := fmt.Fprintf(c.out, "%s\n%s\n", result.Text, summary(result))
	return errors.Join(err, failed)
}
