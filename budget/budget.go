// Package budget says where the time of a decode step goes, what bounds it, and
// the most that each change could gain, as caps in the manner of Amdahl (1967):
// if a part of a step took no time at all, the step would take the rest.
//
// A cap is not a prediction. What the change costs elsewhere is left out, so the
// true gain is at most the cap; a lever whose cap is small is not worth trying,
// and that is what caps are for. Only other placements, and streams on a device
// profile, give values that were measured or are expected, which may be losses.
//
// Times are in milliseconds. The package measures nothing: a Step is filled in
// by who did. What is not known is nil, or marked unknown, and never 0.
package budget

import (
	"fmt"
	"math"
	"slices"
)

// A Step is a decode step of one stream as it was measured, or as a device
// profile has it. Its tasks do not overlap: it is a chain.
type Step struct {
	Chunks []Chunk
	// Host is the stream's own work beside the units: choosing the token.
	Host float64
	// End is from the end of the last task until its stream had the logits.
	End float64
	// Copies are what of the chunks' times was copying rows between units; nil
	// if that is not known.
	Copies *float64
	// NoGaps says that gaps and End are not known rather than 0, and NoHost that
	// Host is not.
	NoGaps, NoHost bool
	// InCaches says that the weights stay in the processor's caches, so that the
	// memory's ceiling is none for them: the chunks' Memory is nil.
	InCaches bool
	// Attention is what attention over the cache took, nil if not known, and KV
	// the cache's type.
	Attention *float64
	KV        string
	// Moves are other places for one chunk each, and Streams what several
	// streams reach together, where these are known.
	Moves   []Move
	Streams []Streams
}

// A Chunk is one task of the step.
type Chunk struct {
	Name string  `json:"name"`
	Unit string  `json:"unit"`
	MS   float64 `json:"ms"`     // from its begin to its end
	Gap  float64 `json:"gap_ms"` // before it, when its rows were ready and it had not begun; 0 where not known
	// Memory and Arithmetic are the least time for the weights it must read and
	// the operations it must do, at the ceilings of its unit; nil is unknown.
	Memory     *float64 `json:"memory_ms"`
	Arithmetic *float64 `json:"arithmetic_ms"`
}

// A Move is one chunk, or all ("all"), on another unit, and what a step of one
// stream takes then, with the handoffs that this needs: Measured, or computed
// from what is known of each.
type Move struct {
	Chunk, Unit string
	Step        float64
	Measured    bool
}

// Streams is what streams reach together: tokens a second. Move is empty, or a
// chunk that is on another unit meanwhile.
type Streams struct {
	N    int
	Move string
	Rate float64
}

// A Report is what a step's figures say.
type Report struct {
	StepMS    float64 `json:"step_ms"`
	Rate      float64 `json:"tok_s"`
	Parts     []Part  `json:"parts"` // in all they are the step
	Chunks    []Chunk `json:"chunks"`
	Bounds    []Bound `json:"bounds"`
	BoundedBy string  `json:"bounded_by"` // memory, arithmetic, dispatch, dependency or unit
	Why       string  `json:"why"`
	Levers    []Lever `json:"levers"`
}

// A Part is some of a step's time.
type Part struct {
	Name  string   `json:"name"` // unit, copies, dispatch, cpu
	What  string   `json:"what"`
	MS    *float64 `json:"ms"`    // nil: unknown
	Share *float64 `json:"share"` // of the step
}

// A Bound is how much of the step could not be less for one reason.
type Bound struct {
	Name  string   `json:"name"`
	What  string   `json:"what"`
	MS    *float64 `json:"ms"`
	Share *float64 `json:"share"`
}

// A Lever is a change and the most it could gain.
type Lever struct {
	Lever  string   `json:"lever"`
	Change string   `json:"change"`
	StepMS *float64 `json:"step_ms"` // of one stream; nil where it is about several, or unknown
	Rate   *float64 `json:"tok_s"`
	Gain   *float64 `json:"gain"`  // of tokens a second: 0.1 is 10 % more; nil: unknown
	Basis  string   `json:"basis"` // cap, expected, measured, or unavailable with the reason
}

