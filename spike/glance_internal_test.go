package spike

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tandemrun/tandem/engine"
	"github.com/tandemrun/tandem/plan"
)

// A task of two streams that are kept apart, c1 on a and c2 on b, in ms.
type seen struct {
	chunk, stream               int
	task, after                 int
	submitted, ready, from, end float64
}

func records(tasks []seen) []engine.Record {
	at := func(x float64) time.Time { return time.Unix(100, 0).Add(milliseconds(x)) }
	var out []engine.Record
	for _, x := range tasks {
		out = append(out, engine.Record{
			Chunk: x.chunk, Unit: x.chunk, Rows: 1, Streams: 1, Start: at(x.from), End: at(x.end),
			Parts: []engine.RecordPart{{Stream: x.stream, Task: x.task, After: x.after, Submitted: at(x.submitted), Ready: at(x.ready)}},
		})
	}
	return out
}

// Times are told apart by what the unit did before and by who woke it.
func TestGlance(t *testing.T) {
	g := newGlance(2)
	c := &plan.Costs{Chunks: make([]plan.Chunk, 2), Contention: []plan.Contention{{Unit: "a", With: "b", Decode: 2, Prefill: 1}, {Unit: "b", With: "a", Decode: 2, Prefill: 1}}}
	g.add(c, []string{"a", "b"}, records([]seen{
		{chunk: 0, stream: 1, task: 0, after: -1, submitted: 0, ready: 0, from: 1, end: 5},
		{chunk: 0, stream: 2, task: 2, after: -1, submitted: 0, ready: 0, from: 5.5, end: 8},     // right behind the same chunk
		{chunk: 1, stream: 1, task: 1, after: 0, submitted: 0, ready: 5, from: 7, end: 12},       // the first on b: not counted
		{chunk: 1, stream: 2, task: 3, after: 2, submitted: 0, ready: 8, from: 12.25, end: 15},   // b had it waiting
		{chunk: 0, stream: 1, task: 4, after: -1, submitted: 14, ready: 14, from: 14.5, end: 18}, // a had slept; b went on when it ended
		{chunk: 1, stream: 1, task: 5, after: 4, submitted: 14, ready: 18, from: 20, end: 24},    // b had slept; a had nothing else
		{chunk: 0, stream: 2, task: 6, after: -1, submitted: 17, ready: 17, from: 18.25, end: 21},
		{chunk: 1, stream: 2, task: 7, after: 6, submitted: 17, ready: 21, from: 24.25, end: 27},
	}), 0, 2)
	want := newGlance(2)
	want.same = [][]float64{{
		2.5 - 0.5*1,   // c2 ran beside the last 1 of it
		3.5 - 0.5*0.5, // and beside the first 0.5 of this
		2.75 - 0.5*1,  // and the last 1 of this
	}, {
		2.75 - 0.5*0.5,
		4 - 0.5*1,
		2.75,
	}}
	want.other = [][]float64{{4}, {5 - 0.5*1}}
	want.between = map[string][]float64{"a": {0.5, 0.25 + 0}, "b": {0.25, 0.25}}
	want.wake = map[string][]float64{"a": {0.5}, "b": {}}
	want.late = map[string][]float64{"b": {2}}
	want.host, want.hostLate = []float64{17 - 15}, []float64{14 - 12}
	if d := cmp.Diff(want, g, cmp.AllowUnexported(glance{}), cmpopts.EquateEmpty(), cmpopts.EquateApprox(0, 1e-5), cmpopts.IgnoreMapEntries(func(_ string, x []float64) bool { return len(x) == 0 })); d != "" {
		t.Error(d)
	}
}

// A unit that goes on with the next chunk of one stream has not slept, though that
// could start a moment after its last task ended.
func TestGlanceChain(t *testing.T) {
	rs := records([]seen{
		{chunk: 0, stream: 1, task: 0, after: -1, from: 1, end: 5},
		{chunk: 1, stream: 1, task: 1, after: 0, ready: 5.1, from: 5.5, end: 9},
	})
	rs[1].Unit = rs[0].Unit
	g := newGlance(2)
	g.add(&plan.Costs{Chunks: make([]plan.Chunk, 2)}, []string{"a", "a"}, rs, 0, 1)
	if len(g.wake) != 0 || len(g.late) != 0 || len(g.between["a"]) != 1 || g.between["a"][0] != 0.5 {
		t.Errorf("woken after %v, late after %v, between tasks %v ms", g.wake, g.late, g.between)
	}
}

// What was seen takes the place of what was measured, what was not is scaled
// alike, and handing over is no more apart.
func TestGlancePut(t *testing.T) {
	cost := func(ms, next float64) map[string]plan.Cost {
		return map[string]plan.Cost{"a": {Rows: []plan.Sample{{N: 1, Time: milliseconds(ms)}}, Next: milliseconds(next), Streams: []plan.Sample{{N: 1, Time: milliseconds(ms)}, {N: 2, Time: milliseconds(1.5 * ms)}}}}
	}
	c := &plan.Costs{
		Units: []plan.Unit{{Name: "a", Wake: 9}}, Chunks: []plan.Chunk{{On: cost(2, 1)}, {On: cost(4, 3)}},
		Handoffs: []plan.Handoff{{From: "*", To: "*", Call: 1}}, Host: 7,
	}
	g := newGlance(2)
	g.other[0], g.same[0] = []float64{3, 3, 3}, []float64{1.5, 1.5, 1.5}
	g.host, g.hostLate = []float64{1, 1, 1}, []float64{3, 3, 3}
	g.wake["a"], g.late["a"] = []float64{2, 2, 2}, []float64{6, 6, 6}
	got, by := g.put(c, []string{"a", "a"}, several{2, 1})
	if by["a"] != 1.5 || len(got.Handoffs) != 0 || got.Host != time.Millisecond || got.Units[0].Wake != 2*time.Millisecond || got.Late != 3*time.Millisecond {
		t.Errorf("%v and %+v", by, got)
	}
	first, second := got.Chunks[0].On["a"], got.Chunks[1].On["a"]
	if first.Rows[0].Time != 3*time.Millisecond || first.Next != milliseconds(1.5) {
		t.Errorf("c1: %+v", first)
	}
	if second.Rows[0].Time != 6*time.Millisecond || second.Next != milliseconds(4.5) || second.Streams[1].Time != 9*time.Millisecond {
		t.Errorf("c2: %+v", second)
	}
	if c.Chunks[0].On["a"].Rows[0].Time != 2*time.Millisecond || c.Units[0].Wake != 9 || c.Host != 7 {
		t.Errorf("the costs were changed: %+v", c)
	}
	g = newGlance(2)
	g.merged[0], g.merged[1] = []float64{4, 5, 99}, []float64{6}
	got, _ = g.put(c, []string{"a", "a"}, several{2, 0})
	if a, b := together(got.Chunks[0].On["a"], 2), together(got.Chunks[1].On["a"], 2); a != milliseconds(4.5) || b != 6*time.Millisecond {
		t.Errorf("merged tasks: %v and %v", a, b)
	}
}
