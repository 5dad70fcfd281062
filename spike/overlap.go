package spike

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tandemrun/tandem/plan"
	"github.com/tandemrun/tandem/probe"
)

// An Overlap is what the probe found with one kind of prompt. Times are in
// milliseconds, means over all trials as the seed document prints them; the
// medians are over the trials kept.
type Overlap struct {
	Category   string  `json:"category"` // "control" with both chunks on one unit
	A          string  `json:"a"`
	B          string  `json:"b"`
	UnitA      string  `json:"a_unit"`
	UnitB      string  `json:"b_unit"`
	AMS        float64 `json:"a_ms"`
	BMS        float64 `json:"b_ms"`
	Sequential float64 `json:"sequential_ms"`
	Parallel   float64 `json:"parallel_ms"`
	Factor     float64 `json:"overlap_factor"`
	Median     float64 `json:"overlap_factor_median"`
	Predicted  float64 `json:"predicted_overlap_factor"`
	Verdict    string  `json:"verdict"`
	Trials     int     `json:"trials"`
	Kept       int     `json:"kept"`
}

// pair is the chunk that moved, and the one before it (or else behind it) that
// is on another unit, in order.
func (s *session) pair() (a, b int) {
	place := s.o.Moved
	b = slices.IndexFunc(place, func(string) bool { return true })
	for i := range place {
		if place[i] != s.o.Base[i] {
			b = i
			break
		}
	}
	for i := b - 1; i >= 0; i-- {
		if place[i] != place[b] {
			return i, b
		}
	}
	for i := b + 1; i < len(place); i++ {
		if place[i] != place[b] {
			return b, i
		}
	}
	return -1, b
}

// overlap runs the probe on the moved placement for each prompt, and once with
// both chunks on one unit.
func (s *session) overlap(ctx context.Context) error {
	if s.o.Still != "" {
		s.r.NoProbe = "there is no pair of units to probe"
		return nil
	}
	a, b := s.pair()
	if a < 0 {
		s.r.NoProbe = fmt.Sprintf("all chunks are on %s after the move, so there is no pair to probe", s.o.Moved[b])
		return nil
	}
	probing := func(place []string, category string, p Prompt) error {
		x, err := s.rigs.get(ctx, place, longestPrompt)
		if err != nil {
			return err
		}
		o := Overlap{Category: category, Predicted: s.predictPair(a, b, place)}
		s.raw.add(Line{Kind: "prediction", What: "probe", Category: category, Placement: Placement(place), Overlap: &o.Predicted})
		s.stage("overlap of c%d on %s and c%d on %s, %s", a+1, place[a], b+1, place[b], category)
		tokens := p.Tokens
		if len(tokens) < 2 { // the probe evaluates the last one apart
			tokens = slices.Repeat(tokens, 2)
		}
		x.e.SetMerge(1)
		r, err := probe.Pair(ctx, x.e, probe.Options{A: a, B: b, Tokens: tokens, Trials: s.o.Probes, Delay: s.lab.Delay})
		if err != nil {
			return err
		}
		o.A, o.B, o.UnitA, o.UnitB = r.A, r.B, r.UnitA, r.UnitB
		o.AMS, o.BMS, o.Sequential, o.Parallel = ms(r.AloneA.Mean), ms(r.AloneB.Mean), ms(r.Sequential.Mean), ms(r.Parallel.Mean)
		o.Factor, o.Median, o.Verdict, o.Trials, o.Kept = r.Overlap, r.OverlapKept, r.Verdict, r.Trials, r.Kept
		s.r.Overlaps = append(s.r.Overlaps, o)
		for _, k := range []struct {
			what string
			t    probe.Timing
		}{{"a", r.AloneA}, {"b", r.AloneB}, {"sequential", r.Sequential}, {"parallel", r.Parallel}} {
			for i, d := range k.t.Trials {
				s.raw.add(Line{Kind: "probe", Category: category, Placement: Placement(place), What: k.what, Trial: number(i), MS: number(ms(d))})
			}
		}
		return nil
	}
	for _, p := range s.lab.Prompts() {
		if err := probing(s.o.Moved, p.Category, p); err != nil {
			return err
		}
	}
	together := slices.Clone(s.o.Moved)
	together[b] = together[a]
	if !s.lab.CanRun(b, together[b]) {
		return nil
	}
	return probing(together, control, s.lab.Prompts()[0])
}

const control = "control"

// predictPair is the overlap of two chunks by what they take alone and how
// their units slow each other.
func (s *session) predictPair(a, b int, place []string) float64 {
	take := func(i int) float64 { return s.costs.Chunks[i].On[place[i]].Rows[0].Time.Seconds() }
	ta, tb := take(a), take(b)
	both := ta + tb
	if place[a] != place[b] && !s.oneDriver(place[a], place[b]) {
		sa, sb := slowed(s.costs, place[a], place[b], false), slowed(s.costs, place[b], place[a], false)
		// Both go on slowed until the first is done; what is left runs alone.
		if ta*sa < tb*sb {
			both = ta*sa + tb - ta*sa/sb
		} else {
			both = tb*sb + ta - tb*sb/sa
		}
	}
	seconds := func(x float64) time.Duration { return time.Duration(x * 1e9) }
	return probe.Overlap(seconds(ta), seconds(tb), seconds(both))
}

// slowed is how many times as long tasks take on a unit while another is at work.
func slowed(costs *plan.Costs, unit, with string, prefill bool) float64 {
	for _, c := range costs.Contention {
		switch {
		case c.Unit != unit || c.With != with:
		case prefill:
			return c.Prefill
		default:
			return c.Decode
		}
	}
	return 1
}

func (s *session) oneDriver(a, b string) bool {
	driver := map[string]string{}
	for _, u := range s.costs.Units {
		driver[u.Name] = u.Driver
	}
	return driver[a] != "" && driver[a] == driver[b]
}
