package spike

import (
	"strings"
	"testing"
)

// The seed's rule is met by a schedule that is not the fastest with the move, and a
// probe that finds an overlap on one unit tells nothing.
func TestVerdict(t *testing.T) {
	result := func(role string, merge int, tokS, overlap float64) Result {
		return Result{Role: role, Placement: role, Streams: 2, Merge: merge, Measured: Rate{tokS, tokS}, Predicted: Rate{tokS, tokS}, Overlap: overlap}
	}
	verdict := func(apart, control0 float64) Verdict {
		s := &session{o: Options{Streams: []int{2}}, r: &Report{
			Base: []string{"a", "a"}, Moved: []string{"a", "b"}, Prefill: Prefill{Why: "none"},
			Overlaps: []Overlap{{Category: "chat", AMS: 1, BMS: 1, Median: 0.95}, {Category: control, AMS: 1, BMS: 1, Median: control0}},
			Results:  []Result{result(roleBase, 0, 100, 0), result(roleMoved, 1, apart, 0.9), result(roleMoved, 0, 130, 0)},
		}}
		s.judge()
		return s.r.Verdict
	}
	if v := verdict(110, 0.1); !v.RuleMet || !v.ByStreams[0].RuleMet || v.ByStreams[0].Moved.TokS != 130 || v.Overlap != "strong" || !strings.Contains(strings.Join(v.Lines, " "), "is met by another schedule with the move (110.0 tok/s (streams kept apart), overlap 0.90)") {
		t.Errorf("%+v: streams apart overlap by 0.9 and gain 10 %%", v)
	}
	if v := verdict(95, 0.1); v.RuleMet {
		t.Errorf("%+v: what overlaps gains nothing", v)
	}
	if v := verdict(110, 0.5); v.Overlap != "unclear" || !strings.Contains(strings.Join(v.Lines, " "), "Nothing can overlap on one unit") {
		t.Errorf("%+v: half of the probe's overlap is there on one unit", v)
	}
}
