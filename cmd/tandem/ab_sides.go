package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/alecthomas/kong"

	"github.com/tandemrun/tandem"
)

// abMemory is what a side's layout needs.
type abMemory struct {
	A tandem.MemoryPlan `json:"a"`
	B tandem.MemoryPlan `json:"b"`
}

// layoutOf is the model and the layout that the command line of a trial asks for.
func layoutOf(args []string) (modelFlags, tandem.Options, error) {
	var all commands
	// The parser ends the program after --help; nothing is printed here, and the
	// trial itself says what is wrong with such flags.
	p, err := kong.New(&all, kong.Name("tandem"), kong.Writers(io.Discard, io.Discard), kong.Exit(func(int) {}),
		kong.WithHyphenPrefixedParameters(true), kong.Vars{"version": ""}, kong.Bind(&console{}))
	if err != nil {
		return modelFlags{}, tandem.Options{}, err
	}
	if _, err := p.Parse(args); err != nil {
		return modelFlags{}, tandem.Options{}, err
	}
	switch args[0] {
	case "bench":
		o, err := all.Bench.options()
		o.Streams = slices.Max(append(slices.Clone(all.Bench.Streams), 1))
		longest := slices.Max(append(slices.Concat(all.Bench.Prompt, all.Bench.Gen), 1))
		o.Context = max(o.Context, longest+slices.Max(append(slices.Clone(all.Bench.Depth), 0)))
		return all.Bench.modelFlags, o, err
	case "batch":
		o, err := all.Batch.layoutFlags.options()
		if err != nil {
			return all.Batch.modelFlags, o, err
		}
		streams := batchStreams
		o, err = ofPlan(all.Batch.Plan, o, &streams)
		if all.Batch.Streams != nil {
			streams = *all.Batch.Streams
		}
		o.Streams = streams
		return all.Batch.modelFlags, o, err
	}
	o, err := all.Run.layoutFlags.options()
	if err != nil {
		return all.Run.modelFlags, o, err
	}
	o, err = ofPlan(all.Run.Plan, o, new(int))
	return all.Run.modelFlags, o, err
}

// ofPlan lays o out by a plan file, which has streams. What auto finds is not
// known here, and takes about as much memory as the layout without it.
func ofPlan(plan string, o tandem.Options, streams *int) (tandem.Options, error) {
	if plan == "" || plan == "auto" {
		return o, nil
	}
	u, err := tandem.ReadPlan(plan)
	if err != nil {
		return o, err
	}
	*streams = u.Streams()
	return u.Options(o), nil
}

// layouts adds what both sides' layouts need, and with --quality how far they
// are apart. The trials have run: their flags are right.
func (t *trialRunner) layouts(ctx context.Context, c *console, out *abOutput) error {
	var files [2]modelFlags
	var options [2]tandem.Options
	var memory [2]tandem.MemoryPlan
	for i, s := range t.sides {
		var err error
		if files[i], options[i], err = layoutOf(t.args(s.flags)); err != nil {
			return fmt.Errorf("side %s: %w", tandem.Side(i), err)
		}
		if memory[i], err = planned(files[i], options[i]); err != nil {
			return fmt.Errorf("side %s: %w", tandem.Side(i), err)
		}
	}
	out.Memory = &abMemory{memory[0], memory[1]}
	if !t.k.Quality {
		return nil
	}
	if files[0] != files[1] {
		return errors.New("--quality compares two layouts of one model; A and B have different ones")
	}
	m, err := files[0].load()
	if err != nil {
		return err
	}
	answers := c.steps("prompts")
	defer answers.clear()
	a, err := m.Agreement(ctx, tandem.AgreementTest{Reference: options[0], Tested: options[1], Positions: t.k.N, Progress: answers.update})
	if err := errors.Join(err, m.Close()); err != nil {
		return fmt.Errorf("--quality: %w", err)
	}
	out.Quality = &a
	return nil
}

func planned(f modelFlags, o tandem.Options) (tandem.MemoryPlan, error) {
	m, err := f.load()
	if err != nil {
		return tandem.MemoryPlan{}, err
	}
	info, err := m.Inspect(o)
	return info.Memory, errors.Join(err, m.Close())
}

// printLayouts writes memory and quality for a person.
func (out abOutput) printLayouts(to io.Writer) {
	if x := out.Memory; x != nil {
		side := func(m tandem.MemoryPlan) string {
			return fmt.Sprintf("%s (KV cache %s in %s)", size(m.Total), size(m.KV), m.KVType)
		}
		fmt.Fprintf(to, "memory: A %s, B %s\n", side(x.A), side(x.B))
	}
	if out.Quality == nil {
		return
	}
	q := out.Quality.All
	nats := func(x *float64) string {
		if x == nil {
			x = new(math.Inf(1))
		}
		return fmt.Sprintf("%.3g", *x)
	}
	fmt.Fprintf(to, "logits of B against A: KL %s on average, %s at most; same best token at %.2f %% of %d positions of %d prompts\n",
		nats(q.MeanKL), nats(q.MaxKL), 100*q.Top, q.Positions, q.Prompts)
	if q.First != nil {
		fmt.Fprintf(to, "first other best token: %s\n", q.First)
	}
}