// Explain draws the conclusions.
func Explain(s Step) Report {
	r := Report{Chunks: s.Chunks}
	var units, gaps float64
	for _, c := range s.Chunks {
		units, gaps = units+c.MS, gaps+c.Gap
	}
	r.StepMS = units + gaps + s.End + s.Host
	r.Rate = 1000 / r.StepMS
	share := func(x *float64) *float64 {
		if x == nil {
			return nil
		}
		return ptr(*x / r.StepMS)
	}
	part := func(name, what string, ms *float64) { r.Parts = append(r.Parts, Part{name, what, ms, share(ms)}) }
	bound := func(name, what string, ms *float64) { r.Bounds = append(r.Bounds, Bound{name, what, ms, share(ms)}) }

	work := units
	if s.Copies != nil {
		work -= *s.Copies
	}
	dispatch := ptr(gaps + s.End)
	if s.NoGaps {
		dispatch = nil
	}
	part("unit", "inside the units' tasks, without copies", ptr(work))
	part("copies", "copying rows between units or back", s.Copies)
	part("dispatch", "between tasks: ready rows not begun, results not taken", dispatch)
	host := ptr(s.Host)
	if s.NoHost {
		host = nil
	}
	part("cpu", "the stream's own work: choosing the token", host)

	bound("memory", "reading each weight once, at the unit's ceiling", sum(s.Chunks, func(c Chunk) *float64 { return c.Memory }))
	bound("arithmetic", "the products' operations, at the unit's ceiling", sum(s.Chunks, func(c Chunk) *float64 { return c.Arithmetic }))
	var idle *float64
	if s.Copies != nil || !s.NoGaps || !s.NoHost {
		idle = ptr(gaps + s.End + s.Host + units - work)
	}
	bound("dispatch", "no unit computes: between tasks, copies, choosing the token, as far as known", idle)
	busiest, name, n := s.busiest()
	bound("dependency", "the busiest unit waits for chunks on others, for a stream is a chain", ptr(max(0, units-busiest)))
	r.conclude(s, work/r.StepMS, name, n)
	s.levers(&r, gaps)
	return r
}

// conclude names the largest bound, if it is a large one.
func (r *Report) conclude(s Step, work float64, busiest string, units int) {
	const large = 0.4
	best := Bound{}
	for _, b := range r.Bounds {
		if b.Share != nil && (best.Share == nil || *b.Share > *best.Share) {
			best = b
		}
	}
	known := (r.Bounds[0].MS != nil || s.InCaches) && r.Bounds[1].MS != nil
	switch {
	case best.Share != nil && *best.Share >= large:
		r.BoundedBy = best.Name
		r.Why = fmt.Sprintf("%s takes %.1f %% of the step: %s", best.Name, 100**best.Share, best.What)
		if best.Name == "dependency" {
			r.Why += fmt.Sprintf("; of %d units %s works most; only more streams, or blocks of a prompt, use the others meanwhile", units, busiest)
		}
	case known:
		r.BoundedBy = "unit"
		r.Why = fmt.Sprintf("%.1f %% of the step is inside the units, and neither memory nor arithmetic at its ceiling takes most of that: small products, waits of workers for each other, kernels", 100*work)
		if s.InCaches {
			r.Why += "; the weights stay in the processor's caches"
		}
	default:
		r.BoundedBy = "unit"
		r.Why = fmt.Sprintf("%.1f %% of the step is inside the units; whether memory or arithmetic bounds them is not known, since the units' ceilings are not", 100*work)
	}
}

// busiest is the unit with most to do in the step, for how long, and how many
// units there are.
func (s Step) busiest() (ms float64, name string, units int) {
	var names []string
	load := map[string]float64{}
	for _, c := range s.Chunks {
		if !slices.Contains(names, c.Unit) {
			names = append(names, c.Unit)
		}
		load[c.Unit] += c.MS
		if load[c.Unit] > ms {
			ms, name = load[c.Unit], c.Unit
		}
	}
	return ms, name, len(names)
}

// sum adds up a figure of all chunks; nil if one is not known.
func sum(chunks []Chunk, of func(Chunk) *float64) *float64 {
	var x float64
	for _, c := range chunks {
		v := of(c)
		if v == nil {
			return nil
		}
		x += *v
	}
	return &x
}

func ptr(x float64) *float64 { return &x }

// finite is a gain, or nil where nothing would be left of the step.
func finite(x float64) *float64 {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return nil
	}
	return &x
}
