package main

import (
	"context"
	"fmt"
	"text/tabwriter"

	"github.com/tandemrun/tandem"
)

type probeCmd struct {
	modelFlags
	deviceFlags
	layoutFlags
	Pair   string `required:"" placeholder:"c2@UNIT,c3@UNIT" help:"The two chunks and the units they are on."`
	Trials int    `default:"10" placeholder:"N" help:"Trials of each kind. Default: 10."`
	JSON   bool   `name:"json" help:"Print one JSON object."`
}

// Help is shown by tandem probe --help.
func (probeCmd) Help() string {
	return `Measures two chunks alone, one after the other and both at once, as decode steps, and the same with both
chunks on the first one's unit (the control). With --device both are simulated, in virtual time.

    overlap = (a + b - parallel) / (a + b - max(a, b))

1 is full overlap and 0 none; above 0.50 it is called strong, above 0.30 meaningful, above 0.15 partial. A pair
that overlaps is a capability: the chunks of a single stream wait for each other all the same.

Examples:

    tandem probe --pair c2@cpu:0,c3@cpu:1
    tandem probe -m model.gguf --pair c2@cpu:0,c3@cpu:1 --trials 30 --json
    tandem probe --device mac-studio --pair c2@ane,c3@gpu`
}

// Run measures and prints.
func (p *probeCmd) Run(c *console) (err error) {
	if p.Trials < 1 {
		return fmt.Errorf("--trials %d: it must be at least 1", p.Trials)
	}
	o, err := p.options()
	if err != nil {
		return err
	}
	ctx, stop := c.context()
	defer stop()
	r, err := p.probe(ctx, tandem.Probe{Pair: p.Pair, Layout: o, Trials: p.Trials})
	if err != nil {
		return cause(ctx, err)
	}
	if p.JSON {
		return c.json(r)
	}
	fmt.Fprintln(c.out, r.Lines)
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\n\tunit\tcold ms\tmean ms\tmedian ms of trials kept")
	fmt.Fprintf(w, "%s\t%s\t%.3f\t%.3f\t%.3f\n", r.A, r.UnitA, r.AColdMs, r.AMs, r.AMedianMs)
	fmt.Fprintf(w, "%s\t%s\t%.3f\t%.3f\t%.3f\n", r.B, r.UnitB, r.BColdMs, r.BMs, r.BMedianMs)
	fmt.Fprintf(w, "one after the other\t\t\t%.3f\t%.3f\n", r.SequentialMs, r.SequentialMedianMs)
	fmt.Fprintf(w, "both at once\t\t\t%.3f\t%.3f\n", r.ParallelMs, r.ParallelMedianMs)
	fmt.Fprintf(w, "overlap\t\t\t%.2f\t%.2f\n", r.Overlap, r.OverlapMedian)
	fmt.Fprintf(w, "control on %s\t\t\t%.2f\t%.2f\n", r.ControlUnit, r.Control, r.ControlMedian)
	fmt.Fprintf(w, "trials kept\t\t\t%d of %d\tcontrol %d of %d\n", r.Kept, r.Trials, r.ControlKept, r.ControlTrials)
	return w.Flush()
}

func (p *probeCmd) probe(ctx context.Context, what tandem.Probe) (tandem.ProbeResult, error) {
	if d, ok, err := p.device(p.modelFlags); ok || err != nil {
		if err != nil {
			return tandem.ProbeResult{}, err
		}
		return d.Probe(ctx, what)
	}
	m, err := p.load()
	if err != nil {
		return tandem.ProbeResult{}, err
	}
	defer m.Close()
	return m.Probe(ctx, what)
}
