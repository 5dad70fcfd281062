// Package sustain judges whether a machine keeps its speed: from windows of some
// seconds each it says from when on it was slower, and whether heat was why.
//
// # The rule
//
// The reference is the median speed of the first windows: those that begin in
// the first [Settled], but at most a third of all and at least one. The machine
// has slowed down from the first window behind them on that, like the next one,
// is below [Slow] of the reference.
//
// That is throttling if there is evidence of it in one of the two: cores were
// slowed down for heat (the system counts that), the frequency was below
// [SlowClock] of the reference windows', the system calls the state serious or
// critical, or the duty cycle was lowered. Otherwise it is slowed, cause unknown:
// another process, or the host of a virtual machine, does the same to the speed.
// With fewer than [Fewest] windows nothing is said.
//
// The package measures nothing.
package sustain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tandemrun/tandem/power"
)

// The figures of the rule.
const (
	Settled   = 2 * time.Minute
	Slow      = 0.90
	SlowClock = 0.95
	Fewest    = 4
)

// A Window is what one time of the run gave. What is not known is nil or empty.
type Window struct {
	Begin     float64  `json:"begin_s"` // since the begin of the run
	Seconds   float64  `json:"seconds"`
	Tokens    int      `json:"tokens"`
	Rate      float64  `json:"tok_s"`
	Celsius   *float64 `json:"celsius,omitempty"` // the highest of the samples
	MHz       *float64 `json:"mhz,omitempty"`     // their mean
	Watts     *float64 `json:"watts,omitempty"`   // their mean, of all that is measured
	Pressure  string   `json:"thermal_state,omitempty"`
	Throttles *int64   `json:"throttles,omitempty"` // times that cores were slowed down for heat
	Duty      *float64 `json:"duty,omitempty"`      // the lowest duty cycle; nil if there was none
}

// Verdicts.
const (
	Steady    = "steady"
	Throttled = "throttled"
	Slowed    = "slowed, cause unknown"
	TooShort  = "too short to tell"
)

// A Verdict is what the windows say.
type Verdict struct {
	Verdict   string   `json:"verdict"`
	Reference float64  `json:"reference_tok_s,omitempty"`
	From      *float64 `json:"from_s,omitempty"` // when it slowed down
	Rate      *float64 `json:"slowed_tok_s,omitempty"`
	Why       string   `json:"why"`
}

// Judge applies the rule.
func Judge(all []Window) Verdict {
	if len(all) < Fewest {
		return Verdict{Verdict: TooShort, Why: fmt.Sprintf("%d windows; at least %d are needed", len(all), Fewest)}
	}
	n := 0
	for n < len(all)/3 && all[n].Begin < Settled.Seconds() {
		n++
	}
	n = max(n, 1)
	first := all[:n]
	reference := median(first, func(w Window) *float64 { return &w.Rate })
	v := Verdict{Verdict: Steady, Reference: *reference}
	for i := n; i+1 < len(all); i++ {
		a, b := all[i], all[i+1]
		if a.Rate >= Slow**reference || b.Rate >= Slow**reference {
			continue
		}
		rest := median(all[i:], func(w Window) *float64 { return &w.Rate })
		v.From, v.Rate = new(a.Begin), rest
		v.Verdict, v.Why = cause(first, all[i:i+2])
		return v
	}
	v.Why = fmt.Sprintf("no two windows in a row are below %.0f %% of the first %s", 100*Slow, minutes(first))
	return v
}

// minutes says how long windows last.
func minutes(w []Window) string {
	sum := 0.0
	for _, x := range w {
		sum += x.Seconds
	}
	return (time.Duration(sum*10) * time.Second / 10).String()
}

