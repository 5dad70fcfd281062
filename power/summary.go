package power

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// A Figure is what is known of a part over a run. Numbers that are not known are
// nil.
type Figure struct {
	Basis  Basis  `json:"basis"`
	Source string `json:"source,omitempty"` // the sensors, or what it was estimated from
	Why    string `json:"why,omitempty"`    // it is unavailable
	// Watts are means. Joules is in total and AboveIdle what is beyond idling for
	// as long; the latter is nil if idling was not sampled.
	Watts     *float64 `json:"watts,omitempty"`
	IdleWatts *float64 `json:"idle_watts,omitempty"`
	Joules    *float64 `json:"joules,omitempty"`
	AboveIdle *float64 `json:"joules_above_idle,omitempty"`
	// Covered is the share of the run that the sensors told of; the rest is taken
	// to be like it.
	Covered *float64 `json:"covered,omitempty"`
}

// A Summary is what a run drew, by part.
type Summary struct {
	Seconds     float64         `json:"seconds"`
	IdleSeconds float64         `json:"idle_seconds,omitempty"`
	Samples     int             `json:"samples"`
	Parts       map[Part]Figure `json:"parts"`
}

// enough is the share of a run that has to be known of a part.
const enough = 0.5

// A Recorder adds samples up. The zero value is ready.
type Recorder struct {
	idle, run tally
	from      map[Part]string
	samples   int
}

// tally is what samples of a time add up to.
type tally struct {
	length time.Duration
	known  map[Part]time.Duration
	joules map[Part]float64
}

func (t *tally) add(s Sample) {
	if s.Length <= 0 {
		return
	}
	if t.known == nil {
		t.known, t.joules = map[Part]time.Duration{}, map[Part]float64{}
	}
	t.length += s.Length
	for p, w := range s.Watts {
		t.known[p] += s.Length
		t.joules[p] += w * s.Length.Seconds()
	}
}

// mean is a part's mean watts and the share of the time that they are of.
func (t *tally) mean(p Part) (watts, covered float64, ok bool) {
	if t.length <= 0 || t.known[p] <= 0 {
		return 0, 0, false
	}
	covered = t.known[p].Seconds() / t.length.Seconds()
	return t.joules[p] / t.known[p].Seconds(), covered, covered >= enough
}

// Idle takes a sample of the time before the run.
func (r *Recorder) Idle(s Sample) { r.idle.add(s) }

// Add takes a sample of the run. One without a length, which the first of a
// Meter is, only begins it.
func (r *Recorder) Add(s Sample) {
	if s.Length <= 0 {
		return
	}
	r.samples++
	r.run.add(s)
	if r.from == nil {
		r.from = map[Part]string{}
	}
	for p, from := range s.From {
		r.from[p] = from
	}
}

// Summary is what came of it. Sources say why parts are unavailable.
func (r *Recorder) Summary(sources []Status) Summary {
	out := Summary{Seconds: r.run.length.Seconds(), IdleSeconds: r.idle.length.Seconds(), Samples: r.samples, Parts: map[Part]Figure{}}
	for _, p := range Parts() {
		watts, covered, ok := r.run.mean(p)
		if !ok {
			why := reason(p, sources)
			if covered > 0 {
				why = fmt.Sprintf("the sensors told of %.0f %% of the time", 100*covered)
			}
			out.Parts[p] = Figure{Basis: Unavailable, Why: why}
			continue
		}
		f := Figure{Basis: Measured, Source: r.from[p], Watts: new(watts), Joules: new(watts * out.Seconds), Covered: new(covered)}
		if idle, _, ok := r.idle.mean(p); ok {
			f.IdleWatts, f.AboveIdle = new(idle), new((watts-idle)*out.Seconds)
		}
		out.Parts[p] = f
	}
	return out
}

// tells lists the sources that can tell a part.
var tells = map[Part][]string{
	CPU:     {"rapl", "hwmon", "powermetrics", "macmon"},
	GPU:     {"nvml", "hwmon", "powermetrics", "macmon"},
	ANE:     {"powermetrics", "macmon"},
	DRAM:    {"rapl", "powermetrics", "macmon"},
	Machine: {"battery", "hwmon", "rapl", "macmon"},
}

// reason says why no source told a part.
func reason(p Part, sources []Status) string {
	if p == Combined {
		return "no part of it is known"
	}
	var out []string
	for _, name := range tells[p] {
		for _, s := range sources {
			if s.Source == name {
				out = append(out, name+": "+cmp.Or(s.Why, "it has no such sensor"))
			}
		}
	}
	if len(out) == 0 {
		return "this system has no source that tells it"
	}
	return strings.Join(out, "; ")
}

// A UnitTime is how long a unit was busy during a run, and what it draws, as a
// device profile says it. Watts that are nil are not known.
type UnitTime struct {
	Unit       string
	Part       Part
	Busy       time.Duration
	BusyWatts  *float64
	IdleWatts  *float64
	Provenance string // how the watts are known: measured, stated or estimated
}

// Estimate fills in parts that were not measured, from the busy times of units
// and their watts. What is not known of a unit's watts is not counted, and the
// figure says so. Combined, if it was not measured either, is the sum of all
// that is known then.
func (s *Summary) Estimate(units []UnitTime) {
	type sum struct {
		joules, above float64
		idle          bool // the watts at rest are known of all
		how           []string
	}
	sums := map[Part]*sum{}
	for _, u := range units {
		if s.Parts[u.Part].Basis == Measured || u.BusyWatts == nil {
			continue
		}
		x := sums[u.Part]
		if x == nil {
			x = &sum{idle: true}
			sums[u.Part] = x
		}
		busy := u.Busy.Seconds()
		x.joules += *u.BusyWatts * busy
		how := fmt.Sprintf("%s busy %.2f s at %s %.4g W", u.Unit, busy, u.Provenance, *u.BusyWatts)
		if u.IdleWatts != nil {
			x.joules += *u.IdleWatts * max(s.Seconds-busy, 0)
			x.above += (*u.BusyWatts - *u.IdleWatts) * busy
		} else {
			x.idle = false
			how += ", its watts at rest not known and not counted"
		}
		x.how = append(x.how, how)
	}
	if len(sums) == 0 || s.Seconds <= 0 {
		return
	}
	for p, x := range sums {
		f := Figure{Basis: Estimated, Source: strings.Join(x.how, "; "), Watts: new(x.joules / s.Seconds), Joules: new(x.joules)}
		if x.idle {
			f.AboveIdle = new(x.above)
		}
		s.Parts[p] = f
	}
	if s.Parts[Combined].Basis == Measured {
		return
	}
	total, above, idle := 0.0, 0.0, true
	var parts []string
	for _, p := range []Part{CPU, GPU, ANE, DRAM} {
		f := s.Parts[p]
		if f.Joules == nil {
			continue
		}
		total += *f.Joules
		if f.AboveIdle != nil {
			above += *f.AboveIdle
		} else {
			idle = false
		}
		parts = append(parts, fmt.Sprintf("%s (%s)", p, f.Basis))
	}
	f := Figure{Basis: Estimated, Source: strings.Join(parts, " + "), Watts: new(total / s.Seconds), Joules: new(total)}
	if idle {
		f.AboveIdle = new(above)
	}
	s.Parts[Combined] = f
}
