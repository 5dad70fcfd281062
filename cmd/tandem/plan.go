package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/tandemrun/tandem"
)

type planCmd struct {
	modelFlags
	Device  string        `placeholder:"NAME|FILE" help:"Plan for a device by its profile instead of for this machine: mac-studio, iphone-17-pro or a file."`
	Streams int           `default:"1" placeholder:"N" help:"Sequences that come at once. Default: 1."`
	Prompt  int           `placeholder:"N" help:"Tokens of each prompt. Default: 512, or what the context has room for."`
	Tokens  int           `short:"n" name:"tokens" placeholder:"N" help:"Tokens to generate of each sequence. Default: 64."`
	Goal    string        `enum:"decode,prefill,mixed,energy" default:"decode" placeholder:"GOAL" help:"decode, prefill, mixed or energy. Default: decode."`
	Units   []string      `placeholder:"UNIT" help:"Units that may be used. Default: cpu, two halves of its cores, kinds of cores and what else is usable."`
	Chunks  int           `default:"4" placeholder:"N" help:"Most chunks of a plan. Default: 4."`
	Top     int           `default:"3" placeholder:"N" help:"Plans to show. Default: 3."`
	Threads *int          `short:"t" placeholder:"N" help:"Most threads of a unit. Default: one a core."`
	Ctx     *int          `placeholder:"N" help:"Context size in tokens. Default: 4096, or what the model was trained for if less."`
	KV      string        `name:"kv" placeholder:"TYPE" help:"Type of the KV cache, as of tandem run."`
	Verify  bool          `help:"Run the best two plans and print predicted against measured."`
	Time    time.Duration `default:"1m" placeholder:"D" help:"About how long measuring may take, and --verify as long again, without loading. Default: 1m."`
	Fresh   bool          `help:"Measure again what has been measured before."`
	Output  string        `short:"o" placeholder:"FILE" help:"Write the best plan to a file for tandem run --plan FILE."`
	JSON    bool          `name:"json" help:"Print one JSON object with the plans, best first, and the best single unit as baseline."`
}

// Help is shown by tandem plan --help.
func (planCmd) Help() string {
	return `Measures what each layer takes on each unit, what handing over takes and how units slow each other (once for a
machine, model and version), and finds the boundaries, units, streams at once, merging and block size that are
predicted best. The prediction walks the graph of dependencies: a single stream is a chain.

Examples:

    tandem plan -m model.gguf --streams 4 --verify
    tandem plan -m model.gguf -o plan.json && tandem run -m model.gguf --plan plan.json "Hello"
    tandem plan --device mac-studio --streams 2 --goal energy

tok/s is what all streams decode together, TTFT is until the last of them has its first token.`
}

// Run plans and prints.
func (p *planCmd) Run(c *console) (err error) {
	if p.Device != "" && p.Model != "" {
		return errors.New("--device and -m exclude each other: a device profile has its own model")
	}
	if p.Device != "" && p.Output != "" {
		return errors.New("-o needs a plan for this machine; a device's cannot be run")
	}
	for _, x := range []struct {
		flag string
		n    int
	}{{"--streams", p.Streams}, {"--chunks", p.Chunks}, {"--top", p.Top}} {
		if x.n < 1 {
			return fmt.Errorf("%s %d: it must be at least 1", x.flag, x.n)
		}
	}
	if p.Time <= 0 {
		return fmt.Errorf("--time %v: it must be more than 0", p.Time)
	}
	layout, err := layoutFlags{Threads: p.Threads, Ctx: p.Ctx, KV: p.KV}.options()
	if err != nil {
		return err
	}
	o := tandem.Planning{
		Streams: p.Streams, Prompt: p.Prompt, Tokens: p.Tokens, Goal: p.Goal, Top: p.Top, Verify: p.Verify,
		Units: p.Units, Chunks: p.Chunks, Layout: layout, Fresh: p.Fresh, Time: p.Time,
	}
	ctx, stop := c.context()
	defer stop()
	plans, err := p.find(ctx, c, o)
	if err != nil {
		return cause(ctx, err)
	}
	if p.Output != "" {
		if err := plans.WritePlan(p.Output); err != nil {
			return fmt.Errorf("-o: %w", err)
		}
	}
	if p.JSON {
		return c.json(plans)
	}
	return printPlans(c.out, plans)
}

