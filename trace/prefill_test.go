package trace_test

import (
	"testing"

	"github.com/tandemrun/tandem/trace"
	"github.com/tandemrun/tandem/unit/sim"
	"github.com/tandemrun/tandem/unit/sim/play"
)

const twoSides = `{
	"name": "two sides", "description": "", "source": "", "model": "", "hidden": 8,
	"units": [{"name": "A"}, {"name": "B"}],
	"chunks": [
		{"name": "x", "kv": 8, "on": {"A": {"ms": 10, "row_ms": 1}, "B": {"ms": 4}}},
		{"name": "y", "reads": ["x"], "on": {"A": {"ms": 10}, "B": {"ms": 4}}}
	],
	"handoffs": [{"from": "*", "to": "*", "call_ms": 1, "ns_per_byte": 62500}]
}`

// Cache rows that go from where prefill was to where decode is are tasks and
// handoffs like others, and a unit that waits for them is idle for a handoff.
func TestPrefillMoves(t *testing.T) {
	p, err := sim.Parse("two sides", []byte(twoSides))
	if err != nil {
		t.Fatal(err)
	}
	on := func(unit string) map[string]string { return map[string]string{"x": unit, "y": unit} }
	r, err := play.Run(t.Context(), play.Config{Profile: p, Placement: on("B"), Prefill: on("A"), Streams: play.Same(2, 100, 3)})
	if err != nil {
		t.Fatal(err)
	}
	x, err := trace.New(trace.Layout{Name: p.Name, Units: []string{"B", "A"}, Chunks: []string{"x", "y"}}, r.Records)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range x.Handoffs {
		from, to := x.Tasks[h.From], x.Tasks[h.To]
		if from.Unit != 1 || to.Unit != 0 || from.End > to.Start {
			t.Errorf("a handoff from unit %d at %v to unit %d at %v", from.Unit, from.End, to.Unit, to.Start)
		}
		if from.Parts[0].Moved != 100 || to.Parts[0].Moved != 100 || to.CopyIn != 101*ms {
			t.Errorf("%+v to %+v: 100 positions of 16 bytes were to be moved", from, to)
		}
	}
	events := checkChrome(t, x)
	if len(x.Handoffs) != 2 || count(events, "s", "") != 2 {
		t.Errorf("%d handoffs, %d arrows; two were to be there", len(x.Handoffs), count(events, "s", ""))
	}
	named := 0
	for _, e := range events {
		if *e.Ph == "X" && *e.Name == "x s2 cache rows" {
			named++
		}
	}
	if named != 2 {
		t.Errorf("%d tasks that move the rows of s2, not two", named)
	}
}
