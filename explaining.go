package tandem

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tandemrun/tandem/budget"
	"github.com/tandemrun/tandem/plan"
	"github.com/tandemrun/tandem/unit/sim"
	"github.com/tandemrun/tandem/unit/sim/play"
)

// An Explanation is where a decode step's time goes, what bounds it, and the
// most that each change could gain; see package budget.
type Explanation struct {
	Source string `json:"source"` // the model or device
	Units  string `json:"units"`  // of each chunk
	KV     string `json:"kv,omitempty"`
	// Depth and Steps are how many positions were in the caches and how many
	// steps were measured; Kept of them, those in which the units' threads waited
	// least for a CPU (probe.Keep), are what the figures are means of. 0 of a device.
	Depth int `json:"depth,omitempty"`
	Steps int `json:"steps,omitempty"`
	Kept  int `json:"kept,omitempty"`
	// Ceilings are those of the units, where they could be measured.
	Ceilings []UnitCeiling `json:"ceilings,omitempty"`
	// Ops is where the time inside the units goes.
	Ops []OpShare `json:"ops,omitempty"`
	budget.Report
	Notes []string `json:"notes,omitempty"`
}

// A UnitCeiling is how fast a unit's cores can be at most.
type UnitCeiling struct {
	Unit     string  `json:"unit"`
	Read     float64 `json:"read_gbs"`
	Multiply float64 `json:"int8_gops"`
}

// An OpShare is what one kind of operation takes of a step.
type OpShare struct {
	Name  string  `json:"name"`
	MS    float64 `json:"ms"`
	Share float64 `json:"share"` // of all that was timed
}

// An ExplainTest says what to measure.
type ExplainTest struct {
	Options Options
	Depth   int // positions in the caches before; 0 is 128
	Steps   int // 0 is 48
	// Units are others to move chunks to: one at a time, and all.
	Units []string
}

// ExplainDevice explains a step of a device profile. Placement is pairs such as
// "c3=gpu".
func ExplainDevice(nameOrFile, placement string) (Explanation, error) {
	p, err := sim.Find(nameOrFile)
	if err != nil {
		return Explanation{}, err
	}
	asked := map[string]string{}
	for pair := range strings.SplitSeq(placement, ",") {
		if placement == "" {
			break
		}
		chunk, unit, ok := strings.Cut(pair, "=")
		if !ok {
			return Explanation{}, fmt.Errorf("--place %s: %q is not of the form c1=UNIT", placement, pair)
		}
		asked[chunk] = unit
	}
	names, err := p.Place(asked)
	if err != nil {
		return Explanation{}, fmt.Errorf("--place %s: %w", placement, err)
	}
	costs := plan.FromProfile(p)
	played, err := play.Run(context.Background(), play.Config{Profile: p, Placement: asked, Streams: play.Same(1, 1, 8)})
	if err != nil {
		return Explanation{}, err
	}
	s := budget.Step{Host: ms(p.Host()), NoGaps: true, NoHost: p.HostMS == 0, Copies: p.CopiesMS}
	var handoffs float64
	for i, c := range p.Chunks {
		var took float64
		n := 0
		for _, r := range played.Records {
			if r.Chunk == i {
				n++
				took += ms(r.End.Sub(r.Start))
				handoffs += ms(r.CopyTime)
			}
		}
		s.Chunks = append(s.Chunks, budget.Chunk{Name: c.Name, Unit: names[i], MS: took / float64(n)})
	}
	if handoffs > 0 {
		copies := handoffs / float64(len(played.Records)/len(p.Chunks))
		if s.Copies != nil {
			copies += *s.Copies
		}
		s.Copies = &copies
	}
	out := Explanation{Source: "device " + p.Name, Units: strings.ReplaceAll(placementOf(p, names), ",", " ")}
	steady := func(names []string, streams int) (float64, error) {
		r, err := plan.Predict(costs, plan.Schedule{Placement: names, Streams: streams}, plan.Work{Streams: streams, Prompt: 1, Tokens: 64})
		return r.Steady, err
	}
	add := func(names []string, n int, move string) error {
		r, err := steady(names, n)
		s.Streams = append(s.Streams, budget.Streams{N: n, Move: move, Rate: r})
		return err
	}
	for _, n := range []int{2, 4} {
		if err := add(names, n, ""); err != nil {
			return out, err
		}
	}
	for i, c := range p.Chunks {
		for _, u := range p.Units {
			if _, ok := c.On[u.Name]; !ok || u.Name == names[i] {
				continue
			}
			other := slices.Clone(names)
			other[i] = u.Name
			x, err := plan.StepOf(costs, other)
			if err != nil {
				return out, err
			}
			s.Moves = append(s.Moves, budget.Move{Chunk: c.Name, Unit: u.Name, Step: ms(x.Time)})
			if err := add(other, 2, c.Name+" on "+u.Name); err != nil {
				return out, err
			}
		}
	}
	out.Report = budget.Explain(s)
	if p.Source != "" {
		out.Notes = append(out.Notes, "figures: "+p.Source)
	}
	return out, nil
}

func placementOf(p *sim.Profile, names []string) string {
	var out []string
	for i, c := range p.Chunks {
		out = append(out, c.Name+"="+names[i])
	}
	return strings.Join(out, ",")
}

func ms(d time.Duration) float64 { return d.Seconds() * 1e3 }
