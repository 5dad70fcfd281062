package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/tandemrun/tandem"
)

type perplexityCmd struct {
	modelFlags
	layoutFlags
	JSON bool   `name:"json" help:"Print one JSON object."`
	File string `arg:"" name:"FILE" help:"A text, UTF-8; - is standard input."`
}

// Help is shown by tandem perplexity --help.
func (perplexityCmd) Help() string {
	return `Measures how well the model predicts a text, as llama.cpp's perplexity does by default: windows of --ctx tokens
(512 if not given) that do not overlap, each begun anew, the second half of each scored.

Examples:

    tandem perplexity -m model.gguf wiki.test.raw
    tandem perplexity -m model.gguf --ctx 2048 --kv f16 --json book.txt

± is the standard error over the scored tokens.`
}

// Run measures and prints.
func (p *perplexityCmd) Run(c *console) (err error) {
	o, err := p.options()
	if err != nil {
		return err
	}
	text, err := p.text(c)
	if err != nil {
		return err
	}
	ctx, stop := c.context()
	defer stop()
	m, err := p.load()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	loading, windows := c.progress(), c.steps("windows")
	o.Progress = loading.update
	r, err := m.Perplexity(ctx, tandem.PerplexityTest{
		Text: text, Options: o,
		Loaded: func(e *tandem.Engine) {
			loading.clear()
			for _, note := range e.Notes() {
				fmt.Fprintf(c.err, "tandem: note: %s\n", note)
			}
		},
		Progress: func(r tandem.Perplexity) {
			windows.show(fmt.Sprintf("%d of %d windows: %.4f ± %.4f, %.1f tok/s", r.Done, r.Windows, r.Perplexity, r.Error, r.Rate))
		},
	})
	loading.clear()
	windows.clear()
	err = cause(ctx, needsText(m, err))
	if err != nil && !(errors.Is(err, errInterrupted) && r.Done > 0) {
		return fmt.Errorf("%s: %w", p.File, err)
	}
	if p.JSON {
		return errors.Join(c.json(r), err)
	}
	part := ""
	if r.Done < r.Windows {
		part = fmt.Sprintf(" of %d (interrupted)", r.Windows)
	}
	_, e := fmt.Fprintf(c.out, "perplexity %.4f ± %.4f: %d tokens scored, the second halves of %d windows%s of %d, %.1f tok/s\n",
		r.Perplexity, r.Error, r.Scored, r.Done, part, r.Window, r.Rate)
	return errors.Join(e, err)
}

func (p *perplexityCmd) text(c *console) (string, error) {
	if p.File == "-" {
		return c.text("-")
	}
	b, err := os.ReadFile(p.File)
	return string(b), err
}
