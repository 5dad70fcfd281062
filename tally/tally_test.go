package tally_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tandemrun/tandem/engine"
	"github.com/tandemrun/tandem/tally"
	"github.com/tandemrun/tandem/unit/sim"
	"github.com/tandemrun/tandem/unit/sim/play"
)

// One stream of the Mac Studio's profile: figures are those of its chunks.
func TestProfile(t *testing.T) {
	p, err := sim.Find("mac-studio")
	if err != nil {
		t.Fatal(err)
	}
	count := tally.New(4, []string{"ane", "gpu"})
	r, err := play.Run(t.Context(), play.Config{
		Profile: p, Placement: map[string]string{"c3": "gpu"}, Streams: play.Same(1, 1, 5), Cold: true, Observe: count.Observe,
	})
	if err != nil {
		t.Fatal(err)
	}
	got := count.Report()
	if got.Tokens != 5 || got.Positions != 5 || len(got.Sequences) != 1 {
		t.Fatalf("%+v", got)
	}
	q := got.Sequences[0]
	if d := cmp.Diff(r.Streams[0].Took[1:], q.Between, cmpopts.EquateApproxTime(0)); d != "" {
		t.Error(d)
	}
	// The profile's host time is all that is not inside the units.
	if host := r.Streams[0].Decode - q.Inside; host != 4*p.Host() {
		t.Errorf("host %v, want %v", host, 4*p.Host())
	}
	for i, u := range got.Units {
		if u.Unit != r.Units[i].Name || u.Busy != r.Units[i].Busy {
			t.Errorf("%+v, want %+v", u, r.Units[i])
		}
	}
}

var zero = time.Unix(0, 0).UTC()

func at(ms int) time.Time { return zero.Add(time.Duration(ms) * time.Millisecond) }

func task(chunk, begin, end int, parts ...engine.RecordPart) engine.Record {
	return engine.Record{Chunk: chunk, Start: at(begin), End: at(end), Parts: parts}
}

// A prompt of two blocks, two tokens, and then another prompt that begins with
// the same four tokens.
func TestSequences(t *testing.T) {
	c := tally.New(2, []string{"cpu"})
	part := func(pos, rows, wanted, submitted int) engine.RecordPart {
		return engine.RecordPart{Stream: 3, Pos: pos, Rows: rows, Wanted: wanted, Submitted: at(submitted)}
	}
	step := func(begin int, p engine.RecordPart) {
		c.Observe(task(0, begin, begin+2, p))
		c.Observe(task(1, begin+3, begin+4, p))
	}
	step(1, part(0, 8, 0, 0))
	step(6, part(8, 3, 1, 0))
	moved := part(11, 1, 1, 11)
	moved.Moved = 11
	c.Observe(engine.Record{Chunk: 1, Start: at(11), End: at(12), CopyTime: time.Millisecond, Parts: []engine.RecordPart{moved}})
	step(12, part(11, 1, 1, 11))
	step(20, part(12, 1, 1, 19))
	step(30, part(4, 6, 1, 29))
	got := c.Report()
	want := tally.Report{
		Tokens: 4, Positions: 8 + 3 + 1 + 1 + 6, Units: []tally.UnitBusy{{Unit: "cpu", Busy: 16 * time.Millisecond}},
		Sequences: []tally.Sequence{
			{Stream: 3, Submitted: at(0), Last: at(24), Prompt: 11, Tokens: 3, First: 10 * time.Millisecond,
				Between: []time.Duration{6 * time.Millisecond, 8 * time.Millisecond}, Inside: 6 * time.Millisecond},
			{Stream: 3, Submitted: at(29), Last: at(34), Prompt: 6, Tokens: 1, First: 5 * time.Millisecond},
		},
	}
	if d := cmp.Diff(want, got, cmpopts.IgnoreUnexported(tally.Sequence{})); d != "" {
		t.Error(d)
	}
}
