package budget_test

import (
	"math"
	"strings"
	"testing"

	"github.com/tandemrun/tandem/budget"
)

func f(x float64) *float64 { return &x }

// lever finds one.
func lever(t *testing.T, r budget.Report, name, change string) budget.Lever {
	t.Helper()
	for _, l := range r.Levers {
		if l.Lever == name && strings.Contains(l.Change, change) {
			return l
		}
	}
	t.Fatalf("no lever %q, %q in %+v", name, change, r.Levers)
	return budget.Lever{}
}

func near(x *float64, want float64) bool { return x != nil && math.Abs(*x-want) < 1e-9 }

// A step whose every figure is chosen: 10 ms, of which 8 in tasks.
func TestExplain(t *testing.T) {
	s := budget.Step{
		Chunks: []budget.Chunk{
			{Name: "c1", Unit: "a", MS: 5, Gap: 0.5, Memory: f(4), Arithmetic: f(0.5)},
			{Name: "c2", Unit: "a", MS: 3, Gap: 0.25, Memory: f(2), Arithmetic: f(0.25)},
		},
		Host: 1, End: 0.25, Copies: f(0.5), Attention: f(2), KV: "f32",
		Moves: []budget.Move{{"c2", "b", 12.5, false}, {"c1", "b", 8, true}},
	}
	r := budget.Explain(s)
	if r.StepMS != 10 || r.Rate != 100 || r.BoundedBy != "memory" || !strings.Contains(r.Why, "60.0 %") {
		t.Errorf("got %+v", r)
	}
	var parts float64
	for _, p := range r.Parts {
		parts += *p.MS
	}
	if parts != r.StepMS {
		t.Errorf("parts make %g of %g ms", parts, r.StepMS)
	}
	for _, c := range []struct {
		lever, change string
		step, gain    float64
	}{
		{"faster chunk", "c1 in no time", 5, 1},
		{"faster chunk", "c1 at the ceiling", 9, 10./9 - 1},
		{"fewer chunks", "1 instead of 2", 9.75, 10/9.75 - 1},
		{"no copies", "", 9.5, 10/9.5 - 1},
		{"no CPU work", "", 9, 10./9 - 1},
		{"no dispatch", "", 9, 10./9 - 1},
		{"other placement", "c2 on b", 12.5, -0.2},
		{"other placement", "c1 on b", 8, 0.25},
		{"other KV type", "f16", 9, 10./9 - 1},
		{"other KV type", "q8_0", 10 - 2*(1-34./128), 10/(10-2*(1-34./128)) - 1},
	} {
		l := lever(t, r, c.lever, c.change)
		if !near(l.StepMS, c.step) || !near(l.Gain, c.gain) || !near(l.Rate, 1000/c.step) {
			t.Errorf("%s, %s: %v ms, gain %v; want %g, %g", c.lever, c.change, *l.StepMS, *l.Gain, c.step, c.gain)
		}
	}
	if a, b := lever(t, r, "other placement", "c2"), lever(t, r, "other placement", "c1"); a.Basis != "expected" || b.Basis != "measured" {
		t.Errorf("%+v, %+v", a, b)
	}
	// Eight streams are bound by arithmetic only at 10 / 0.75 streams.
	if l := lever(t, r, "more streams", "8"); !near(l.Gain, 7) || l.StepMS != nil || l.Basis != "cap" {
		t.Errorf("8 streams: %+v", l)
	}
	s.Chunks[0].Arithmetic = f(2.25)
	if l := lever(t, budget.Explain(s), "more streams", "8"); !near(l.Gain, 3) {
		t.Errorf("8 streams with more arithmetic: %+v", l)
	}
}

func TestBounds(t *testing.T) {
	two := func(unit string) []budget.Chunk {
		return []budget.Chunk{{Name: "c1", Unit: "a", MS: 5}, {Name: "c2", Unit: unit, MS: 5}}
	}
	known := func(c []budget.Chunk, memory, arithmetic float64) []budget.Chunk {
		for i := range c {
			c[i].Memory, c[i].Arithmetic = f(memory), f(arithmetic)
		}
		return c
	}
	for _, c := range []struct {
		s    budget.Step
		want string
	}{
		{budget.Step{Chunks: known(two("a"), 1, 4)}, "arithmetic"},
		{budget.Step{Chunks: known(two("a"), 1, 1)}, "unit"},
		{budget.Step{Chunks: known(two("b"), 1, 1)}, "dependency"},
		{budget.Step{Chunks: known(two("a"), 1, 1), Host: 9}, "dispatch"},
		{budget.Step{Chunks: two("a")}, "unit"},
	} {
		if r := budget.Explain(c.s); r.BoundedBy != c.want {
			t.Errorf("%+v is bounded by %s (%s), want %s", c.s, r.BoundedBy, r.Why, c.want)
		}
	}
}

// What is not known is said to be so, and is no number.
func TestUnknown(t *testing.T) {
	r := budget.Explain(budget.Step{Chunks: []budget.Chunk{{Name: "c1", Unit: "a", MS: 5}, {Name: "c2", Unit: "a", MS: 5}}, NoGaps: true, KV: "f16"})
	for _, name := range []string{"fewer chunks", "no copies", "other placement", "more streams", "other KV type"} {
		if l := lever(t, r, name, ""); l.Gain != nil || l.Rate != nil || l.StepMS != nil || !strings.HasPrefix(l.Basis, "unavailable: ") {
			t.Errorf("%+v", l)
		}
	}
	// A step that is nothing but one chunk has no cap.
	r = budget.Explain(budget.Step{Chunks: []budget.Chunk{{Name: "c1", Unit: "a", MS: 5}}})
	if l := lever(t, r, "faster chunk", "no time"); l.Gain != nil || *l.StepMS != 0 {
		t.Errorf("%+v", l)
	}
}

// Weights that stay in caches have no memory bound, but a ceiling.
func TestInCaches(t *testing.T) {
	r := budget.Explain(budget.Step{Chunks: []budget.Chunk{{Name: "c1", Unit: "a", MS: 8, Gap: 2, Arithmetic: f(3)}}, InCaches: true})
	if r.Bounds[0].MS != nil || r.BoundedBy != "unit" || !strings.Contains(r.Why, "caches") {
		t.Errorf("%+v", r)
	}
	if l := lever(t, r, "faster chunk", "ceiling"); !near(l.StepMS, 5) {
		t.Errorf("%+v", l)
	}
}
