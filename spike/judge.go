package spike

import (
	"fmt"
	"slices"

	"github.com/tandemrun/tandem/probe"
)

// Realised is the overlap that the seed document's rule wants of a whole run,
// beside a gain.
const Realised = 0.5

// lopsided is from how many times as long a chunk takes as the other one on that
// the probe's factor is called uncertain.
const lopsided = 10

// controlMost is the overlap of two chunks on one unit from which on the probe's
// factor is called uncertain: nothing overlaps there, so what is between tasks,
// which two of them share, is a part of them.
const controlMost = 0.25

// Noise is the least gain that is called one.
const Noise = 0.01

// A Verdict is what follows from the measurements.
type Verdict struct {
	// Overlap is the capability of the pair of units: strong, meaningful, partial
	// or none, by Factor, the median of the kinds of prompt, or unclear where one
	// of the chunks is ten times as long or Control, the same pair on one unit, is
	// above 0.25.
	Overlap string   `json:"overlap"`
	Factor  float64  `json:"overlap_factor"`
	Control *float64 `json:"control_overlap_factor"`
	// RuleMet says whether the seed's rule is met by some number of streams:
	// overlap of the whole run at least Realised, and more tokens a second than
	// without the move.
	RuleMet bool `json:"rule_met"`
	// SplitGains says whether the move beats the best single unit by some number
	// of streams.
	SplitGains bool       `json:"split_gains"`
	ByStreams  []Standing `json:"by_streams"`
	Best       Schedule   `json:"best"` // the most tokens a second of all that was measured
	Prefill    string     `json:"prefill"`
	Worst      float64    `json:"largest_prediction_error"` // of steady rates, as a share of the measured one
	Lines      []string   `json:"lines"`                    // for a person
}

// A Standing is the best of each kind of schedule by a number of streams.
type Standing struct {
	Streams int      `json:"streams"`
	Base    Schedule `json:"base"`   // everything where it was
	Moved   Schedule `json:"moved"`  // the best with the move
	Single  Schedule `json:"single"` // the best single unit, the base among them
	RuleMet bool     `json:"rule_met"`
	Overlap float64  `json:"realised_overlap"` // of Moved
	Gain    float64  `json:"gain"`             // of Moved over Base
	Against float64  `json:"gain_over_single"` // of Moved over Single

	other string // what meets the rule, if Moved does not
}

// A Schedule is one that was measured.
type Schedule struct {
	Placement string  `json:"placement"`
	Streams   int     `json:"streams"`
	Merge     int     `json:"merge"`
	TokS      float64 `json:"tok_s"` // steady
}

// judge draws the conclusions.
func (s *session) judge() {
	r, v := s.r, &s.r.Verdict
	var factors []float64
	for _, o := range r.Overlaps {
		if o.Category == control {
			v.Control = number(o.Median)
			continue
		}
		factors = append(factors, o.Median)
	}
	v.Overlap = "not measured"
	if len(factors) > 0 {
		v.Factor = median(factors)
		if v.Overlap = probe.Verdict(v.Factor); r.isLopsided() || v.isShared() {
			v.Overlap = "unclear"
		}
	}
	for _, n := range s.o.Streams {
		x := r.standing(n)
		v.RuleMet = v.RuleMet || x.RuleMet
		v.SplitGains = v.SplitGains || x.Against > Noise
		v.ByStreams = append(v.ByStreams, x)
	}
	for _, x := range r.Results {
		if x.Measured.Steady > v.Best.TokS {
			v.Best = Schedule{x.Placement, x.Streams, x.Merge, x.Measured.Steady}
		}
		if x.Measured.Steady > 0 {
			v.Worst = max(v.Worst, abs(x.Predicted.Steady/x.Measured.Steady-1))
		}
	}
	v.Prefill = r.Prefill.verdict()
	v.Lines = r.lines()
}

// isLopsided reports whether one of the probed chunks is much longer.
func (r *Report) isLopsided() bool {
	if len(r.Overlaps) == 0 {
		return false
	}
	o := r.Overlaps[0]
	return max(o.AMS, o.BMS) > lopsided*min(o.AMS, o.BMS)
}

