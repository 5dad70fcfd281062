package tandem

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tandemrun/tandem/machine"
	"github.com/tandemrun/tandem/probe"
)

// A Probe says which two chunks to measure, and on which units.
type Probe struct {
	// Pair is two chunks with their units: "c2@cpu:0,c3@cpu:1". The unit may be
	// left out; the layout's is meant then.
	Pair string
	// Layout is how the model is split, and where the other chunks are.
	Layout Options
	Trials int // of each kind; 0 is 10
	// Tokens are evaluated before the trials, so that they see a context; nil
	// means a short prompt.
	Tokens []int32
}

// A ProbeResult is what a probe measured. Times are in milliseconds. Those
// without another word are means over all trials, as the seed documents print
// them; medians and the verdict are over the trials kept.
type ProbeResult struct {
	A            string  `json:"a"`
	B            string  `json:"b"`
	UnitA        string  `json:"a_unit"`
	UnitB        string  `json:"b_unit"`
	AMs          float64 `json:"a_ms"`
	BMs          float64 `json:"b_ms"`
	SequentialMs float64 `json:"sequential_ms"`
	ParallelMs   float64 `json:"parallel_ms"`

	AMedianMs          float64 `json:"a_median_ms"`
	BMedianMs          float64 `json:"b_median_ms"`
	SequentialMedianMs float64 `json:"sequential_median_ms"`
	ParallelMedianMs   float64 `json:"parallel_median_ms"`
	AColdMs            float64 `json:"a_cold_ms"` // the first run since the chunk was loaded
	BColdMs            float64 `json:"b_cold_ms"`

	Overlap       float64 `json:"overlap_factor"`
	OverlapMedian float64 `json:"overlap_factor_median"`
	Verdict       string  `json:"verdict"`
	// Control is the same pair with both chunks on one unit.
	Control       float64 `json:"control_overlap_factor"`
	ControlMedian float64 `json:"control_overlap_factor_median"`
	ControlUnit   string  `json:"control_unit"`
	Trials        int     `json:"trials"` // of all kinds, without the control's
	Kept          int     `json:"kept"`   // undisturbed
	ControlTrials int     `json:"control_trials"`
	ControlKept   int     `json:"control_kept"`

	// Lines are the two lines of the seed documents and a third with the verdict.
	Lines string `json:"-"`
}

// Probe measures two chunks alone, one after the other and both at once, and
// then the same with both on one unit.
func (m *Model) Probe(ctx context.Context, p Probe) (ProbeResult, error) {
	names, err := m.chunkUnits(p.Layout)
	if err != nil {
		return ProbeResult{}, err
	}
	a, b, err := pair(p.Pair, names)
	if err != nil {
		return ProbeResult{}, err
	}
	tokens := p.Tokens
	if tokens == nil {
		if tokens, err = m.someTokens(); err != nil {
			return ProbeResult{}, err
		}
	}
	var delay machine.DelayMeter
	defer delay.Close()
	run := func(names []string) (probe.Result, error) {
		o := p.Layout
		o.Place, o.Streams = placement(names), 2
		e, err := m.Open(ctx, o)
		if err != nil {
			return probe.Result{}, err
		}
		r, err := probe.Pair(ctx, e.e, probe.Options{A: a, B: b, Tokens: tokens, Trials: p.Trials, Delay: delay.Read})
		if e := e.Close(); err == nil {
			err = e
		}
		return r, err
	}
	return probeBoth(run, names, a, b, func(int, string) bool { return true })
}

