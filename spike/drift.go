package spike

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/tandemrun/tandem/engine"
	"github.com/tandemrun/tandem/plan"
)

// The speed of a machine drifts by tens of percent in seconds: its clock, other
// virtual machines on the host. So right before each turn of a schedule the chunks
// are measured again, on their own, in the engine that runs it, and the turn is
// predicted with the costs as these find them.

// driftTries is how often that is tried until it was undisturbed.
const driftTries = 2

// warmSteps are run, for warmTime at most, before anything is measured that is to
// be compared: behind a prompt, or after others had their turns, steps of a small
// model took up to 1.7 times as long at first and became faster for some forty.
const (
	warmSteps = 40
	warmTime  = 150 * time.Millisecond
)

// warm runs the last step of a stream so often.
func (s *session) warm(ctx context.Context, x *rig, st *engine.Stream) error {
	for n, begin := 0, x.e.Now(); n < warmSteps && x.e.Now().Sub(begin) < warmTime; n++ {
		for i := range x.place {
			if _, err := x.e.Again(ctx, engine.Rerun{Stream: st, Chunk: i}); err != nil {
				return err
			}
		}
	}
	return nil
}

// A state is the costs as they are at some moment.
type state struct {
	costs *plan.Costs
	quiet bool   // they were measured undisturbed
	by    speeds // how they were found
}

// Speeds are how many times as long the steps of units took at some moment as when
// the costs were measured.
type speeds map[string]float64

// steadyMost is by how much the speed of a unit may differ between the look before
// a turn and the next one for the turn to count as undisturbed: a prediction
// cannot know that another guest of the host began something meanwhile.
const steadyMost = 0.05

// steady reports whether the units of look i were as fast at their next ones.
func (s *session) steady(i int) bool {
	for unit, by := range s.looks[i] {
		for _, later := range s.looks[i+1:] {
			if next, ok := later[unit]; ok {
				if math.Abs(next/by-1) > steadyMost {
					return false
				}
				break
			}
		}
	}
	return true
}

// now measures how the machine is for a placement and so many streams.
func (s *session) now(ctx context.Context, place []string, k several) (state, error) {
	out := state{s.costs, true, speeds{}}
	if s.known {
		return out, nil
	}
	if k.streams > 1 && k.merge == 1 {
		g, err := s.gapsOf(ctx, place)
		if err != nil {
			return out, fmt.Errorf("two streams: %w", err)
		}
		out.costs = g.put(out.costs)
	}
	x, err := s.rigs.get(ctx, place, longestPrompt)
	if err != nil {
		return out, err
	}
	units := distinct(place)
	prompt := s.paces[units[0]].prompt
	n := len(units)
	joined := n == 1 && k.streams > 1 && k.merge == 0
	if joined {
		n = k.streams
	}
	streams, err := x.prepare(ctx, slices.Repeat([]Prompt{prompt}, n))
	defer closeStreams(streams)
	if err != nil {
		return out, err
	}
	x.e.SetMerge(1)
	var laps []*lap
	for _, st := range streams {
		last := prompt.Tokens[len(prompt.Tokens)-1:]
		if err := st.Forward(ctx, last, engine.Last, func(int, []float32) error { return nil }); err != nil {
			return out, err
		}
	}
	for i, name := range units {
		laps = append(laps, &lap{e: x.e, s: streams[i], unit: name, chunks: s.on(place, name, 1), time: contentionTime})
	}
	if err := s.warm(ctx, x, streams[0]); err != nil {
		return out, err
	}
	pair := s.pairs[Placement(place)]
	for try := 0; try < driftTries; try++ {
		out.quiet = true
		for i := range laps {
			quiet, err := s.phase(ctx, x, try, 1, laps[i])
			if err != nil {
				return out, err
			}
			out.quiet = out.quiet && quiet
		}
		if k.streams > 1 && len(laps) == 2 && pair != nil {
			if _, err := s.phase(ctx, x, try, 1, laps...); err != nil {
				return out, err
			}
		}
		if out.quiet {
			break
		}
	}
	for _, l := range laps {
		now, before := lapTime(l.alone, driftTries), 0.0
		for _, i := range l.chunks {
			before += ms(s.costs.Chunks[i].On[l.unit].Rows[0].Time)
		}
		by := now / before
		out.costs, out.by[l.unit] = scaled(out.costs, l.unit, by), by
		s.raw.add(Line{Kind: "drift", Unit: l.unit, Placement: Placement(place), Factor: &by, Kept: &out.quiet})
	}
	if pair != nil && len(laps) == 2 && k.streams > 1 {
		for i, l := range laps {
			pair.laps[i].alone, pair.laps[i].beside = append(pair.laps[i].alone, l.alone...), append(pair.laps[i].beside, l.beside...)
		}
		out.costs = beside(out.costs, pair)
	}
	if joined {
		if out.costs, err = s.joined(ctx, x, out.costs, streams); err != nil {
			return out, err
		}
	}
	return out, nil
}