// isShared reports whether chunks on one unit seem to overlap.
func (v *Verdict) isShared() bool { return v.Control != nil && *v.Control > controlMost }

func abs(x float64) float64 { return max(x, -x) }

// standing finds the best by a number of streams.
func (r *Report) standing(n int) Standing {
	s := Standing{Streams: n}
	single := !slices.ContainsFunc(r.Base, func(u string) bool { return u != r.Base[0] })
	for _, x := range r.Results {
		if x.Streams != n {
			continue
		}
		better := func(to *Schedule) bool {
			if x.Measured.Steady <= to.TokS {
				return false
			}
			*to = Schedule{x.Placement, n, x.Merge, x.Measured.Steady}
			return true
		}
		switch x.Role {
		case roleBase:
			better(&s.Base)
			if single {
				better(&s.Single)
			}
		case roleMoved:
			if better(&s.Moved) {
				s.Overlap = x.Overlap
			}
		case roleSingle:
			better(&s.Single)
		}
	}
	if s.Base.TokS == 0 || r.Still != "" { // too few tokens for a steady rate, or nothing to compare
		return s
	}
	s.Gain = s.Moved.TokS/s.Base.TokS - 1
	for _, x := range r.Results { // the best with the move may be another one
		if x.Role == roleMoved && x.Streams == n && x.Overlap >= Realised && x.Measured.Steady > s.Base.TokS {
			s.RuleMet = true
			if s.Overlap < Realised {
				s.other = fmt.Sprintf(" by another schedule with the move (%.1f tok/s%s, overlap %.2f)", x.Measured.Steady, merged(Schedule{Streams: n, Merge: x.Merge}), x.Overlap)
			}
		}
	}
	if s.Single.TokS > 0 {
		s.Against = s.Moved.TokS/s.Single.TokS - 1
	} else {
		s.Against = s.Gain
	}
	return s
}

// verdict says in a sentence whether blocks that flow through two units pay.
func (p *Prefill) verdict() string {
	if p.Why != "" {
		return "no pipeline of a prompt: " + p.Why
	}
	var serial, pipelined, best PrefillResult
	for _, x := range p.Results {
		switch x.Role {
		case roleSerial:
			serial = x
		case rolePipelined:
			pipelined = x
			continue
		}
		if best.Measured < x.Measured {
			best = x
		}
	}
	out := fmt.Sprintf("a prompt of %d tokens through %s in blocks of %d: %.0f tok/s, %s beside %s alone",
		p.Tokens, pipelined.Placement, pipelined.Block, pipelined.Measured, change(pipelined.Measured/serial.Measured-1), serial.Placement)
	if best.Placement != serial.Placement {
		out += fmt.Sprintf(" and %s beside %s", change(pipelined.Measured/best.Measured-1), best.Placement)
	}
	return out
}

// change is a relative difference for a person.
func change(x float64) string { return fmt.Sprintf("%+.1f %%", 100*x) }

