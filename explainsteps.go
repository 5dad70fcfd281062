package tandem

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tandemrun/tandem/budget"
	"github.com/tandemrun/tandem/engine"
	"github.com/tandemrun/tandem/machine"
	"github.com/tandemrun/tandem/probe"
	"github.com/tandemrun/tandem/program"
	"github.com/tandemrun/tandem/sampler"
	"github.com/tandemrun/tandem/speed"
	"github.com/tandemrun/tandem/unit/cpu/kernel"
)

// Explain measures decode steps of one stream and explains them.
func (m *Model) Explain(ctx context.Context, t ExplainTest) (Explanation, error) {
	if t.Depth == 0 {
		t.Depth = 128
	}
	if t.Steps == 0 {
		t.Steps = 48
	}
	if t.Depth < 1 || t.Steps < 3 {
		return Explanation{}, fmt.Errorf("%d steps behind %d positions: it must be at least 3 and 1", t.Steps, t.Depth)
	}
	t.Options.Streams, t.Options.TimeOps = 1, false
	l, err := m.layout(t.Options)
	if err != nil {
		return Explanation{}, err
	}
	if need := t.Depth + max(t.Steps, 4) + warmSteps; need > l.o.Context {
		return Explanation{}, fmt.Errorf("%d steps behind %d positions need a context of %d, and it is %d; give --ctx", t.Steps, t.Depth, need, l.o.Context)
	}
	out := Explanation{
		Source: m.Name(), Units: strings.ReplaceAll(placement(l.names), ",", " "), KV: l.o.KV.String(), Depth: t.Depth, Steps: t.Steps,
	}
	ceilings, err := m.unitCeilings(l, t.Options, &out)
	if err != nil {
		return out, err
	}
	s, kept, err := m.timeSteps(ctx, t)
	if err != nil {
		return out, err
	}
	out.Kept = kept
	note, err := m.inCaches()
	if err != nil {
		return out, err
	}
	if s.InCaches = note != ""; s.InCaches {
		out.Notes = append(out.Notes, note)
	}
	for i, r := range l.ranges {
		p, err := m.model.Program(r.First, r.Last)
		if err != nil {
			return out, err
		}
		c, known := ceilings[l.names[i]]
		if !known {
			continue
		}
		weights, _ := p.Bytes()
		read := float64(weights) / c.Read * 1e3
		multiply := float64(speed.Operations(p, 1, 1)) / c.Multiply * 1e3
		s.Chunks[i].Arithmetic = &multiply
		if !s.InCaches {
			s.Chunks[i].Memory = &read
		}
	}
	if err := m.timeOps(ctx, t, &s, &out); err != nil {
		return out, err
	}
	for _, name := range t.Units {
		if err := m.moves(ctx, t, l, name, &s); err != nil {
			return out, err
		}
	}
	s.KV = out.KV
	out.Report = budget.Explain(s)
	return out, nil
}

// inCaches reports whether the weights are so much smaller than the last level
// of caches that they stay there. That level is often shared with others.
func (m *Model) inCaches() (note string, err error) {
	host, err := machine.Detect()
	if err != nil {
		return "", fmt.Errorf("finding the caches of this machine: %w", err)
	}
	var level int
	var size int64
	for _, c := range host.Caches {
		if c.Level > level {
			level, size = c.Level, c.Bytes
		}
	}
	whole, err := m.model.Program(0, len(m.model.Layers))
	if err != nil {
		return "", err
	}
	if weights, _ := whole.Bytes(); weights*8 < size {
		note = fmt.Sprintf("the weights (%s) stay in a cache of %s, so the memory's ceiling is none for them", mib(weights), mib(size))
	}
	return note, nil
}

// unitCeilings measures how fast each CPU unit of a layout can be. Of other
// units that is not known.
func (m *Model) unitCeilings(l layout, o Options, out *Explanation) (map[string]speedOf, error) {
	host, err := machine.Detect()
	if err != nil {
		return nil, fmt.Errorf("finding the cores of this machine: %w", err)
	}
	known := map[string]speedOf{}
	seen := map[string]bool{}
	for _, name := range l.names {
		if seen[name] {
			continue
		}
		seen[name] = true
		if kind, _, _ := strings.Cut(name, ":"); kind != defaultUnit {
			out.Notes = append(out.Notes, "the ceilings of "+name+" are not known")
			continue
		}
		cores, err := unitCores(name, host)
		if err != nil {
			return nil, err
		}
		if o.Threads > 0 {
			cores = cores[:min(len(cores), o.Threads)]
		}
		g, err := speed.NewGauge(speed.GaugeConfig{CPUs: cores, ISA: kernel.Best(), Bytes: speed.ReadBytes(host)})
		if err != nil {
			return nil, err
		}
		var read, multiply []float64
		for range 5 {
			read, multiply = append(read, g.Read()), append(multiply, g.Multiply())
		}
		if err := g.Close(); err != nil {
			return nil, err
		}
		known[name] = speedOf{speed.Median(read), speed.Median(multiply)}
		out.Ceilings = append(out.Ceilings, UnitCeiling{name, known[name].Read / 1e9, known[name].Multiply / 1e9})
	}
	return known, nil
}

