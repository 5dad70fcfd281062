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
		warm, err := s.steps(ctx, x)
		if err != nil {
			return fmt.Errorf("chunks on %s: %w", u.Name, err)
		}
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
	for _, name := range slices.Concat(s.o.Base, s.o.Moved, []string{s.single()}) {
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
	chunks [][]float64 // milliseconds, by chunk
	in     [][]float64 // of that, taking what other units give
	out    [][]float64 // of that, cache rows for other units
	host   []float64   // from the last task of a step to when the next was asked for
	wake   map[string][]float64
	steps  int // measured
	kept   int // of them undisturbed, and in the lists; if none was, all are
}

func newChain(chunks int) chain {
	c := chain{wake: map[string][]float64{}}
	for _, list := range []*[][]float64{&c.chunks, &c.in, &c.out} {
		*list = make([][]float64, chunks)
	}
	return c
}

func (c chain) median(chunk int) float64 { return median(c.chunks[chunk]) }

// steps decodes with one stream and looks at its tasks.
func (s *session) steps(ctx context.Context, x *rig) (chain, error) {
	quiet, all := newChain(len(x.place)), newChain(len(x.place))
	p := s.lab.Prompts()[0]
	const warmup = 2
	n := 1
	begin := x.e.Now()
	for w := -1; w < windows || quiet.kept < all.steps/3 && w < 3*windows; w++ {
		if ctx.Err() != nil {
			return all, context.Cause(ctx)
		}
		if w >= windowLeast && x.e.Now().Sub(begin) > stepsTime {
			break
		}
		tokens := n
		if w < 0 {
			tokens = warmup
		}
		r, err := s.decode(ctx, x, []Prompt{p}, tokens+1, 1, 0) // the first one begins in a unit at rest
		if err != nil {
			return all, err
		}
		if w < 0 {
			step := r.wall / (warmup + 1)
			n = max(1, min(int(windowTime/max(step, 1)), windowMost, s.o.Tokens-1))
			continue
		}
		all.add(x, tokens)
		if r.quiet {
			quiet.add(x, tokens)
			quiet.kept += tokens
		}
		s.raw.add(Line{Kind: "step", Placement: Placement(x.place), Rows: tokens, Trial: number(w), MS: number(ms(r.wall) / float64(tokens+1)), DelayMS: number(ms(r.delay)), Kept: &r.quiet})
	}
	quiet.steps = all.steps
	if quiet.kept == 0 {
		return all, nil
	}
	return quiet, nil
}

// add takes the tasks of a window, but those of its first step.
func (c *chain) add(x *rig, steps int) {
	c.steps += steps
	var last time.Time
	for i, r := range x.record.Records() {
		p := r.Parts[0]
		if i >= len(x.place) {
			c.chunks[r.Chunk] = append(c.chunks[r.Chunk], ms(r.End.Sub(r.Start)))
			c.in[r.Chunk] = append(c.in[r.Chunk], ms(r.CopyTime-r.CopyOutTime))
			c.out[r.Chunk] = append(c.out[r.Chunk], ms(r.CopyOutTime))
			if r.Chunk == 0 {
				c.host = append(c.host, ms(p.Submitted.Sub(last)))
			}
			if r.Chunk == 0 || len(p.From) > 0 {
				name := x.place[r.Chunk]
				c.wake[name] = append(c.wake[name], ms(r.Start.Sub(p.Ready)))
			}
		}
		last = r.End
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
