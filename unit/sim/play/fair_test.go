package play_test

import (
	"testing"
	"time"

	"github.com/tandemrun/tandem/unit/sim/play"
)

const fourEqual = `{
	"name": "four equal", "description": "", "source": "", "model": "", "hidden": 8,
	"units": [{"name": "A"}, {"name": "B"}],
	"chunks": [
		{"name": "w", "kv": 8, "on": {"A": {"ms": 2, "row_ms": 0.5}, "B": {"ms": 2, "row_ms": 0.5}}},
		{"name": "x", "kv": 8, "on": {"A": {"ms": 2, "row_ms": 0.5}, "B": {"ms": 2, "row_ms": 0.5}}},
		{"name": "y", "kv": 8, "on": {"A": {"ms": 2, "row_ms": 0.5}, "B": {"ms": 2, "row_ms": 0.5}}},
		{"name": "z", "kv": 8, "on": {"A": {"ms": 2, "row_ms": 0.5}, "B": {"ms": 2, "row_ms": 0.5}}}
	],
	"handoffs": []
}`

// While one stream prefills thousands of tokens, no step of another one that
// decodes waits for more than one block of it on each unit.
func TestDecodeBesidePrefill(t *testing.T) {
	const block, prompt = 64, 4096
	for _, place := range []map[string]string{
		{},
		{"y": "B", "z": "B"},
		{"x": "B", "z": "B"},
		{"x": "B"},
		{"w": "B", "x": "B", "y": "B"},
	} {
		r := run(t, play.Config{Profile: parse(t, fourEqual), Placement: place, Block: block, Streams: []play.Stream{
			{Prompt: 1, Tokens: 400}, {Arrives: ms(20), Prompt: prompt, Tokens: 1},
		}})
		step := ms(4 * 2)
		task := ms(2 + 0.5*(block-1)) // of a block; there is one for each chunk
		var longest, alone time.Duration
		beside := 0
		for i, took := range r.Streams[0].Took {
			if i == 1 {
				alone = took
			}
			longest = max(longest, took)
			if took > alone {
				beside++
			}
		}
		if alone != step {
			t.Fatalf("%v: a step alone takes %v, not %v", place, alone, step)
		}
		if longest > step+4*task {
			t.Errorf("%v: a step took %v; a block takes %v", place, longest, 4*task)
		}
		if beside < prompt/block/2 {
			t.Errorf("%v: only %d steps beside %d blocks", place, beside, prompt/block)
		}
		// The prompt is not starved either.
		if wait, most := r.Streams[1].Took[0], prompt/block*(4*task+2*step); wait > most {
			t.Errorf("%v: the prompt took %v, more than %v", place, wait, most)
		}
	}
}
