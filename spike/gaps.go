package spike

import (
	"context"
	"slices"
	"time"

	"github.com/tandemrun/tandem/plan"
)

// Gaps are what is between the tasks of several streams that are kept apart. They
// are longer than those of one: a unit that wakes another goes on with a task
// meanwhile, and the streams' own work meets workers on its core.
type gaps struct {
	wake, between map[string][]float64 // milliseconds, by unit
	host          []float64
	quiet         bool // they were measured undisturbed
}

// of is their middle, or the first quartile if they were disturbed: a gap in which
// another process has the CPU is longer than all others.
func (g *gaps) of(x []float64) float64 {
	if g.quiet {
		return median(x)
	}
	return quartile(x)
}

// gapWindows is how many windows gaps are taken from.
const gapWindows = 6

// gapsOf measures the gaps of two streams on a placement, once.
func (s *session) gapsOf(ctx context.Context, place []string) (*gaps, error) {
	name := Placement(place)
	if g := s.gaps[name]; g != nil {
		return g, nil
	}
	x, err := s.rigs.get(ctx, place, longestPrompt)
	if err != nil {
		return nil, err
	}
	p := s.paces[place[0]]
	g, loud := newGaps(), newGaps()
	begin, kept := x.e.Now(), 0
	for w := 0; w < gapWindows && (w < windowLeast || x.e.Now().Sub(begin) < stepsTime); w++ {
		r, err := s.decode(ctx, x, []Prompt{p.prompt, p.prompt}, p.steps+1, 1, 0)
		if err != nil {
			return nil, err
		}
		if r.quiet {
			kept++
			g.add(x)
		} else {
			loud.add(x)
		}
	}
	if g.quiet = kept > 0; !g.quiet {
		g = loud
	}
	for _, unit := range distinct(place) {
		for what, t := range map[string][]float64{"wake": g.wake[unit], "between": g.between[unit]} {
			if len(t) > 0 {
				s.raw.add(Line{Kind: "gap", Placement: name, Unit: unit, What: what, Streams: 2, MS: number(g.of(t)), Kept: &g.quiet})
			}
		}
	}
	s.gaps[name] = g
	return g, nil
}

func newGaps() *gaps { return &gaps{wake: map[string][]float64{}, between: map[string][]float64{}} }

// add takes the gaps of what an engine did last, but those of each stream's first
// step.
func (g *gaps) add(x *rig) {
	units, streams := map[int]time.Time{}, map[int]time.Time{} // end of the last task
	for _, r := range x.record.Records() {
		p := r.Parts[0]
		before, ok := units[r.Unit]
		unit := x.place[r.Chunk]
		switch {
		case !ok:
		case p.Ready.After(before):
			g.wake[unit] = append(g.wake[unit], ms(r.Start.Sub(p.Ready)))
		default:
			g.between[unit] = append(g.between[unit], ms(r.Start.Sub(before)))
		}
		if last, ok := streams[p.Stream]; ok && r.Chunk == 0 {
			g.host = append(g.host, ms(p.Submitted.Sub(last)))
		}
		units[r.Unit], streams[p.Stream] = r.End, r.End
	}
}

// put returns costs with these gaps.
func (g *gaps) put(c *plan.Costs) *plan.Costs {
	out := *c
	out.Units = slices.Clone(c.Units)
	for i := range out.Units {
		u := &out.Units[i]
		if t := g.wake[u.Name]; len(t) > 0 {
			u.Wake = milliseconds(g.of(t))
		}
		if t := g.between[u.Name]; len(t) > 0 {
			u.Between = milliseconds(g.of(t))
		}
	}
	if len(g.host) > 0 {
		out.Host = milliseconds(g.of(g.host))
	}
	return &out
}