// find plans for the device, or for the model on this machine.
func (p *planCmd) find(ctx context.Context, c *console, o tandem.Planning) (plans tandem.Plans, err error) {
	if p.Device != "" {
		return tandem.PlanDevice(ctx, p.Device, o)
	}
	m, err := p.load()
	if err != nil {
		return plans, err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	if isTerminal(c.err) {
		o.Progress = func(what string) { fmt.Fprintf(c.err, "\r%s\x1b[K", what) }
		defer fmt.Fprint(c.err, "\r\x1b[K")
	}
	return m.Plan(ctx, o)
}

// printPlans prints plans for a person.
func printPlans(out io.Writer, p tandem.Plans) error {
	o := p.Work
	fmt.Fprintf(out, "%s: %s, prompts of %d tokens, %d tokens each; goal %s\n\n", p.Name, plural(o.Streams, "stream"), o.Prompt, o.Tokens, o.Goal)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\tunits\tboundaries\tat once\tmerging\tblock\ttok/s\tTTFT ms\tmemory\tJ/token")
	row := func(name string, x *tandem.Plan) {
		joules := "unavailable"
		if x.JoulesPerToken != nil {
			joules = fmt.Sprintf("%.3g estimated", *x.JoulesPerToken)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%d\t%.1f\t%.0f\t%s\t%s\n", name, x, boundaries(x), x.Streams, merging(x), x.Block, x.PredictedTokS, x.PredictedTTFT, memory(x), joules)
	}
	for i := range p.Plans {
		row(fmt.Sprint(i+1), &p.Plans[i])
	}
	if len(p.Baseline.Placement) > 0 {
		row("best single unit", &p.Baseline)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if p.Verified != "" {
		fmt.Fprintf(out, "\nPredicted against %s:\n\n", p.Verified)
		printVerified(out, p)
	}
	fmt.Fprintln(out, "\nWhy not otherwise:")
	for _, line := range p.Losing {
		fmt.Fprintf(out, "  - %s\n", line)
	}
	if len(p.Losing) == 0 {
		fmt.Fprintln(out, "  - nothing near the first plan is more than 1 % worse")
	}
	fmt.Fprintf(out, "\n%s\n%s\n", capital(p.Chain), capital(p.Space))
	notes := slices.Clone(p.Notes)
	var bases []string
	for _, x := range p.Plans {
		if !slices.Contains(bases, x.Joules) {
			bases = append(bases, x.Joules)
		}
	}
	for _, b := range bases {
		notes = append(notes, "joules a token: "+b)
	}
	for _, n := range notes {
		fmt.Fprintf(out, "Note: %s\n", n)
	}
	if p.Cache != "" {
		fmt.Fprintf(out, "Measured costs: %s\n", p.Cache)
	}
	return nil
}

func printVerified(out io.Writer, p tandem.Plans) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\ttok/s predicted\tat this speed\tfound\tdifference\tTTFT ms predicted\tfound\tdifference\ttrials undisturbed")
	row := func(name string, x *tandem.Plan) {
		found := x.MeasuredTokS
		if found == nil {
			found = x.SimulatedTokS
		}
		if found == nil || x.MeasuredTTFT == nil {
			return
		}
		speed, off := "-", fmt.Sprintf("%+.1f %%", 100*(x.PredictedTokS / *found - 1))
		if x.ScaledTokS != nil {
			speed = fmt.Sprintf("%.1f", *x.ScaledTokS)
			off += fmt.Sprintf(", at this speed %+.1f %%", 100*(*x.ScaledTokS / *found - 1))
		}
		fmt.Fprintf(w, "%s\t%.1f\t%s\t%.1f\t%s\t%.0f\t%.0f\t%+.1f %%\t%d of %d\n", name,
			x.PredictedTokS, speed, *found, off, x.PredictedTTFT, *x.MeasuredTTFT, 100*(x.PredictedTTFT / *x.MeasuredTTFT - 1), x.Kept, x.Trials)
	}
	for i := range p.Plans {
		row(fmt.Sprint(i+1), &p.Plans[i])
	}
	row("best single unit", &p.Baseline)
	w.Flush()
	if p.Drift != "" {
		fmt.Fprintf(out, "%s\n", capital(p.Drift))
	}
}

func boundaries(p *tandem.Plan) string {
	if len(p.Boundaries) == 0 {
		return "none"
	}
	var out []string
	for _, b := range p.Boundaries {
		out = append(out, fmt.Sprint(b))
	}
	return strings.Join(out, ",")
}

func merging(p *tandem.Plan) string {
	switch {
	case p.Streams == 1:
		return "-"
	case p.Merge == 1:
		return "apart"
	}
	return "as they wait"
}

func memory(p *tandem.Plan) string {
	if p.Bytes == nil {
		return "unavailable"
	}
	var out []string
	for _, m := range p.Memory {
		s := m.Unit + " " + size(m.Bytes)
		if m.Available > 0 {
			s += fmt.Sprintf(" of %s (%s left)", size(m.Available), size(m.Available-m.Bytes))
		}
		out = append(out, s)
	}
	return strings.Join(out, ", ")
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