// joined are costs with the tasks of a row of each of some streams on one unit as
// they are now: they need more arithmetic than those of one, so they do not drift
// alike. (On several units rows would be handed over as well.)
func (s *session) joined(ctx context.Context, x *rig, costs *plan.Costs, streams []*engine.Stream) (*plan.Costs, error) {
	k := several{len(streams), 0}
	took, most := make([][]float64, len(x.place)), make([]int, len(x.place))
	for n, begin := 0, x.e.Now(); n == 0 || x.e.Now().Sub(begin) < contentionTime; n++ {
		for i := range x.place {
			d, m, err := k.run(ctx, x, streams, i)
			if err != nil {
				return nil, err
			}
			took[i], most[i] = append(took[i], d), m
		}
	}
	out := *costs
	out.Chunks = slices.Clone(costs.Chunks)
	for i, unit := range x.place {
		if most[i] < k.streams {
			continue
		}
		c := out.Chunks[i].On[unit]
		c.Streams = slices.Clone(c.Streams)
		for j := range c.Streams {
			if c.Streams[j].N == k.streams {
				c.Streams[j].Time = milliseconds(median(took[i]))
			}
		}
		out.Chunks[i].On = maps.Clone(out.Chunks[i].On)
		out.Chunks[i].On[unit] = c
	}
	return &out, nil
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

// nowPrompt measures how the machine is for blocks of a prompt on a placement.
func (s *session) nowPrompt(ctx context.Context, place []string) (state, error) {
	out := state{s.costs, true, nil}
	if s.known {
		return out, nil
	}
	for _, name := range distinct(place) {
		by, quiet, err := s.blockDrift(ctx, name)
		if err != nil {
			return out, fmt.Errorf("a block on %s: %w", name, err)
		}
		out.costs, out.quiet = scaled(out.costs, name, by), out.quiet && quiet
	}
	return out, nil
}

// blockDrift is drift by the tasks of a block: what they take is bound by
// arithmetic, and that of steps by the memory. On a slow unit it is that of steps.
func (s *session) blockDrift(ctx context.Context, unit string) (by float64, quiet bool, err error) {
	if p := s.paces[unit]; p == nil || !s.fit() || p.least < windowLeast {
		return s.drift(ctx, unit)
	}
	x, err := s.rigs.get(ctx, s.only(unit), longestPrompt)
	if err != nil {
		return 0, false, err
	}
	st, err := x.e.Stream(ctx)
	if err != nil {
		return 0, false, err
	}
	defer st.Close()
	n := s.r.Prefill.Block
	took := make([][]float64, len(x.place))
	done, begin := s.watch(), x.e.Now()
	if _, err := s.block(ctx, x, st, n, took); err != nil {
		return 0, false, err
	}
	_, quiet = done(x.e.Now().Sub(begin))
	var now, before float64
	for i, name := range x.place {
		rows := s.costs.Chunks[i].On[unit].Rows
		k := slices.IndexFunc(rows, func(r plan.Sample) bool { return r.N == n })
		if name == unit && k >= 0 && len(took[i]) > 0 {
			now, before = now+median(took[i]), before+ms(rows[k].Time)
		}
	}
	if before == 0 {
		return 1, quiet, nil
	}
	by = now / before
	s.raw.add(Line{Kind: "drift", Unit: unit, Rows: n, Factor: &by, Kept: &quiet})
	return by, quiet, nil
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

// scaled are costs with all that a unit does taking so many times as long.
func scaled(c *plan.Costs, unit string, by float64) *plan.Costs {
	times := func(d time.Duration) time.Duration { return time.Duration(by * float64(d)) }
	all := func(samples []plan.Sample) []plan.Sample {
		out := slices.Clone(samples)
		for i := range out {
			out[i].Time = times(out[i].Time)
		}
		return out
	}
	out := *c
	out.Chunks = slices.Clone(c.Chunks)
	for i := range out.Chunks {
		x := &out.Chunks[i]
		cost, ok := x.On[unit]
		if !ok {
			continue
		}
		cost.Rows, cost.Streams, cost.Next, cost.Head = all(cost.Rows), all(cost.Streams), times(cost.Next), times(cost.Head)
		x.On = maps.Clone(x.On)
		x.On[unit] = cost
	}
	return &out
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
