package spike

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tandemrun/tandem/plan"
)

// The speed of a machine drifts by tens of percent in seconds: its clock, other
// virtual machines on the host. So right before each run of a schedule some steps
// of it are looked at, and the run is predicted with the costs as these find them.

// driftTries is how often that is tried until it was undisturbed.
const driftTries = 2

// leadSteps lead to the first look at a schedule in a turn, for leadTime at most:
// behind a prompt, or after others had their turns, steps of a small model took up
// to 1.7 times as long at first and became faster for some forty.
const (
	leadSteps = 40
	leadTime  = 150 * time.Millisecond
)

// A state is the costs as they are at some moment.
type state struct {
	costs *plan.Costs
	quiet bool   // they were measured undisturbed
	by    speeds // how they were found
}

// Speeds are how many times as long the tasks of units took at some moment as when
// the costs were measured.
type speeds map[string]float64

// steadyMost is by how much the speed of a unit may differ between the looks
// before and after a run for the run to count as undisturbed: a prediction
// cannot know that another guest of the host began something meanwhile.
const steadyMost = 0.05

// steady reports whether the units were as fast in both of two looks.
func steady(a, b speeds) bool {
	for unit, by := range a {
		if math.Abs(b[unit]/by-1) > steadyMost {
			return false
		}
	}
	return true
}

// contended are costs with the contention of the units of a placement as it is
// now.
func (s *session) contended(ctx context.Context, place []string) (*plan.Costs, error) {
	pair := s.pairs[Placement(place)]
	if pair == nil {
		return s.costs, nil
	}
	if err := s.race(ctx, pair, 1, driftTries); err != nil {
		return nil, err
	}
	return beside(s.costs, pair), nil
}

// now takes a glance at a schedule in a turn; lead says that the turn begins.
func (s *session) now(ctx context.Context, t *turn, lead bool) (state, error) {
	k := several{t.r.Streams, t.r.Merge}
	steps := 1
	if lead {
		steps = max(min(leadSteps, int(leadTime/s.stepOf(t.x, k))), 1)
	}
	g, err := s.glance(ctx, t.x, t.streams, t.prompts, k, steps)
	if err != nil {
		return state{}, fmt.Errorf("looking at it: %w", err)
	}
	costs, by := g.put(t.costs, t.x.place, k)
	s.glanced(g, t.x.place, k, by)
	return state{costs, g.quiet, by}, nil
}

// drift measures steps on a unit and returns how many times as long they take as
// when the costs were measured. Where not all engines fit into the memory it is 1:
// each look would have to load one.
func (s *session) drift(ctx context.Context, unit string) (by float64, quiet bool, err error) {
	p := s.paces[unit]
	if p == nil || !s.fit() {
		return 1, true, nil
	}
	x, err := s.rigs.get(ctx, s.only(unit), longestPrompt)
	if err != nil {
		return 0, false, err
	}
	x.e.SetMerge(1)
	c := newChains(len(x.place))
	for try := 0; try < driftTries && !quiet; try++ {
		if quiet, err = s.window(ctx, x, p, try, &c); err != nil {
			return 0, false, err
		}
		if p.least < windowLeast {
			break
		}
	}
	var took, before float64
	seen := c.result()
	for i, name := range x.place {
		if name == unit {
			took, before = took+seen.median(i), before+p.took[i]
		}
	}
	by = took / before
	s.raw.add(Line{Kind: "drift", Unit: unit, Factor: &by, Kept: &quiet})
	return by, quiet, nil
}

// nowPrompt lets the prompt flow once, and measures how the machine is by that.
func (s *session) nowPrompt(ctx context.Context, r *PrefillResult) (state, error) {
	if s.known {
		return state{s.costs, true, nil}, nil
	}
	one, err := s.prompt(ctx, r)
	if err != nil {
		return state{}, err
	}
	g := newGlance(len(r.place))
	g.quiet = one.quiet
	g.add(s.costs, r.place, one.records, 0, 1)
	k := several{1, 1}
	costs, by := g.put(s.costs, r.place, k)
	s.glanced(g, r.place, k, by)
	return state{costs, g.quiet, by}, nil
}

// fit reports whether the engines of all schedules and those that steps are
// measured on fit into the memory together.
func (s *session) fit() bool {
	places := [][]string{s.o.Base, s.o.Moved}
	for _, name := range s.used() {
		places = append(places, s.only(name))
	}
	slices.SortFunc(places, slices.Compare[[]string])
	return s.lab.Most() >= len(slices.CompactFunc(places, slices.Equal[[]string]))
}

// scaledCost is a cost with all taking so many times as long.
func scaledCost(c plan.Cost, by float64) plan.Cost {
	times := func(d time.Duration) time.Duration { return time.Duration(by * float64(d)) }
	all := func(samples []plan.Sample) []plan.Sample {
		out := slices.Clone(samples)
		for i := range out {
			out[i].Time = times(out[i].Time)
		}
		return out
	}
	c.Rows, c.Streams, c.Next, c.Head = all(c.Rows), all(c.Streams), times(c.Next), times(c.Head)
	return c
}

// beside are costs with the contention of two units in decode steps as it was
// last.
func beside(c *plan.Costs, pair *couple) *plan.Costs {
	out := *c
	out.Contention = slices.Clone(c.Contention)
	for i := range out.Contention {
		x := &out.Contention[i]
		for k, l := range pair.laps {
			if x.Unit == l.unit && x.With == pair.laps[1-k].unit {
				x.Decode = l.factor(contentionLeast)
			}
		}
	}
	return &out
}

func distinct(place []string) []string {
	var out []string
	for _, u := range place {
		if !slices.Contains(out, u) {
			out = append(out, u)
		}
	}
	return out
}
