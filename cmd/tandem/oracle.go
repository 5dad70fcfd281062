package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tandemrun/tandem"
)

type oracleCmd struct {
	Record oracleRecordCmd `cmd:"" help:"Record the model's answers to the fixed prompts."`
	Check  oracleCheckCmd  `cmd:"" help:"Compare the answers with recorded ones."`
}

// oracleFlags are those of both commands.
type oracleFlags struct {
	modelFlags
	layoutFlags
	Streams int    `default:"1" placeholder:"N" help:"Prompts answered at once. Default: 1."`
	JSON    bool   `name:"json" help:"Print one JSON object."`
	File    string `arg:"" name:"FILE" help:"The oracle file."`
}

type oracleRecordCmd struct {
	oracleFlags
	Max int `short:"n" name:"max-tokens" default:"64" placeholder:"N" help:"Most tokens of an answer. Default: 64."`
}

// Help is shown by tandem oracle record --help.
func (oracleRecordCmd) Help() string {
	return `Answers 20 fixed prompts of four kinds (chat, code, qa, summary) greedily and writes the token ids and their
hashes to FILE, to be compared with by "tandem oracle check". A file that is no oracle is not overwritten.

Examples:

    tandem oracle record golden.jsonl
    tandem oracle record -m model.gguf -n 128 golden.jsonl`
}

type oracleCheckCmd struct{ oracleFlags }

// Help is shown by tandem oracle check --help.
func (oracleCheckCmd) Help() string {
	return `Makes the answers of FILE again, in the layout that the flags ask for, and names the first token that differs.

Examples:

    tandem oracle check golden.jsonl
    tandem oracle check -m model.gguf --chunks 2 --place c2=cpu:1 --streams 4 golden.jsonl
    tandem oracle check -m model.gguf --kv f16 --json golden.jsonl

The exit status is 0 if all answers are equal, 1 if one differs, and 2 if that could not be found out: the file is
damaged or of another model, or a unit is not there.`
}

// run opens the model and calls do.
func (f *oracleFlags) run(c *console, do func(ctx context.Context, m *tandem.Model, r tandem.OracleRun) error) (err error) {
	if f.Streams < 1 {
		return cannot(fmt.Errorf("--streams %d: it must be at least 1", f.Streams))
	}
	o, err := f.options()
	if err != nil {
		return cannot(err)
	}
	ctx, stop := c.context()
	defer stop()
	m, err := f.load()
	if err != nil {
		return cannot(err)
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	loading, answers := c.progress(), c.steps("prompts")
	o.Progress, o.Streams = loading.update, f.Streams
	r := tandem.OracleRun{Options: o, Progress: answers.update, Loaded: func(e *tandem.Engine) {
		loading.clear()
		for _, note := range e.Notes() {
			fmt.Fprintf(c.err, "tandem: note: %s\n", note)
		}
	}}
	err = do(ctx, m, r)
	loading.clear()
	answers.clear()
	if errors.Is(cause(ctx, err), errInterrupted) {
		return errInterrupted
	}
	return err
}

// Run records.
func (o *oracleRecordCmd) Run(c *console) error {
	if o.Max < 1 {
		return cannot(fmt.Errorf("-n %d: it must be at least 1", o.Max))
	}
	var got tandem.OracleRecord
	err := o.run(c, func(ctx context.Context, m *tandem.Model, r tandem.OracleRun) error {
		r.MaxTokens = o.Max
		var err error
		got, err = m.RecordOracle(ctx, o.File, r)
		return cannot(err)
	})
	if err != nil {
		return err
	}
	if o.JSON {
		return c.json(got)
	}
	_, err = fmt.Fprintf(c.out, "%s: recorded %d prompts, %d tokens in %.1f s (%.1f tok/s)\n", o.File, got.Prompts, got.Tokens, got.Elapsed, got.Rate)
	return err
}

// Run checks.
func (o *oracleCheckCmd) Run(c *console) error {
	var got tandem.OracleCheck
	err := o.run(c, func(ctx context.Context, m *tandem.Model, r tandem.OracleRun) error {
		var err error
		got, err = m.CheckOracle(ctx, o.File, r)
		return cannot(err)
	})
	if err != nil {
		return err
	}
	if o.JSON {
		err = c.json(got)
	} else {
		err = o.print(c, got)
	}
	if err == nil && !got.Equal {
		return &statusError{status: statusDiffers}
	}
	return err
}

func (o *oracleCheckCmd) print(c *console, got tandem.OracleCheck) error {
	var b strings.Builder
	for _, a := range got.Answers {
		if !a.Equal {
			fmt.Fprintln(&b, a.Divergence)
		}
	}
	work := fmt.Sprintf("%d tokens in %.1f s (%.1f tok/s)", got.Tokens, got.Elapsed, got.Rate)
	if got.Equal {
		fmt.Fprintf(&b, "%s: equal: %d prompts, %s\n", o.File, got.Prompts, work)
	} else {
		fmt.Fprintf(&b, "%s: differs: %d of %d prompts; first %v; %s\n", o.File, got.Different, got.Prompts, got.First, work)
	}
	_, err := fmt.Fprint(c.out, b.String())
	return err
}
