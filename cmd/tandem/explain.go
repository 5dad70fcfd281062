package main

import (
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/tandemrun/tandem"
)

type explainCmd struct {
	modelFlags
	layoutFlags
	Device string   `placeholder:"NAME|FILE" help:"Explain a device profile instead of measuring a model."`
	Steps  int      `short:"n" default:"48" placeholder:"N" help:"Decode steps measured. Default: 48."`
	Depth  int      `short:"d" name:"n-depth" default:"128" placeholder:"N" help:"Positions in the caches before them. Default: 128."`
	Units  []string `placeholder:"UNIT" help:"Other units to measure the chunks on, such as cpu:0,cpu:1. Default: none."`
	JSON   bool     `name:"json" help:"Print one JSON object."`
}

// Help is shown by tandem explain --help.
func (explainCmd) Help() string {
	return `Shows where a decode step of one stream goes (units, copies, dispatch, CPU), what bounds it (memory, arithmetic,
dispatch, dependency), and the most that each change could gain.

Examples:

    tandem explain -m model.gguf
    tandem explain -m model.gguf --place c1=cpu:0,c2=cpu:0,c3=cpu:1,c4=cpu:1 --units cpu:0,cpu --n-depth 2048
    tandem explain --device iphone-17-pro
    tandem explain --device mac-studio --place c3=gpu --json

A cap is what is gained if a part took no time, whatever else the change costs; "expected" is computed from what
chunks take elsewhere. docs/explain.md says how each figure is measured.`
}

// Run explains and prints.
func (e *explainCmd) Run(c *console) (err error) {
	x, err := e.explain(c)
	if err != nil {
		return err
	}
	if e.JSON {
		return c.json(x)
	}
	return printExplanation(c, x)
}

func (e *explainCmd) explain(c *console) (x tandem.Explanation, err error) {
	if e.Device != "" {
		if e.Model != "" {
			return x, errors.New("--device and -m exclude each other")
		}
		return tandem.ExplainDevice(e.Device, e.Place)
	}
	if e.Steps < 3 {
		return x, fmt.Errorf("-n %d: it must be at least 3", e.Steps)
	}
	if e.Depth < 1 {
		return x, fmt.Errorf("-d %d: it must be at least 1", e.Depth)
	}
	o, err := e.options()
	if err != nil {
		return x, err
	}
	ctx, stop := c.context()
	defer stop()
	m, err := e.load()
	if err != nil {
		return x, err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	p := c.progress()
	defer p.clear()
	o.Progress = p.update
	x, err = m.Explain(ctx, tandem.ExplainTest{Options: o, Depth: e.Depth, Steps: e.Steps, Units: e.Units})
	return x, cause(ctx, err)
}

// number prints what may be unknown.
func number(x *float64, format string, scale float64) string {
	if x == nil {
		return "unknown"
	}
	return fmt.Sprintf(format, *x*scale)
}

func printExplanation(c *console, x tandem.Explanation) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s: a step takes %.3f ms (%.1f tok/s)", x.Source, x.Units, x.StepMS, x.Rate)
	if x.Steps > 0 {
		fmt.Fprintf(&b, ", mean of %d of %d steps behind %d positions, KV %s", x.Kept, x.Steps, x.Depth, x.KV)
	}
	fmt.Fprint(&b, "\n\nWhere it goes\n")
	table := func(rows func(w *tabwriter.Writer)) {
		w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		rows(w)
		w.Flush() // into memory
	}
	table(func(w *tabwriter.Writer) {
		for _, p := range x.Parts {
			fmt.Fprintf(w, "  %s\t%s\t%s\t%s\n", p.Name, number(p.MS, "%.3f ms", 1), strings.TrimPrefix(number(p.Share, "%.1f %%", 100), "unknown"), p.What)
		}
	})
	fmt.Fprintln(&b)
	table(func(w *tabwriter.Writer) {
		fmt.Fprintln(w, "  chunk\tunit\tms\tof step\tgap before\tmemory\tarithmetic")
		for _, k := range x.Chunks {
			gap := "unknown"
			if x.Steps > 0 {
				gap = fmt.Sprintf("%.3f", k.Gap)
			}
			fmt.Fprintf(w, "  %s\t%s\t%.3f\t%.1f %%\t%s\t%s\t%s\n", k.Name, k.Unit, k.MS, 100*k.MS/x.StepMS, gap,
				number(k.Memory, "%.3f", 1), number(k.Arithmetic, "%.3f", 1))
		}
	})
	if len(x.Ops) > 0 {
		fmt.Fprint(&b, "\n  inside the units:")
		for i, o := range x.Ops {
			if i == 6 {
				break
			}
			fmt.Fprintf(&b, "%s %s %.1f %%", map[bool]string{true: ","}[i > 0], o.Name, 100*o.Share)
		}
		fmt.Fprintln(&b)
	}
	fmt.Fprint(&b, "\nWhat bounds it\n")
	for _, u := range x.Ceilings {
		fmt.Fprintf(&b, "  ceilings of %s: %.1f GB/s from memory, %.1f GOPS of 8-bit integers\n", u.Unit, u.Read, u.Multiply)
	}
	table(func(w *tabwriter.Writer) {
		for _, p := range x.Bounds {
			fmt.Fprintf(w, "  %s\t%s\t%s\t%s\n", p.Name, number(p.MS, "%.3f ms", 1), strings.TrimPrefix(number(p.Share, "%.1f %%", 100), "unknown"), p.What)
		}
	})
	fmt.Fprintf(&b, "  bounded by %s: %s\n", x.BoundedBy, x.Why)
	fmt.Fprint(&b, "\nWhat each lever could gain at most\n")
	table(func(w *tabwriter.Writer) {
		for _, l := range x.Levers {
			gain := "-"
			if l.Gain != nil {
				gain = fmt.Sprintf("%+.1f %%", 100**l.Gain)
				if gain == "-0.0 %" {
					gain = "+0.0 %"
				}
			}
			fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t%s\n", l.Lever, l.Change, gain, strings.TrimPrefix(number(l.Rate, "%.1f tok/s", 1), "unknown"), l.Basis)
		}
	})
	for _, n := range x.Notes {
		fmt.Fprintf(&b, "\nnote: %s\n", n)
	}
	_, err := fmt.Fprint(c.out, b.String())
	return err
}
