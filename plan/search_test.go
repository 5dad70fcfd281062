package plan_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tandemrun/tandem/plan"
)

func search(t testing.TB, p plan.Problem) plan.Found {
	t.Helper()
	f, err := plan.Search(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// The questions of the Mac Studio.
func TestMacStudioPlans(t *testing.T) {
	p := plan.Problem{Costs: plan.FromProfile(find(t, "mac-studio")), Work: plan.Work{Streams: 1, Prompt: 512, Tokens: 64}, Goal: plan.GoalDecode, Top: 3}
	f := search(t, p)
	best := f.Plans[0]
	if !slices.Equal(best.Placement, base) || !f.Exact || f.Layouts != 2 || len(f.Plans) != 2 {
		t.Errorf("one stream: %v of %d layouts, %d plans", best.Placement, f.Layouts, len(f.Plans))
	}
	if got := fmt.Sprintf("%.1f", best.Decode.Aggregate); got != "33.0" {
		t.Errorf("one stream: %s tok/s", got)
	}
	lose, err := p.Alternatives(&best)
	if err != nil || len(lose) != 1 {
		t.Fatalf("%+v, %v", lose, err)
	}
	if got := fmt.Sprintf("%s loses %.0f %%", lose[0].What, 100*lose[0].Loss); got != "moving c3 to gpu loses 23 %" || !strings.Contains(lose[0].Why, "chain") {
		t.Errorf("%s: %s", got, lose[0].Why)
	}

	p.Work.Streams = 2
	f = search(t, p)
	if best := f.Plans[0]; !slices.Equal(best.Placement, split) || best.Decode.Aggregate < 43 || best.Streams != 2 {
		t.Errorf("two streams: %v, %.2f tok/s", best.Placement, best.Decode.Aggregate)
	}
	if f.Baseline.Decode.Aggregate > 33.1 || len(f.Baseline.Units()) != 1 {
		t.Errorf("the best single unit: %v, %.2f tok/s", f.Baseline.Placement, f.Baseline.Decode.Aggregate)
	}

	p.Goal = plan.GoalEnergy
	f = search(t, p)
	if e := f.Plans[0].Energy; e.Joules == nil || *e.Joules > 0.0304 || *e.Joules < 0.0302 || e.Basis != "estimated from busy times and stated watts" {
		t.Errorf("%v: %+v", f.Plans[0].Placement, e)
	}
}

// layered makes up costs of pieces on two units that slow each other.
func layered(r *rand.Rand, n int) *plan.Costs {
	c := &plan.Costs{Host: ms(r.Float64())}
	for _, name := range []string{"A", "B", "AB"} {
		u := plan.Unit{Name: name, Saved: plan.Cost{Rows: plan.Linear(ms(0.1), 0), Streams: plan.Linear(ms(0.1), 0)}}
		if name == "AB" {
			u.Never = []string{"A", "B"}
		}
		c.Units = append(c.Units, u)
	}
	c.Handoffs = []plan.Handoff{{From: "*", To: "*", Call: ms(0.1)}}
	slow := 1 + r.Float64()
	c.Contention = []plan.Contention{{Unit: "A", With: "B", Decode: slow, Prefill: 1.1}, {Unit: "B", With: "A", Decode: slow, Prefill: 1.1}}
	for i := range n {
		x := plan.Chunk{Name: fmt.Sprint("layer ", i), On: map[string]plan.Cost{}}
		if i > 0 {
			x.Takes = []plan.Source{{From: i - 1, Name: fmt.Sprint("state ", i), Bytes: 4}}
		}
		d := 0.5 + 2*r.Float64()
		for k, name := range []string{"A", "B", "AB"} {
			f := []float64{1, 0.7 + 0.6*r.Float64(), 0.6}[k]
			x.On[name] = plan.Cost{Rows: plan.Linear(ms(d*f), ms(0.2*d*f)), Streams: plan.Linear(ms(d*f), ms(0.3*d*f))}
		}
		c.Chunks = append(c.Chunks, x)
	}
	return c
}

// The search that leaves out what its bounds exclude finds what trying all
// layouts finds, and never prefers units that are worse than a single one.
func TestSearchIsExact(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for trial := range 30 {
		c := layered(r, 3+r.IntN(4))
		for _, goal := range []plan.Goal{plan.GoalDecode, plan.GoalPrefill, plan.GoalMixed} {
			p := plan.Problem{
				Costs: c, Join: true, Most: 3, Work: plan.Work{Streams: 1 + r.IntN(3), Prompt: 20, Tokens: 8},
				Goal: goal, Blocks: []int{4, 16}, Top: 1,
			}
			got := search(t, p)
			all := p
			all.Top = 1 << 20 // nothing may be left out
			want := search(t, all)
			best := func(f plan.Found) string {
				x := f.Plans[0]
				return fmt.Sprintf("%v %v %.9f %v", x.Placement, x.Cuts, x.Decode.Aggregate, x.Prefill.TTFT)
			}
			if !got.Exact || best(got) != best(want) || got.Predicted > want.Predicted {
				t.Fatalf("trial %d, %s: %s after %d predictions, not %s of %d", trial, goal, best(got), got.Predicted, best(want), want.Predicted)
			}
			for _, x := range want.Plans[1:] {
				if u := x.Units(); slices.Contains(u, "AB") && len(u) > 1 {
					t.Fatalf("%v are used together", u)
				}
			}
			near := p
			near.Limit = 1
			if f := search(t, near); f.Exact || f.Plans[0].Decode.Aggregate < 0.9*f.Baseline.Decode.Aggregate && goal == plan.GoalDecode {
				t.Errorf("a search that is not exact: %v, %s", f.Exact, best(f))
			}
		}
	}
}

// What is not surely better than the best single unit does not come before it,
// and what does not fit into memory is not proposed.
func TestGainAndMemory(t *testing.T) {
	p := plan.Problem{Costs: plan.FromProfile(find(t, "mac-studio")), Work: plan.Work{Streams: 2, Prompt: 1, Tokens: 64}, Goal: plan.GoalDecode, Top: 2, Gain: 0.5}
	if f := search(t, p); !slices.Equal(f.Plans[0].Placement, base) || !slices.Equal(f.Plans[1].Placement, split) {
		t.Errorf("with a gain of 32 %% where 50 are asked for: %v", f.Plans[0].Placement)
	}
	p.Gain = 0
	p.Fits = func(x *plan.Plan) (bool, error) { return !slices.Contains(x.Placement, "gpu"), nil }
	if f := search(t, p); !slices.Equal(f.Plans[0].Placement, base) || f.Refused == 0 {
		t.Errorf("%v though the gpu has no room; %d refused", f.Plans[0].Placement, f.Refused)
	}
	p.Fits = func(*plan.Plan) (bool, error) { return false, nil }
	if _, err := plan.Search(t.Context(), p); err == nil || !strings.Contains(err.Error(), "memory") {
		t.Error(err)
	}
}

// Pieces on one unit as one chunk take what they take one after the other, less
// what is saved, and hand nothing over.
func TestJoin(t *testing.T) {
	on := func(x, head float64) map[string]plan.Cost {
		return map[string]plan.Cost{"A": {Rows: []plan.Sample{{N: 1, Time: ms(x)}, {N: 8, Time: ms(4 * x)}}, Head: ms(head)}}
	}
	c := &plan.Costs{
		Units: []plan.Unit{{Name: "A", Saved: plan.Cost{Rows: []plan.Sample{{N: 1, Time: ms(0.5)}, {N: 8, Time: ms(1)}}}}},
		Chunks: []plan.Chunk{
			{On: on(2, 0)},
			{On: on(3, 0), Takes: []plan.Source{{From: 0, Name: "state", Bytes: 100}, {From: 0, Name: "extra", Bytes: 10}}},
			{On: on(4, 0), Takes: []plan.Source{{From: 1, Name: "state", Bytes: 100}, {From: 0, Name: "extra", Bytes: 10}}, Reads: []plan.Source{{From: 1, Name: "1", Bytes: 7}}},
			{On: on(5, 0), WantedOnly: true, Takes: []plan.Source{{From: 2, Name: "state", Bytes: 100}, {From: 0, Name: "extra", Bytes: 10}}, Reads: []plan.Source{{From: 1, Name: "1", Bytes: 7}}},
		},
	}
	x, err := c.Join([]int{2})
	if err != nil {
		t.Fatal(err)
	}
	second := x.Chunks[1]
	if got := fmt.Sprint(second.Takes, second.Reads); got != "[{0 state 100} {0 extra 20}] [{0 1 7}]" {
		t.Error(got)
	}
	if got := second.On["A"]; got.Rows[0].Time != ms(8.5) || got.Rows[1].Time != ms(16) || got.Head != ms(5) || second.WantedOnly {
		t.Errorf("%+v", got)
	}
	if got := x.Chunks[0].On["A"]; got.Rows[0].Time != ms(4.5) || got.Rows[1].Time != ms(19) {
		t.Errorf("%+v", got)
	}
	if x, err = c.Join([]int{3}); err != nil || !x.Chunks[1].WantedOnly {
		t.Errorf("%+v, %v", x, err)
	}
	for _, cuts := range [][]int{{0}, {4}, {2, 2}, {3, 1}} {
		if _, err := c.Join(cuts); err == nil {
			t.Errorf("cuts %v were taken", cuts)
		}
	}
}