// lines are the verdict for a person.
func (r *Report) lines() []string {
	v := &r.Verdict
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if r.Still != "" {
		say("No chunk can move: %s.", r.Still)
	}
	a := ""
	if len(r.Overlaps) > 0 {
		o := r.Overlaps[0]
		a = fmt.Sprintf(" of %s on %s with %s on %s", o.A, o.UnitA, o.B, o.UnitB)
	}
	switch {
	case r.NoProbe != "":
		say("Overlap: %s.", r.NoProbe)
	case v.Control != nil:
		say("Overlap capability%s: %s (%.2f; both on one unit %.2f).", a, v.Overlap, v.Factor, *v.Control)
	default:
		say("Overlap capability%s: %s (%.2f).", a, v.Overlap, v.Factor)
	}
	if r.isLopsided() {
		o := r.Overlaps[0]
		say("%s and %s differ so much in length that the factor, which is relative to the shorter one, tells little: the noise of the longer one is as large.", o.A, o.B)
	}
	if v.isShared() {
		say("Nothing can overlap on one unit, and yet %.2f does: the chunks are so short that the waking of a unit, which two of them share, is a part of what they take. The overlap of whole runs tells more.", *v.Control)
	}
	say("Usable by one stream: %.2f: %s.", r.Usable, r.Why)
	for _, x := range v.ByStreams {
		if r.Still != "" {
			say("%s: %.1f tok/s, %.1f ms a token.", capital(streams(x.Streams)), x.Base.TokS, 1e3/x.Base.TokS)
			continue
		}
		rule := "the rule (overlap of the run at least 0.50 and a gain) is not met"
		if x.RuleMet {
			rule = "the rule (overlap of the run at least 0.50 and a gain) is met" + x.other
		}
		line := fmt.Sprintf("%s: %.1f tok/s with the move%s and %.1f without%s (%s), overlap %.2f; %s.", capital(streams(x.Streams)), x.Moved.TokS, merged(x.Moved), x.Base.TokS, merged(x.Base), change(x.Gain), x.Overlap, rule)
		if x.Single.Placement != "" && x.Single.Placement != x.Base.Placement {
			line += fmt.Sprintf(" The best single unit is %s%s with %.1f tok/s: the move is at %s.", x.Single.Placement, merged(x.Single), x.Single.TokS, change(x.Against))
		}
		out = append(out, line)
	}
	switch {
	case r.Still != "":
	case v.SplitGains:
		say("The move pays beside the best single unit.")
	default:
		say("The move does not pay: a single unit does as well or better, so the split only adds a unit.")
	}
	say("Best schedule found: %s%s, %s: %.1f tok/s.", v.Best.Placement, merged(v.Best), streams(v.Best.Streams), v.Best.TokS)
	say("%s.", capital(v.Prefill))
	say("%s.", r.tokensLine())
	return out
}

func merged(s Schedule) string {
	switch {
	case s.Streams == 1:
		return ""
	case s.Merge == 1:
		return " (streams kept apart)"
	}
	return " (streams merged)"
}

func capital(s string) string {
	if s == "" || s[0] < 'a' || s[0] > 'z' {
		return s
	}
	return string(s[0]-'a'+'A') + s[1:]
}

// tokensLine says whether all runs gave the same.
func (r *Report) tokensLine() string {
	tokens, logits, n := true, true, 0
	var first string
	look := func(title string, t, l bool, d *Divergence, runs int) {
		tokens, logits, n = tokens && t, logits && l, n+runs
		if d != nil && first == "" {
			first = title + ": " + d.String()
		}
	}
	for i := range r.Results {
		x := &r.Results[i]
		look(x.title(), x.TokensEqual, x.LogitsEqual, x.Divergence, x.Trials)
	}
	if r.Texts != nil {
		for _, x := range r.Texts.Results {
			look(r.Texts.Model+" on "+x.Placement, x.TokensEqual, x.LogitsEqual, x.Divergence, x.Runs)
		}
	}
	out := ""
	switch {
	case tokens && logits:
		out = fmt.Sprintf("tokens and the bits of all logits are equal in all %d runs", n)
	case tokens:
		out = fmt.Sprintf("tokens are equal in all %d runs, the bits of logits are not", n)
	default:
		out = "tokens differ, first in " + first
	}
	if d := r.Difference; d != nil {
		out += fmt.Sprintf("; with the same tokens the largest difference of two logits is %.3g and %.1f %% of %d positions have the same best token", d.Largest, 100*d.Top, d.Positions)
	}
	return out
}

// String is a divergence in one line.
func (d *Divergence) String() string {
	show := func(id int32, text string) string {
		if text == "" {
			return fmt.Sprint(id)
		}
		return fmt.Sprintf("%d %q", id, text)
	}
	return fmt.Sprintf("%s (prompt %s), token %d: expected %s, got %s", d.Stream, d.Prompt, d.Position, show(d.Expected, d.ExpectedText), show(d.Got, d.GotText))
}
