package plan_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/tandemrun/tandem/plan"
	"github.com/tandemrun/tandem/unit/sim"
	"github.com/tandemrun/tandem/unit/sim/play"
)

func find(t testing.TB, name string) *sim.Profile {
	t.Helper()
	p, err := sim.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func predict(t testing.TB, c *plan.Costs, s plan.Schedule, w plan.Work) plan.Prediction {
	t.Helper()
	p, err := plan.Predict(c, s, w)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func ms(x float64) time.Duration { return time.Duration(math.Round(x * 1e6)) }

var (
	base  = []string{"ane", "ane", "ane", "ane"}
	split = []string{"ane", "ane", "gpu", "ane"}
)

// The seeds' figures.
func TestMacStudio(t *testing.T) {
	c := plan.FromProfile(find(t, "mac-studio"))
	for _, x := range []struct {
		placement []string
		streams   int
		low, high float64 // aggregate tokens a second
	}{
		{base, 1, 1000/30.3 - 1e-6, 1000/30.3 + 1e-6},
		{split, 1, 1000/39.4 - 1e-6, 1000/39.4 + 1e-6},
		{base, 2, 32.9, 33.1},
		{split, 2, 43, 1000 / 22.8},
	} {
		p := predict(t, c, plan.Schedule{Placement: x.placement, Merge: 1}, plan.Work{Streams: x.streams, Prompt: 1, Tokens: 64})
		if p.Aggregate < x.low || p.Aggregate > x.high {
			t.Errorf("%v, %d streams: %.3f tok/s, not between %.3f and %.3f", x.placement, x.streams, p.Aggregate, x.low, x.high)
		}
		if p.Step.Overlap != 0 {
			t.Errorf("%v: a single stream is said to overlap by %.2f", x.placement, p.Step.Overlap)
		}
	}
	p := predict(t, c, plan.Schedule{Placement: split}, plan.Work{Streams: 2, Prompt: 1, Tokens: 64})
	if p.Cold != ms(1222.8) || p.Step.Time != ms(39.4) || p.Least != ms(22.8) || p.Step.Busiest != "ane" {
		t.Errorf("cold %v, step %v, least %v, busiest %s", p.Cold, p.Step.Time, p.Least, p.Step.Busiest)
	}
	if !strings.Contains(p.Step.Why, "c1 → c2 → c3 → c4 → token → c1") {
		t.Error(p.Step.Why)
	}
	if p.Overlap < 0.95 {
		t.Errorf("two streams overlap by %.2f", p.Overlap)
	}
}

// What a single stream can overlap comes from the graph: y and z need x only.
func TestFork(t *testing.T) {
	cost := func(x float64) plan.Cost { return plan.Cost{Rows: plan.Linear(ms(x), ms(x))} }
	on := func(x float64) map[string]plan.Cost { return map[string]plan.Cost{"A": cost(x), "B": cost(x)} }
	c := &plan.Costs{
		Units: []plan.Unit{{Name: "A"}, {Name: "B"}},
		Chunks: []plan.Chunk{
			{Name: "x", On: on(2)},
			{Name: "y", Takes: []plan.Source{{From: 0, Bytes: 4}}, On: on(3)},
			{Name: "z", Takes: []plan.Source{{From: 0, Bytes: 4}}, On: on(4)},
			{Name: "w", Takes: []plan.Source{{From: 1, Bytes: 4}, {From: 2, Bytes: 4}}, On: on(1)},
		},
	}
	p := predict(t, c, plan.Schedule{Placement: []string{"A", "B", "A", "A"}}, plan.Work{Streams: 1, Prompt: 1, Tokens: 10})
	if p.Step.Time != ms(7) || p.Wall != ms(70) || math.Abs(p.Step.Overlap-1) > 1e-9 || math.Abs(p.Overlap-1) > 1e-9 {
		t.Errorf("a step of %v, %v for ten, overlap %.2f possible and %.2f found", p.Step.Time, p.Wall, p.Step.Overlap, p.Overlap)
	}
	if !strings.Contains(p.Step.Why, "3 of 4 chunks") {
		t.Error(p.Step.Why)
	}
	p = predict(t, c, plan.Schedule{Placement: []string{"A", "A", "A", "A"}}, plan.Work{Streams: 1, Prompt: 1, Tokens: 10})
	if p.Wall != ms(100) || p.Step.Overlap != 0 || !strings.Contains(p.Step.Why, "one unit") {
		t.Errorf("%v on one unit, overlap %.2f: %s", p.Wall, p.Step.Overlap, p.Step.Why)
	}
}

// Two streams that are always beside each other, worked out by hand: each
// chunk of 10 ms takes 15 while the other unit is at work.
func TestContention(t *testing.T) {
	cost := map[string]plan.Cost{"A": {Rows: plan.Linear(ms(10), ms(10))}, "B": {Rows: plan.Linear(ms(10), ms(10))}}
	c := &plan.Costs{
		Units:  []plan.Unit{{Name: "A"}, {Name: "B"}},
		Chunks: []plan.Chunk{{Name: "x", On: cost}, {Name: "y", Takes: []plan.Source{{From: 0, Bytes: 4}}, On: cost}},
		Contention: []plan.Contention{
			{Unit: "A", With: "B", Decode: 1.5, Prefill: 1}, {Unit: "B", With: "A", Decode: 1.5, Prefill: 1},
		},
	}
	s := plan.Schedule{Placement: []string{"A", "B"}, Merge: 1}
	// 10 alone, 19 rounds of 15 side by side, 10 alone.
	if p := predict(t, c, s, plan.Work{Streams: 2, Prompt: 1, Tokens: 10}); p.Wall != ms(10+19*15+10) {
		t.Errorf("%v, not 305 ms", p.Wall)
	}
	if p := predict(t, c, s, plan.Work{Streams: 1, Prompt: 1, Tokens: 10}); p.Wall != ms(200) {
		t.Errorf("one stream takes %v, not 200 ms", p.Wall)
	}
	// One-sided: B is not slowed. A's 10 take 5 alone and what B's 10 leave of it.
	c.Contention = c.Contention[:1]
	c.Contention[0].Decode = 2
	if p := predict(t, c, s, plan.Work{Streams: 2, Prompt: 1, Tokens: 1}); p.Wall != ms(10+10+5+10) {
		t.Errorf("%v, not 35 ms", p.Wall)
	}
}

// random makes up a device, as JSON.
func random(r *rand.Rand) string {
	units := []string{"A", "B", "C"}[:1+r.IntN(3)]
	some := func(most float64) string { return fmt.Sprintf("%.3f", 0.001+r.Float64()*most) }
	var u, c, h []string
	for _, name := range units {
		driver := ""
		if r.IntN(4) == 0 {
			driver = `, "driver": "shared"`
		}
		u = append(u, fmt.Sprintf(`{"name": %q%s}`, name, driver))
	}
	n := 1 + r.IntN(5)
	caches := []int{}
	for i := range n {
		var fields []string
		if i > 0 && len(caches) > 0 && r.IntN(3) == 0 {
			fields = append(fields, fmt.Sprintf(`"reads": ["k%d"]`, caches[r.IntN(len(caches))]))
		} else if r.IntN(2) == 0 {
			fields, caches = append(fields, fmt.Sprintf(`"kv": %d`, 2*(1+r.IntN(100)))), append(caches, i)
		}
		if i > 1 && r.IntN(2) == 0 {
			fields = append(fields, fmt.Sprintf(`"takes": {"k%d": %d}`, r.IntN(i-1), 1+r.IntN(200)))
		}
		var on []string
		for _, name := range units {
			cost := `"ms": ` + some(10)
			for _, x := range []struct {
				field string
				most  float64
			}{{"row_ms", 2}, {"stream_ms", 5}, {"cold_ms", 100}} {
				if r.IntN(2) == 0 {
					cost += fmt.Sprintf(`, %q: %s`, x.field, some(x.most))
				}
			}
			on = append(on, fmt.Sprintf(`%q: {%s}`, name, cost))
		}
		fields = append(fields, fmt.Sprintf(`"name": "k%d", "on": {%s}`, i, strings.Join(on, ", ")))
		c = append(c, "{"+strings.Join(fields, ", ")+"}")
	}
	for range r.IntN(4) {
		from, to := append(units, "*")[r.IntN(len(units)+1)], units[r.IntN(len(units))]
		h = append(h, fmt.Sprintf(`{"from": %q, "to": %q, "call_ms": %s, "ns_per_byte": %s}`, from, to, some(2), some(1000)))
	}
	host := ""
	if r.IntN(2) == 0 {
		host = `"host_ms": ` + some(3) + ", "
	}
	return fmt.Sprintf(`{"name": "random", "hidden": %d, %s"units": [%s], "chunks": [%s], "handoffs": [%s]}`,
		1+r.IntN(300), host, strings.Join(u, ", "), strings.Join(c, ", "), strings.Join(h, ", "))
}

// Whatever the device, the prediction is what the engine does on it, though
// they share no code.
func TestPredictionIsWhatTheEngineDoes(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for trial := range 400 {
		text := random(r)
		p, err := sim.Parse("random", []byte(text))
		if err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		c := plan.FromProfile(p)
		placement, names := map[string]string{}, []string{}
		for _, x := range p.Chunks {
			name := p.Units[r.IntN(len(p.Units))].Name
			placement[x.Name], names = name, append(names, name)
		}
		w := plan.Work{Streams: 1 + r.IntN(4), Prompt: 1 + r.IntN(40), Tokens: 1 + r.IntN(20)}
		s := plan.Schedule{Placement: names, Streams: r.IntN(5), Block: 1 + r.IntN(16), Merge: r.IntN(4)}
		compare(t, fmt.Sprintf("trial %d", trial), p, placement, c, s, w)
		if t.Failed() {
			data, _ := json.Marshal(p)
			t.Fatalf("%s\n%+v %+v", data, s, w)
		}
	}
	for _, name := range sim.Profiles() {
		p := find(t, name)
		names, err := p.Place(nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, streams := range []int{1, 2, 3} {
			compare(t, name, p, nil, plan.FromProfile(p), plan.Schedule{Placement: names, Block: 64}, plan.Work{Streams: streams, Prompt: 100, Tokens: 64})
		}
	}
}

// compare allows for nothing: both count nanoseconds.
func compare(t *testing.T, what string, p *sim.Profile, placement map[string]string, c *plan.Costs, s plan.Schedule, w plan.Work) {
	t.Helper()
	got := predict(t, c, s, w)
	want, err := play.Run(t.Context(), play.Config{Profile: p, Placement: placement, Streams: play.Same(w.Streams, w.Prompt, w.Tokens), Slots: s.Streams, Block: s.Block, Merge: s.Merge})
	if err != nil {
		t.Fatal(err)
	}
	var ttft time.Duration
	for _, x := range want.Streams {
		ttft = max(ttft, x.Took[0]+p.Host())
	}
	if s.Streams > 0 && s.Streams < w.Streams {
		ttft = got.TTFT // the engine's is without the wait for a slot
	}
	near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Abs(b) }
	if got.Wall != want.Wall || got.Cold != want.Cold+p.Host() || got.TTFT != ttft || !near(got.Aggregate, want.Aggregate) || !near(got.Steady, want.Steady) {
		t.Errorf("%s: predicted %v, cold %v, TTFT %v, %.3f and steady %.3f tok/s; the engine took %v, cold %v, TTFT %v, %.3f and %.3f tok/s",
			what, got.Wall, got.Cold, got.TTFT, got.Aggregate, got.Steady, want.Wall, want.Cold, ttft, want.Aggregate, want.Steady)
	}
	for i, u := range want.Units {
		if got.Units[i].Name != u.Name || got.Units[i].Busy != u.Busy {
			t.Errorf("%s: unit %s is busy for %v; the engine had %s busy for %v", what, got.Units[i].Name, got.Units[i].Busy, u.Name, u.Busy)
		}
	}
	if least := got.Least.Seconds() * 0.999999; got.Aggregate > 1/least {
		t.Errorf("%s: %.3f tok/s, but %v a token at least", what, got.Aggregate, got.Least)
	}
}

// A task that waited begins a little after the one before, and right behind one
// of the same chunk it takes less.
func TestNextAndBetween(t *testing.T) {
	c := &plan.Costs{
		Units: []plan.Unit{{Name: "u", Wake: ms(0.5), WakeSoon: ms(0.5), Between: ms(0.25)}},
		Chunks: []plan.Chunk{
			{Name: "c1", On: map[string]plan.Cost{"u": {Rows: []plan.Sample{{N: 1, Time: ms(4)}}, Next: ms(3)}}},
			{Name: "c2", Takes: []plan.Source{{From: 0}}, On: map[string]plan.Cost{"u": {Rows: []plan.Sample{{N: 1, Time: ms(2)}}}}},
		},
	}
	for streams, want := range map[int]float64{
		1: 0.5 + 4 + 0.25 + 2,                       // c1 c2
		2: 0.5 + 4 + 0.25 + 3 + 0.25 + 2 + 0.25 + 2, // c1 c1 c2 c2
	} {
		p := predict(t, c, plan.Schedule{Placement: []string{"u", "u"}, Merge: 1}, plan.Work{Streams: streams, Prompt: 1, Tokens: 1})
		if p.Wall != ms(want) {
			t.Errorf("%d streams: %v, not %g ms", streams, p.Wall, want)
		}
	}
}

// Who is woken by a unit that goes on with other work comes late; who is woken
// by one that has nothing else to do does not.
func TestLate(t *testing.T) {
	on := func(unit string, took time.Duration) plan.Chunk {
		return plan.Chunk{Name: unit, On: map[string]plan.Cost{unit: {Rows: []plan.Sample{{N: 1, Time: took}}}}}
	}
	c := &plan.Costs{Units: []plan.Unit{{Name: "a"}, {Name: "b"}}, Chunks: []plan.Chunk{on("a", ms(2)), on("b", ms(1))}}
	c.Chunks[1].Takes = []plan.Source{{From: 0, Name: "rows"}}
	s := plan.Schedule{Placement: []string{"a", "b"}, Merge: 1}
	for _, x := range []struct{ late, one, ttft, wall float64 }{
		{0, 6, 5, 9},
		// The first stream wakes b while a goes on with the second, 0 to 2, 2.5 to 3.5
		// and a again from 4 on, for which the second one's rows come late: 4.5 to 5.5.
		{0.5, 6, 5.5, 9},
		// b: 4 to 5 and 5 to 6, so that the first stream comes late at 7 as well, behind
		// the second one at 6; a goes on with it at 8, and b wakes late, at 10.
		{2, 6, 6, 12},
	} {
		c.Late = ms(x.late)
		one := predict(t, c, s, plan.Work{Streams: 1, Prompt: 1, Tokens: 2})
		two := predict(t, c, s, plan.Work{Streams: 2, Prompt: 1, Tokens: 2})
		if one.Wall != ms(x.one) || two.TTFT != ms(x.ttft) || two.Wall != ms(x.wall) {
			t.Errorf("%g ms late: %v alone, %v until both have a token, %v in all; want %g, %g, %g", x.late, one.Wall, two.TTFT, two.Wall, x.one, x.ttft, x.wall)
		}
	}
}

// Of streams that were merged one comes late. If that is for longer than a unit
// waits for it they are merged no more, unless both wait for a third.
func TestLateApart(t *testing.T) {
	c := &plan.Costs{Units: []plan.Unit{{Name: "a"}}, Chunks: []plan.Chunk{{Name: "x", On: map[string]plan.Cost{
		"a": {Rows: []plan.Sample{{N: 1, Time: ms(2)}}, Streams: plan.Linear(ms(2), ms(0.5))}}}}}
	s := plan.Schedule{Placement: []string{"a"}}
	for _, x := range []struct {
		late    float64
		streams int
		want    float64
	}{
		{0, 2, 4 * 2.5},
		// The unit waits for the second for 2.5/16 at most.
		{0.125, 2, 4*2.5 + 3*0.125},
		// 2.5 together and waited in vain, then one after the other: 4.65625, 6.65625 ...
		{0.5, 2, 2.5 + 2.5/16 + 6*2},
		{0, 4, 4 * 3.5},
	} {
		c.Late = ms(x.late)
		if p := predict(t, c, s, plan.Work{Streams: x.streams, Prompt: 1, Tokens: 4}); p.Wall != ms(x.want) {
			t.Errorf("%g ms late, %d streams: %v, want %g ms", x.late, x.streams, p.Wall, x.want)
		}
	}
}

// Between tasks that wait for each other's unit there is some time; the first
// task of a unit that had nothing to do waits for it to wake instead.
func TestNext(t *testing.T) {
	cost := plan.Cost{Rows: []plan.Sample{{N: 1, Time: ms(2)}}}
	c := &plan.Costs{Units: []plan.Unit{{Name: "a", Wake: ms(0.25), WakeSoon: ms(0.25), Next: ms(0.5)}}}
	c.Chunks = []plan.Chunk{{Name: "x", On: map[string]plan.Cost{"a": cost}}, {Name: "y", On: map[string]plan.Cost{"a": cost}, Takes: []plan.Source{{From: 0, Name: "rows"}}}}
	s := plan.Schedule{Placement: []string{"a", "a"}, Merge: 1}
	for streams, want := range map[int]float64{1: 0.25 + 2 + 0.5 + 2, 2: 0.25 + 4*2 + 3*0.5} {
		if p := predict(t, c, s, plan.Work{Streams: streams, Prompt: 1, Tokens: 1}); p.Wall != ms(want) {
			t.Errorf("%d streams: %v, want %g ms", streams, p.Wall, want)
		}
	}
}