// probeBoth runs a probe, and then the control on the unit of one of the chunks.
func probeBoth(run func(names []string) (probe.Result, error), names []string, a, b int, can func(chunk int, unit string) bool) (ProbeResult, error) {
	for _, i := range []int{a, b} {
		if !can(i, names[i]) {
			return ProbeResult{}, fmt.Errorf("--pair: c%d cannot be on %q", i+1, names[i])
		}
	}
	r, err := run(names)
	if err != nil {
		return ProbeResult{}, err
	}
	switch {
	case can(b, names[a]):
		names[b] = names[a]
	case can(a, names[b]):
		names[a] = names[b]
	default:
		return ProbeResult{}, fmt.Errorf("--pair: neither %s nor %s can run both chunks, so there is no control", names[a], names[b])
	}
	control, err := run(names)
	if err != nil {
		return ProbeResult{}, err
	}
	return probeResult(r, control), nil
}

func probeResult(r, control probe.Result) ProbeResult {
	ms := func(d time.Duration) float64 { return d.Seconds() * 1e3 }
	return ProbeResult{
		A: r.A, B: r.B, UnitA: r.UnitA, UnitB: r.UnitB,
		AMs: ms(r.AloneA.Mean), BMs: ms(r.AloneB.Mean), SequentialMs: ms(r.Sequential.Mean), ParallelMs: ms(r.Parallel.Mean),
		AMedianMs: ms(r.AloneA.Median), BMedianMs: ms(r.AloneB.Median),
		SequentialMedianMs: ms(r.Sequential.Median), ParallelMedianMs: ms(r.Parallel.Median),
		AColdMs: ms(r.ColdA), BColdMs: ms(r.ColdB),
		Overlap: r.Overlap, OverlapMedian: r.OverlapKept, Verdict: r.Verdict,
		Control: control.Overlap, ControlMedian: control.OverlapKept,
		ControlUnit: control.UnitA, Trials: r.Trials, Kept: r.Kept, ControlTrials: control.Trials, ControlKept: control.Kept,
		Lines: r.Lines() + fmt.Sprintf("\n[Spike] VERDICT: %s overlap (%d of %d trials kept, same-unit control %.2f)", r.Verdict, r.Kept, r.Trials, control.Overlap),
	}
}

// chunkUnits is the unit of each chunk of a layout.
func (m *Model) chunkUnits(o Options) ([]string, error) {
	l, err := m.layout(o)
	return l.names, err
}

// placement writes the units of all chunks as Options.Place has them.
func placement(names []string) string {
	var out []string
	for i, name := range names {
		out = append(out, fmt.Sprintf("c%d=%s", i+1, name))
	}
	return strings.Join(out, ",")
}

// pair reads "c2@cpu:0,c3@cpu:1" and sets the units in names.
func pair(spec string, names []string) (a, b int, err error) {
	one, two, ok := strings.Cut(spec, ",")
	if !ok {
		return 0, 0, fmt.Errorf("--pair %q: give two chunks and their units, such as c2@cpu:0,c3@cpu:1", spec)
	}
	var at [2]int
	for i, part := range []string{one, two} {
		chunk, name, placed := strings.Cut(part, "@")
		n, err := strconv.Atoi(strings.TrimPrefix(chunk, "c"))
		if err != nil || !strings.HasPrefix(chunk, "c") || placed && name == "" {
			return 0, 0, fmt.Errorf("--pair %s: %q is not of the form c2@UNIT", spec, part)
		}
		if n < 1 || n > len(names) {
			return 0, 0, fmt.Errorf("--pair %s: there is no chunk %s; there are c1 to c%d", spec, chunk, len(names))
		}
		at[i] = n - 1
		if placed {
			names[n-1] = name
		}
	}
	if at[0] == at[1] {
		return 0, 0, fmt.Errorf("--pair %s: a probe needs two different chunks", spec)
	}
	return at[0], at[1], nil
}

// someTokens is a short prompt, or made-up ids where there is no vocabulary.
func (m *Model) someTokens() ([]int32, error) {
	if m.vocab != nil && m.chatErr == nil {
		return m.Prompt([]Message{{Role: "user", Content: "Name three rivers and the seas they flow into, one in each line."}})
	}
	tokens := make([]int32, 16)
	for i := range tokens {
		tokens[i] = int32((i*37 + 11) % m.model.Vocab)
	}
	return tokens, nil
}