// cause looks for evidence of heat in slow windows.
func cause(first, slow []Window) (verdict, why string) {
	var evidence, unknown []string
	look := func(what string, known bool, found string) {
		switch {
		case !known:
			unknown = append(unknown, what)
		case found != "":
			evidence = append(evidence, found)
		}
	}
	var throttles int64
	known := true
	for _, w := range slow {
		if w.Throttles == nil {
			known = false
			continue
		}
		throttles += *w.Throttles
	}
	found := ""
	if throttles > 0 {
		found = fmt.Sprintf("cores were slowed down for heat %d times", throttles)
	}
	look("throttle counts", known, found)

	before := median(first, func(w Window) *float64 { return w.MHz })
	now := median(slow, func(w Window) *float64 { return w.MHz })
	found = ""
	if before != nil && now != nil && *now < SlowClock**before {
		found = fmt.Sprintf("the frequency fell from %.0f to %.0f MHz", *before, *now)
	}
	look("frequency", before != nil && now != nil, found)

	state, hottest := "", 0.0
	for _, w := range slow {
		state = power.Hotter(state, w.Pressure)
		if w.Celsius != nil {
			hottest = max(hottest, *w.Celsius)
		}
	}
	found = ""
	if state == power.Serious || state == power.Critical {
		found = "the thermal state is " + state
		if hottest > 0 {
			found += fmt.Sprintf(" at %.0f °C", hottest)
		}
	}
	look("thermal state", state != "", found)

	if duty := lowest(slow); duty != nil && lowest(first) != nil && *duty < *lowest(first) {
		evidence = append(evidence, fmt.Sprintf("the duty cycle was lowered to %.0f %% for heat", 100**duty))
	}
	if len(evidence) > 0 {
		return Throttled, strings.Join(evidence, "; ")
	}
	why = "no sign of heat"
	if len(unknown) > 0 {
		why += "; not known: " + strings.Join(unknown, ", ")
	}
	return Slowed, why
}

// median is the median of a value of windows that have it; nil if none has.
func median(all []Window, of func(Window) *float64) *float64 {
	var x []float64
	for _, w := range all {
		if v := of(w); v != nil {
			x = append(x, *v)
		}
	}
	if len(x) == 0 {
		return nil
	}
	slices.Sort(x)
	return new((x[(len(x)-1)/2] + x[len(x)/2]) / 2)
}

// lowest is the lowest duty cycle of windows.
func lowest(all []Window) *float64 {
	var out *float64
	for _, w := range all {
		if w.Duty != nil && (out == nil || *w.Duty < *out) {
			out = w.Duty
		}
	}
	return out
}

// A Collector makes windows of tokens and samples as they come. A window ends at
// the first sample behind its time, and the next one's time does not shift by
// that, so that windows are as many as fit. It is used by one goroutine.
type Collector struct {
	begin  time.Time
	length time.Duration
	from   time.Time // begin of the window in hand, and its end by the clock
	until  time.Time
	tokens int
	joules float64
	known  time.Duration
	mhz    []float64
	last   *int64 // throttles at the window's begin
	w      Window
	Done   []Window
}

// NewCollector begins the first window; before is a sample at that time.
func NewCollector(begin time.Time, length time.Duration, before power.Sample) *Collector {
	return &Collector{begin: begin, length: length, from: begin, until: begin.Add(length), last: before.Throttles}
}

// Due reports whether a sample at a time would end the window in hand.
func (c *Collector) Due(at time.Time) bool { return !at.Before(c.until) }

// Token counts a token.
func (c *Collector) Token() { c.tokens++ }

// Sample takes a sample, with the duty cycle at that time, and ends the window
// if it is long enough; it reports whether it did.
func (c *Collector) Sample(s power.Sample, duty *float64) bool {
	if w, ok := s.Watts[power.Combined]; ok && s.Length > 0 {
		c.joules += w * s.Length.Seconds()
		c.known += s.Length
	}
	if s.MHz != nil {
		c.mhz = append(c.mhz, *s.MHz)
	}
	if s.Celsius != nil && (c.w.Celsius == nil || *s.Celsius > *c.w.Celsius) {
		c.w.Celsius = s.Celsius
	}
	c.w.Pressure = power.Hotter(c.w.Pressure, s.Pressure)
	if duty != nil && (c.w.Duty == nil || *duty < *c.w.Duty) {
		c.w.Duty = duty
	}
	if !c.Due(s.At) {
		return false
	}
	c.end(s)
	return true
}

// end ends a window at a sample.
func (c *Collector) end(s power.Sample) {
	w := c.w
	w.Begin, w.Seconds = c.from.Sub(c.begin).Seconds(), s.At.Sub(c.from).Seconds()
	w.Tokens, w.Rate = c.tokens, float64(c.tokens)/w.Seconds
	if 2*c.known >= s.At.Sub(c.from) {
		w.Watts = new(c.joules / c.known.Seconds())
	}
	if len(c.mhz) > 0 {
		sum := 0.0
		for _, x := range c.mhz {
			sum += x
		}
		w.MHz = new(sum / float64(len(c.mhz)))
	}
	if s.Throttles != nil && c.last != nil {
		w.Throttles = new(*s.Throttles - *c.last)
	}
	c.Done = append(c.Done, w)
	until := c.until // at least half a window from now
	for !until.After(s.At.Add(c.length / 2)) {
		until = until.Add(c.length)
	}
	*c = Collector{begin: c.begin, length: c.length, from: s.At, until: until, last: s.Throttles, Done: c.Done}
}
