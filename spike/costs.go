package spike

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tandemrun/tandem/engine"
	"github.com/tandemrun/tandem/plan"
	"github.com/tandemrun/tandem/program"
)

// A ChunkTime is what a decode step of one stream takes in a chunk on a unit.
type ChunkTime struct {
	Name string  `json:"name"`
	Unit string  `json:"unit"`
	Cold float64 `json:"cold_ms"` // the first task since the chunk was loaded
	Warm float64 `json:"warm_ms"` // median of the steps kept
	// Steps are how many were measured, and Kept how many of them undisturbed.
	Steps int `json:"steps"`
	Kept  int `json:"kept"`
}

// How long latencies are measured: windows of some steps, each as long as a
// quiet moment of a busy machine may be; fewer on a slow unit.
const (
	windows     = 12
	windowTime  = 25 * time.Millisecond
	windowMost  = 16 // steps
	windowLeast = 3
	stepsTime   = 2500 * time.Millisecond // of all windows
	// slowStep is a step on a unit so slow that its steps begin with one token, since
	// evaluating a prompt for each window would take seconds, and that slowLeast
	// windows have to do.
	slowStep  = 100 * time.Millisecond
	slowLeast = 2
)

// latencies measures each chunk on each unit: cold, and warm in the steps of one
// stream with everything on that unit; and on the units that schedules will use
// in tasks of several streams and of blocks.
func (s *session) latencies(ctx context.Context) error {
	if !s.known {
		if err := s.describe(); err != nil {
			return err
		}
	}
	for _, u := range s.lab.Units() {
		place := s.only(u.Name)
		if !slices.Contains(place, u.Name) {
			continue
		}
		x, err := s.rigs.get(ctx, place, longestPrompt)
		if err != nil {
			return err
		}
		s.stage("chunks on %s", u.Name)
		p, err := s.paceOf(ctx, x)
		if err != nil {
			return fmt.Errorf("chunks on %s: %w", u.Name, err)
		}
		warm, err := s.steps(ctx, x, p)
		if err != nil {
			return fmt.Errorf("chunks on %s: %w", u.Name, err)
		}
		for i := range place {
			p.took = append(p.took, warm.median(i))
		}
		s.paces[u.Name] = p
		for i, name := range place {
			if name != u.Name {
				continue
			}
			c := ChunkTime{Name: s.chunk(i), Unit: name, Cold: ms(x.first[i]), Warm: warm.median(i), Steps: warm.steps, Kept: warm.kept}
			s.r.Chunks = append(s.r.Chunks, c)
			s.raw.add(Line{Kind: "cold", Chunk: c.Name, Unit: name, MS: &c.Cold})
			if !s.known {
				one := []plan.Sample{{N: 1, Time: milliseconds(c.Warm)}}
				s.costs.Chunks[i].On[name] = plan.Cost{Rows: one, Streams: slices.Clone(one), Cold: x.first[i]}
			}
		}
		if !s.known {
			s.wake(warm)
			if t := warm.between[u.Name]; len(t) > 0 {
				s.costs.Units[slices.IndexFunc(s.costs.Units, func(x plan.Unit) bool { return x.Name == u.Name })].Between = milliseconds(median(t))
			}
			if host := milliseconds(median(warm.host)); s.costs.Host == 0 || host < s.costs.Host {
				s.costs.Host = host
			}
		}
	}
	if s.known {
		return nil
	}
	if err := s.size(ctx); err != nil {
		return err
	}
	for _, name := range s.used() {
		x, err := s.rigs.get(ctx, s.only(name), longestPrompt)
		if err != nil {
			return err
		}
		for _, learn := range []func(context.Context, *rig, string) error{s.merged, s.blocks} {
			if err := learn(ctx, x, name); err != nil {
				return fmt.Errorf("chunks on %s: %w", name, err)
			}
		}
	}
	return nil
}

// only is the placement with everything on a unit that can be there.
func (s *session) only(unit string) []string {
	place := slices.Clone(s.o.Base)
	for i := range place {
		if s.lab.CanRun(i, unit) {
			place[i] = unit
		}
	}
	return place
}

