package tandem

import (
	"slices"
	"strings"
	"testing"
)

// What was found counts more than what was predicted, if it is clear.
func TestSettle(t *testing.T) {
	verified := func(name string, toks, ttft float64, trials int) Plan {
		return Plan{Placement: []string{name}, MeasuredTokS: &toks, MeasuredTTFT: &ttft, Trials: trials}
	}
	never := Plan{Placement: []string{"never run"}}
	for _, x := range []struct {
		name, goal string
		plans      []Plan
		baseline   Plan
		want       string
	}{
		{"as predicted", "decode", []Plan{verified("a", 100, 10, 5), verified("b", 90, 10, 5), never}, verified("c", 95, 10, 5), "a b never run"},
		{"within noise", "decode", []Plan{verified("a", 100, 10, 5), verified("b", 102, 10, 5), never}, verified("c", 103, 10, 5), "a b never run"},
		{"the second", "decode", []Plan{verified("a", 100, 10, 5), verified("b", 104, 10, 5), never}, verified("c", 103, 10, 5), "b a never run"},
		{"the single unit", "decode", []Plan{verified("a", 100, 10, 5), verified("b", 104, 10, 5), never}, verified("c", 120, 10, 5), "c a b"},
		{"the single unit, which is second", "decode", []Plan{verified("a", 100, 10, 5), verified("b", 104, 10, 5)}, verified("b", 104, 10, 5), "b a"},
		{"too few trials", "decode", []Plan{verified("a", 100, 10, 2), verified("b", 150, 10, 2)}, never, "a b"},
		{"prefill", "prefill", []Plan{verified("a", 100, 10, 5), verified("b", 90, 9, 5)}, never, "b a"},
		{"mixed", "mixed", []Plan{verified("a", 100, 10, 5), verified("b", 130, 100, 5)}, never, "b a"},
		{"mixed, by prompts", "mixed", []Plan{verified("a", 100, 10, 5), verified("b", 120, 1000, 5)}, never, "a b"},
		{"energy", "energy", []Plan{verified("a", 100, 10, 5), verified("b", 200, 5, 5)}, never, "a b"},
	} {
		p := Plans{Plans: slices.Clone(x.plans), Baseline: x.baseline, Work: Planning{Goal: x.goal, Streams: 1, Tokens: 64}}
		p.settle()
		var got []string
		for i := range p.Plans {
			got = append(got, p.Plans[i].String())
		}
		moved := got[0] != x.plans[0].String()
		if s := strings.Join(got, " "); s != x.want || moved != (len(p.Notes) == 1) {
			t.Errorf("%s: %s, want %s; notes %q", x.name, s, x.want, p.Notes)
		}
	}
}
