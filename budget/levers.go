package budget

import "fmt"

// cacheBytes is the size of a cached value, in bytes, by type.
var cacheBytes = []struct {
	name  string
	bytes float64
}{{"f32", 4}, {"f16", 2}, {"q8_0", 34. / 32}}

// levers lists what could be changed.
func (s Step) levers(r *Report, gaps float64) {
	total := r.StepMS
	// step is a lever on one stream's step.
	step := func(lever, change string, ms float64, basis string) {
		r.Levers = append(r.Levers, Lever{lever, change, ptr(ms), finite(1000 / ms), finite(total/ms - 1), basis})
	}
	together := func(lever, change string, rate float64, basis string) {
		r.Levers = append(r.Levers, Lever{lever, change, nil, ptr(rate), ptr(rate/r.Rate - 1), basis})
	}
	unknown := func(lever, change, why string) {
		r.Levers = append(r.Levers, Lever{Lever: lever, Change: change, Basis: "unavailable: " + why})
	}

	for _, c := range s.Chunks {
		if (c.Memory != nil || s.InCaches) && c.Arithmetic != nil {
			least := *c.Arithmetic
			if c.Memory != nil {
				least = max(least, *c.Memory)
			}
			step("faster chunk", fmt.Sprintf("%s at the ceiling of %s", c.Name, c.Unit), total-max(0, c.MS-least), "cap")
		}
		step("faster chunk", c.Name+" in no time", total-c.MS, "cap")
	}

	merged, saved := 0, 0.0
	for i, c := range s.Chunks[1:] {
		if c.Unit == s.Chunks[i].Unit {
			merged++
			saved += c.Gap
		}
	}
	change := fmt.Sprintf("%d instead of %d: neighbours on one unit as one task", len(s.Chunks)-merged, len(s.Chunks))
	switch {
	case merged == 0:
		unknown("fewer chunks", "no neighbours are on one unit", "nothing to join")
	case s.NoGaps:
		unknown("fewer chunks", change, "what lies between tasks is not known apart from them")
	default:
		step("fewer chunks", change, total-saved, "cap")
	}

	if s.Copies == nil {
		unknown("no copies", "rows are used where they are", "copies are not known apart from the tasks")
	} else {
		step("no copies", "rows are used where they are", total-*s.Copies, "cap")
	}
	if s.NoHost {
		unknown("no CPU work", "the token is chosen in no time", "what a stream does beside the units is not known")
	} else {
		step("no CPU work", "the token is chosen in no time", total-s.Host, "cap")
	}
	if !s.NoGaps {
		step("no dispatch", "tasks begin when they can", total-gaps-s.End, "cap")
	}

	if len(s.Moves) == 0 {
		unknown("other placement", "a chunk on another unit", "no other unit was measured; see --units")
	}
	for _, m := range s.Moves {
		basis := "expected"
		if m.Measured {
			basis = "measured"
		}
		step("other placement", fmt.Sprintf("%s on %s", m.Chunk, m.Unit), m.Step, basis)
	}

	s.moreStreams(r, together, unknown)
	s.otherCache(total, step, unknown)
}

// moreStreams: what is known is used. Else n streams together do at most n times
// as much; if they are merged, a step takes at least their operations; if they
// are kept apart, the busiest unit's work for each.
func (s Step) moreStreams(r *Report, together func(lever, change string, rate float64, basis string), unknown func(lever, change, why string)) {
	if len(s.Streams) > 0 {
		for _, x := range s.Streams {
			change := fmt.Sprintf("%d streams", x.N)
			if x.Move != "" {
				change += ", " + x.Move
			}
			together("more streams", change, x.Rate, "expected")
		}
		return
	}
	arithmetic := sum(s.Chunks, func(c Chunk) *float64 { return c.Arithmetic })
	if arithmetic == nil {
		unknown("more streams", "several streams read the weights once", "the units' ceilings are not known")
		return
	}
	busiest, _, _ := s.busiest()
	for _, n := range []int{2, 4, 8} {
		most := max(r.StepMS/max(*arithmetic, 1e-9), r.StepMS/max(busiest, 1e-9))
		together("more streams", fmt.Sprintf("%d streams, in all", n), min(float64(n), most)*r.Rate, "cap")
	}
}

// otherCache: attention took its time to read the cache, so that much of it goes
// as bytes do.
func (s Step) otherCache(total float64, step func(lever, change string, ms float64, basis string), unknown func(lever, change, why string)) {
	if s.Attention == nil {
		unknown("other KV type", "fewer bytes a cached row", "what attention takes is not known")
		return
	}
	var now float64
	for _, t := range cacheBytes {
		if t.name == s.KV {
			now = t.bytes
		}
	}
	smaller := 0
	for _, t := range cacheBytes {
		if t.bytes < now {
			smaller++
			step("other KV type", t.name+" instead of "+s.KV, total-*s.Attention*(1-t.bytes/now), "cap")
		}
	}
	if smaller == 0 {
		unknown("other KV type", "fewer bytes than "+s.KV, "there is no smaller type")
	}
}
