// Command tandem runs a language model over the compute units of a machine, in
// chunks. It uses only the public API of the module.
//
// Answers go to stdout, all else to stderr. An error is one line that begins
// with "tandem: ". The exit status is 0, 1 after an error, 2 after a wrong
// command line and 130 after an interrupt.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/tandemrun/tandem"
)

type commands struct {
	Run        runCmd        `cmd:"" help:"Answer a prompt."`
	Chat       chatCmd       `cmd:"" help:"Hold a conversation in the terminal."`
	Inspect    inspectCmd    `cmd:"" help:"Show what a model file holds and what a layout of it needs."`
	Units      unitsCmd      `cmd:"" help:"List the compute units this build knows and this machine's cores."`
	Tokenize   tokenizeCmd   `cmd:"" help:"Turn text into token ids."`
	Detokenize detokenizeCmd `cmd:"" help:"Turn token ids into text."`
	Logits     logitsCmd     `cmd:"" help:"Print the highest logits after given tokens, for comparing implementations."`
	Smoke      smokeCmd      `cmd:"" help:"Load, generate and print a line for each stage."`
	Bench      benchCmd      `cmd:"" help:"Measure prefill and decode speed and the ceilings of this machine."`
	Probe      probeCmd      `cmd:"" help:"Measure whether two chunks overlap on two units."`
	AB         abCmd         `cmd:"" name:"ab" help:"Compare two settings by trials in turn."`
	Sustain    sustainCmd    `cmd:"" help:"Decode for minutes and find out whether the machine keeps its speed."`
	Power      powerCmd      `cmd:"" help:"Run a command and measure the watts and joules of the machine meanwhile."`
	Spike      spikeCmd      `cmd:"" help:"Measure what moving a chunk to another unit gains, and report it."`
	Plan       planCmd       `cmd:"" help:"Find the best boundaries, units and schedule from measured costs."`
	Batch      batchCmd      `cmd:"" help:"Answer a file of prompts, several at once; go on where a run was ended."`
	Oracle     oracleCmd     `cmd:"" help:"Record a model's answers, or compare them with recorded ones."`
	Verify     verifyCmd     `cmd:"" name:"verify-unit" help:"Compare a unit with another one: the conformance suite and the model."`
	Perplexity perplexityCmd `cmd:"" help:"Measure how well the model predicts a text."`
	Explain    explainCmd    `cmd:"" help:"Show where a decode step goes, what bounds it and what could be gained."`
	Synth      synthCmd      `cmd:"" help:"Write a model with random weights in the shape of a real one."`

	Version kong.VersionFlag `help:"Print the version and leave."`
}

// Help is shown by tandem --help.
func (commands) Help() string {
	return `Examples:

    tandem run "Hello"
    tandem run -m model.gguf --place c1=cpu:0,c3=cpu:1 "Hello"
    tandem COMMAND --help

Without -m the small model that is part of the binary is used.`
}

func main() {
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	c := &console{in: os.Stdin, out: os.Stdout, err: os.Stderr, interrupts: interrupts, tally: newTally()}
	os.Exit(c.run(os.Args[1:]))
}

// run is the whole program for one command line; it returns the exit status.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	c := &console{in: stdin, out: stdout, err: stderr, tally: newTally()}
	return c.run(args)
}

func (c *console) run(args []string) int {
	// Kong ends the program after --help and --version through this function;
	// when it returns, parsing goes on, and what comes of it is of no interest.
	left, status := false, 0
	exit := func(code int) {
		if !left {
			left, status = true, code
		}
	}
	parser, err := kong.New(&commands{},
		kong.Name("tandem"),
		kong.Description("Runs a language model over all compute units of a machine, in chunks."),
		kong.Writers(c.out, c.err),
		kong.Exit(exit),
		kong.Vars{"version": tandem.Version()},
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.WithHyphenPrefixedParameters(true),
		kong.Bind(c),
	)
	if err != nil {
		return c.fail(err, 1)
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	parsed, err := parser.Parse(args)
	if left {
		return status
	}
	if err != nil {
		help := "tandem --help"
		var wrong *kong.ParseError
		if errors.As(err, &wrong) && wrong.Context != nil && wrong.Context.Selected() != nil {
			help = wrong.Context.Selected().FullPath() + " --help"
		}
		return c.fail(fmt.Errorf("%w; see `%s`", err, help), 2)
	}
	err = errors.Join(parsed.Run(c), c.writeUsage(parsed.Selected().Name))
	var own *statusError
	switch {
	case errors.Is(err, errInterrupted):
		return 130
	case errors.As(err, &own):
		if own.err == nil {
			return own.status
		}
		return c.fail(err, own.status)
	case err != nil:
		return c.fail(err, 1)
	}
	return 0
}

// fail prints an error as one line.
func (c *console) fail(err error, status int) int {
	lines := strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' })
	fmt.Fprintln(c.err, "tandem: "+strings.Join(lines, "; "))
	return status
}
