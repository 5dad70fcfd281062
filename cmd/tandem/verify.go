package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/tandemrun/tandem"
)

type verifyCmd struct {
	modelFlags
	Unit     string  `required:"" placeholder:"UNIT" help:"The unit to verify, such as gpu."`
	Against  string  `default:"cpu" placeholder:"UNIT" help:"The unit it is compared with. Default: cpu."`
	Tokens   int     `short:"n" default:"64" placeholder:"N" help:"Most positions compared for each prompt. Default: 64."`
	Top1     float64 `default:"0.99" placeholder:"SHARE" help:"Least share of positions with the same most likely token. Default: 0.99."`
	KL       float64 `name:"kl" default:"0.01" placeholder:"NATS" help:"Largest mean KL divergence. Default: 0.01."`
	Forget   bool    `help:"Do not remember the verdict for plans."`
	Chunks   *int    `placeholder:"N" help:"Number of chunks, balanced by bytes. Default: four, by the built-in rule."`
	Threads  *int    `short:"t" placeholder:"N" help:"Most threads of a unit. Default: one a core."`
	Ctx      *int    `placeholder:"N" help:"Context size in tokens. Default: 4096, or what the model was trained for if less."`
	KVFormat string  `name:"kv" placeholder:"TYPE" help:"Type of the KV cache. Default: f32."`
	JSON     bool    `name:"json" help:"Print one JSON object."`
}

// Help is shown by tandem verify-unit --help.
func (verifyCmd) Help() string {
	return `Runs the conformance suite on both units, and then the model on both: the reference answers 20 fixed prompts
greedily, the unit is given the same tokens, and the logits of each position are compared. The last line sums up.

Examples:

    tandem verify-unit --unit gpu --against cpu
    tandem verify-unit -m model.gguf --unit gpu --top1 0.98 --kl 0.02 --json

The verdict is remembered for this machine, model and version, and plans do not use a unit that failed. The exit
status is 0 if the unit passed, 1 if it failed, and 2 if it could not be verified: there is no such unit, say.`
}

// Run verifies and prints.
func (v *verifyCmd) Run(c *console) (err error) {
	o, err := layoutFlags{Chunks: v.Chunks, Threads: v.Threads, Ctx: v.Ctx, KV: v.KVFormat, Place: v.Unit}.options()
	if err == nil && v.Tokens < 1 {
		err = fmt.Errorf("-n %d: it must be at least 1", v.Tokens)
	}
	if err != nil {
		return cannot(err)
	}
	ctx, stop := c.context()
	defer stop()
	m, err := v.load()
	if err != nil {
		return cannot(err)
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	r, err := v.verify(ctx, c, m, o)
	if errors.Is(cause(ctx, err), errInterrupted) {
		return errInterrupted
	}
	if err != nil {
		return cannot(err)
	}
	if r.Note != "" {
		fmt.Fprintf(c.err, "tandem: note: %s\n", r.Note)
	}
	if v.JSON {
		err = c.json(r)
	} else {
		err = printReport(c, r)
	}
	if err == nil && !r.Passed {
		return &statusError{status: statusDiffers}
	}
	return err
}

func (v *verifyCmd) verify(ctx context.Context, c *console, m *tandem.Model, o tandem.Options) (tandem.UnitReport, error) {
	checks, answers := c.steps("prompts"), c.steps("prompts")
	defer answers.clear()
	defer checks.clear()
	return m.VerifyUnit(ctx, tandem.UnitTest{
		Unit: v.Unit, Against: v.Against, Options: o, Positions: v.Tokens, Top: v.Top1, MeanKL: v.KL, Forget: v.Forget,
		Checked: func(unit, check string, err error) {
			checks.show(fmt.Sprintf("%s: %s", unit, check))
		},
		Progress: answers.update,
	})
}

func printReport(c *console, r tandem.UnitReport) error {
	var b strings.Builder
	fmt.Fprintf(&b, "unit %s (%s) against %s (%s)\n\n", r.Unit, r.Kind, r.Against, r.AgainstKind)
	fmt.Fprintf(&b, "conformance: %d of %d checks passed\n", r.Conformance.Checks-len(r.Conformance.Failures), r.Conformance.Checks)
	for _, f := range r.Conformance.Failures {
		fmt.Fprintf(&b, "  %s: %s\n", f.Check, f.Error)
	}
	if r.Agreement != nil {
		fmt.Fprintln(&b)
		printAgreement(&b, *r.Agreement)
	}
	fmt.Fprintf(&b, "\n%s\n", r.Summary)
	_, err := fmt.Fprint(c.out, b.String())
	return err
}

// printAgreement prints the figures by kind of prompt.
func printAgreement(b *strings.Builder, a tandem.Agreement) {
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "kind\tprompts\tpositions\ttop-1 equal\tmean KL\tmax KL\tlargest logit difference\tfirst diverging token")
	number := func(x *float64) string {
		if x == nil {
			return "not finite"
		}
		return fmt.Sprintf("%.3g", *x)
	}
	for _, f := range append(a.Kinds, a.All) {
		first := "none"
		if f.First != nil {
			first = f.First.String()
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%.2f %%\t%s\t%s\t%s\t%s\n",
			f.Kind, f.Prompts, f.Positions, 100*f.Top, number(f.MeanKL), number(f.MaxKL), number(f.Difference), first)
	}
	w.Flush() // into memory
}