// used are the units that schedules will use, the base's first.
func (s *session) used() []string {
	var out []string
	for _, name := range slices.Concat(s.o.Base, s.o.Moved, s.o.Prefill, []string{s.single()}) {
		if name != "" && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

func (s *session) chunk(i int) string { return fmt.Sprintf("c%d", i+1) }

// describe begins the costs with what is known of the chunks and units.
func (s *session) describe() error {
	c := &plan.Costs{Name: s.lab.Name(), Wanted: engine.WantedRows(longestPrompt, s.lab.Model().Vocab)}
	for _, u := range s.lab.Units() {
		c.Units = append(c.Units, plan.Unit{Name: u.Name})
	}
	var programs []*program.Program
	for i, r := range s.lab.Ranges() {
		p, err := s.lab.Model().Program(r.First, r.Last)
		if err != nil {
			return err
		}
		x := plan.Chunk{Name: s.chunk(i), WantedOnly: true, On: map[string]plan.Cost{}}
		for _, b := range p.Buffers {
			x.WantedOnly = x.WantedOnly && b.Rows == program.Wanted
		}
		for _, in := range p.Inputs {
			if from := giver(programs, in); from >= 0 {
				x.Takes = append(x.Takes, plan.Source{From: from, Bytes: int64(4 * in.View.Width)})
			}
		}
		for _, cache := range p.Caches {
			if cache.Own {
				continue
			}
			for from, other := range s.lab.Ranges()[:i] {
				if cache.Layer >= other.First && cache.Layer < other.Last {
					x.Reads = append(x.Reads, plan.Source{From: from, Bytes: int64(4 * (cache.KeyWidth() + cache.ValueWidth()))})
				}
			}
		}
		programs = append(programs, p)
		c.Chunks = append(c.Chunks, x)
	}
	s.costs = c
	return nil
}

// giver is the latest of programs that hands over what a port takes, or -1.
func giver(programs []*program.Program, in program.Port) int {
	for i := len(programs) - 1; i >= 0; i-- {
		for _, out := range programs[i].Outputs {
			if out.Name == in.Name && out.Rows == in.Rows && out.Col <= in.Col && in.Col+in.View.Width <= out.Col+out.View.Width {
				return i
			}
		}
	}
	return -1
}

// chain is what steps of one stream were made of.
type chain struct {
	chunks  [][]float64 // milliseconds, by chunk
	in      [][]float64 // of that, taking what other units give
	out     [][]float64 // of that, cache rows for other units
	host    []float64   // from the last task of a step to when the next was asked for
	wake    map[string][]float64
	between map[string][]float64 // from a task to the next on the same unit
	steps   int                  // measured
	kept    int                  // of them undisturbed, and in the lists; if none was, all are
}

func newChain(chunks int) chain {
	c := chain{wake: map[string][]float64{}, between: map[string][]float64{}}
	for _, list := range []*[][]float64{&c.chunks, &c.in, &c.out} {
		*list = make([][]float64, chunks)
	}
	return c
}

func (c chain) median(chunk int) float64 { return median(c.chunks[chunk]) }

// chains are steps of one stream, all of them and those undisturbed.
type chains struct{ quiet, all chain }

func newChains(chunks int) chains { return chains{newChain(chunks), newChain(chunks)} }

// result is the undisturbed ones, or all if there were none.
func (c *chains) result() chain {
	c.quiet.steps = c.all.steps
	if c.quiet.kept == 0 {
		return c.all
	}
	return c.quiet
}

// A pace is how steps of one stream are measured on a unit, and what they took
// when the costs were.
type pace struct {
	prompt Prompt
	steps  int       // of a window
	least  int       // windows
	took   []float64 // milliseconds, by chunk
}

// paceOf warms an engine up and chooses how its steps are measured.
func (s *session) paceOf(ctx context.Context, x *rig) (*pace, error) {
	const warmup = 3
	p := s.lab.Prompts()[0]
	first := Prompt{p.Category, p.Name, p.Tokens[:1]}
	r, err := s.decode(ctx, x, []Prompt{first}, warmup, 1)
	if err != nil {
		return nil, err
	}
	step, least := r.wall/warmup, windowLeast
	if step > slowStep {
		p, least = first, slowLeast
	}
	return &pace{prompt: p, least: least, steps: max(1, min(int(windowTime/max(step, 1)), windowMost, s.o.Tokens-1))}, nil
}

// steps decodes with one stream and looks at its tasks.
func (s *session) steps(ctx context.Context, x *rig, p *pace) (chain, error) {
	c := newChains(len(x.place))
	begin := x.e.Now()
	for w := 0; w < windows || c.quiet.kept < c.all.steps/3 && w < 3*windows; w++ {
		if w >= p.least && (p.least < windowLeast || x.e.Now().Sub(begin) > stepsTime) {
			break
		}
		if _, err := s.window(ctx, x, p, w, &c); err != nil {
			return c.all, err
		}
	}
	return c.result(), nil
}

// window decodes some steps with one stream, adds their tasks to the chains and
// tells whether they were undisturbed.
func (s *session) window(ctx context.Context, x *rig, p *pace, trial int, to *chains) (quiet bool, err error) {
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	r, err := s.decode(ctx, x, []Prompt{p.prompt}, p.steps+1, 1) // the first one begins in a unit at rest
	if err != nil {
		return false, err
	}
	to.all.add(x, p.steps)
	if r.quiet {
		to.quiet.add(x, p.steps)
		to.quiet.kept += p.steps
	}
	s.raw.add(Line{Kind: "step", Placement: Placement(x.place), Rows: p.steps, Trial: number(trial), MS: number(ms(r.wall) / float64(p.steps+1)), DelayMS: number(ms(r.delay)), Kept: &r.quiet})
	return r.quiet, nil
}

// join takes the steps of another chain.
func (c *chain) join(o chain) {
	for i := range c.chunks {
		c.chunks[i], c.in[i], c.out[i] = append(c.chunks[i], o.chunks[i]...), append(c.in[i], o.in[i]...), append(c.out[i], o.out[i]...)
	}
	c.host = append(c.host, o.host...)
	for name, t := range o.wake {
		c.wake[name] = append(c.wake[name], t...)
	}
	for name, t := range o.between {
		c.between[name] = append(c.between[name], t...)
	}
	c.steps, c.kept = c.steps+o.steps, c.kept+o.kept
}

// add takes the tasks of the last steps of a window, never those of its first.
func (c *chain) add(x *rig, steps int) {
	c.steps += steps
	var last engine.Record
	records := x.record.Records()
	for i, r := range records {
		p := r.Parts[0]
		if i >= max(len(records)-steps*len(x.place), len(x.place)) {
			c.chunks[r.Chunk] = append(c.chunks[r.Chunk], ms(r.End.Sub(r.Start)))
			c.in[r.Chunk] = append(c.in[r.Chunk], ms(r.CopyTime-r.CopyOutTime))
			c.out[r.Chunk] = append(c.out[r.Chunk], ms(r.CopyOutTime))
			name := x.place[r.Chunk]
			if r.Chunk == 0 {
				c.host = append(c.host, ms(p.Submitted.Sub(last.End)))
			} else if r.Unit == last.Unit {
				c.between[name] = append(c.between[name], ms(r.Start.Sub(last.End)))
			}
			if r.Chunk == 0 || len(p.From) > 0 {
				c.wake[name] = append(c.wake[name], ms(r.Start.Sub(p.Ready)))
			}
		}
		last = r
	}
}

// wake takes how long units took to begin when they were at rest.
func (s *session) wake(c chain) {
	for i := range s.costs.Units {
		u := &s.costs.Units[i]
		if w := c.wake[u.Name]; len(w) > 0 {
			u.Wake = milliseconds(max(median(w), 0))
		}
	}
}

func milliseconds(x float64) time.Duration { return time.Duration(x * float64(time.Millisecond)) }