// speedOf is a unit's ceilings, in bytes and operations a second.
type speedOf struct{ Read, Multiply float64 }

// warmSteps are decoded before those that count.
const warmSteps = 8

// A timedStep is one decode step as it was.
type timedStep struct {
	begin, logits, chosen time.Time // asked for; the logits were there; the token was chosen
	tasks                 []Record
	waited                float64 // share of the step in which the units' threads waited for a CPU
}

// A decoding is a stream that decodes greedily behind a made-up text.
type decoding struct {
	engine         *Engine
	stream         *engine.Stream
	picker         *sampler.Sampler
	text           []int32 // before the steps
	next           int32
	logits, chosen time.Time
	delay          machine.DelayMeter
}

// decoding opens an engine with a stream that has evaluated its text and decoded
// some tokens. Close closes it.
func (m *Model) decoding(ctx context.Context, t ExplainTest, o Options) (*decoding, error) {
	e, err := m.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	d := &decoding{engine: e, picker: sampler.New(Sampling{}), text: make([]int32, t.Depth)}
	if d.stream, err = e.e.Stream(ctx); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	for i := range d.text {
		d.text[i] = int32((i*i*31 + i*97 + 7) % m.model.Vocab)
	}
	if err = d.back(ctx); err == nil {
		_, err = d.steps(ctx, warmSteps)
	}
	if err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

func (d *decoding) close() error {
	d.stream.Close()
	d.delay.Close()
	return d.engine.Close()
}

func (d *decoding) pick(_ int, row []float32) error {
	d.logits = time.Now()
	d.next = d.picker.Pick(row)
	d.chosen = time.Now()
	return nil
}

// steps decodes tokens.
func (d *decoding) steps(ctx context.Context, n int) (out []timedStep, err error) {
	before, _ := d.delay.Read()
	for range n {
		begin := time.Now()
		if err := d.stream.Forward(ctx, []int32{d.next}, engine.Last, d.pick); err != nil {
			return nil, err
		}
		after, _ := d.delay.Read()
		x := timedStep{begin, d.logits, d.chosen, slices.Clone(d.stream.Records()), float64(after-before) / float64(max(d.chosen.Sub(begin), 1))}
		slices.SortFunc(x.tasks, func(a, b Record) int { return a.Start.Compare(b.Start) })
		out = append(out, x)
		before = after
	}
	return out, nil
}

// back goes back to the end of the text, which is evaluated again where a sliding
// window has left it: so the next steps are as deep as the last ones were.
func (d *decoding) back(ctx context.Context) error {
	if d.stream.Return(len(d.text)) {
		return nil
	}
	d.stream.Return(0)
	return d.stream.Forward(ctx, d.text, engine.Last, d.pick)
}

// kept are the steps that count, by the rule of package probe.
func kept(steps []timedStep) []timedStep {
	shares := make([]float64, len(steps))
	for i, x := range steps {
		shares[i] = x.waited
	}
	indices, _ := probe.Keep(shares, 3)
	var out []timedStep
	for _, i := range indices {
		out = append(out, steps[i])
	}
	return out
}

// timeSteps measures the parts of a step: means over the steps that are kept.
func (m *Model) timeSteps(ctx context.Context, t ExplainTest) (s budget.Step, n int, err error) {
	d, err := m.decoding(ctx, t, t.Options)
	if err != nil {
		return s, 0, err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	steps, err := d.steps(ctx, t.Steps)
	if err != nil {
		return s, 0, err
	}
	steps = kept(steps)
	return partsOf(steps, d.engine.Chunks()), len(steps), nil
}

// partsOf are the parts of a step: means over some.
func partsOf(steps []timedStep, chunks []Chunk) budget.Step {
	s := budget.Step{Copies: new(float64)}
	for _, c := range chunks {
		s.Chunks = append(s.Chunks, budget.Chunk{Name: c.Name, Unit: c.Unit})
	}
	n := float64(len(steps))
	for _, x := range steps {
		at := x.begin
		for _, r := range x.tasks {
			c := &s.Chunks[r.Chunk]
			// Tasks of a chain do not overlap; where copies did, time counts once.
			c.Gap += ms(max(0, r.Start.Sub(at))) / n
			if r.Start.After(at) {
				at = r.Start
			}
			c.MS += ms(max(0, r.End.Sub(at))) / n
			*s.Copies += ms(r.CopyTime) / n
			if r.End.After(at) {
				at = r.End
			}
		}
		s.End += ms(x.logits.Sub(at)) / n
		s.Host += ms(x.chosen.Sub(x.logits)) / n
	}
	return s
}

// timeOps measures what operations take, in an engine of its own, since timing
// them makes steps a little slower; shares are carried over to the untimed step.
func (m *Model) timeOps(ctx context.Context, t ExplainTest, s *budget.Step, out *Explanation) (err error) {
	o := t.Options
	o.TimeOps = true
	d, err := m.decoding(ctx, t, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	d.engine.OpTimes() // of the text
	if _, err := d.steps(ctx, t.Steps); err != nil {
		return err
	}
	ops := d.engine.OpTimes()
	var all time.Duration
	for _, x := range ops {
		all += x.Time
	}
	if all == 0 {
		return nil // the units do not tell
	}
	var inTasks float64
	for _, c := range s.Chunks {
		inTasks += c.MS
	}
	attention := 0.0
	for _, x := range ops {
		share := float64(x.Time) / float64(all)
		i := slices.IndexFunc(out.Ops, func(y OpShare) bool { return y.Name == x.Name })
		if i < 0 {
			i, out.Ops = len(out.Ops), append(out.Ops, OpShare{Name: x.Name})
		}
		out.Ops[i].MS += share * inTasks
		out.Ops[i].Share += share
		if x.Name == (program.Attention{}).Name() {
			attention += share * inTasks
		}
	}
	slices.SortStableFunc(out.Ops, func(a, b OpShare) int { return cmp.Compare(b.MS, a.MS) })
	s.Attention = &attention
	return nil
}

// moves measures steps with each chunk that is elsewhere moved to a unit, one at
// a time, and with all of them there. These are steps as they are, with the
// handoffs, wakes and copies that a move brings or saves. They take turns with
// steps of the layout as it is: what a move changes is the ratio to those, so
// that the machine's speed may drift meanwhile.
func (m *Model) moves(ctx context.Context, t ExplainTest, l layout, name string, s *budget.Step) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("--units %s: %w", name, err)
		}
	}()
	var moved []int
	for i, now := range l.names {
		if now != name {
			moved = append(moved, i)
		}
	}
	if len(moved) == 0 {
		return nil // everything is there already
	}
	base, err := m.decoding(ctx, t, t.Options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, base.close()) }()
	step := budget.Explain(*s).StepMS
	add := func(chunk string, names []string) error {
		ratio, err := m.ratio(ctx, t, base, names)
		s.Moves = append(s.Moves, budget.Move{Chunk: chunk, Unit: name, Step: ratio * step, Measured: true})
		return err
	}
	if len(l.names) > 1 {
		for _, i := range moved {
			names := slices.Clone(l.names)
			names[i] = name
			if err := add(s.Chunks[i].Name, names); err != nil {
				return err
			}
		}
		if len(moved) == 1 {
			return nil // all of them are there then
		}
	}
	return add("all", slices.Repeat([]string{name}, len(l.names)))
}

// moveTurns is how often a layout and another take turns.
const moveTurns = 3

// ratio is how many times as long a step takes with the chunks on other units.
func (m *Model) ratio(ctx context.Context, t ExplainTest, base *decoding, names []string) (x float64, err error) {
	o := t.Options
	o.Place = placement(names)
	other, err := m.decoding(ctx, t, o)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, other.close()) }()
	var steps [2][]timedStep
	for range moveTurns {
		for i, d := range []*decoding{base, other} {
			if err := d.back(ctx); err != nil {
				return 0, err
			}
			more, err := d.steps(ctx, 1+max(t.Steps/moveTurns, 3))
			if err != nil {
				return 0, err
			}
			steps[i] = append(steps[i], more[1:]...) // the first one finds the units asleep
		}
	}
	now := budget.Explain(partsOf(kept(steps[1]), other.engine.Chunks())).StepMS
	return now / budget.Explain(partsOf(kept(steps[0]), base.engine.Chunks())).StepMS, nil
}
