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
// decodes waits for more than one block of it on each unit: that is, for one
// task of it at each chunk. Blocks are small then, and large when nobody
// decodes.
func TestDecodeBesidePrefill(t *testing.T) {
	const block, small, prompt = 64, 16, 8192
	step := ms(4 * 2)
	task := func(rows int) time.Duration { return ms(2 + 0.5*float64(rows-1)) }
	for _, beside := range []int{0, small} {
		for _, place := range []map[string]string{
			{},
			{"y": "B", "z": "B"},
			{"x": "B", "z": "B"},
			{"x": "B"},
			{"w": "B", "x": "B", "y": "B"},
		} {
			c := play.Config{Profile: parse(t, fourEqual), Placement: place, Block: block, BlockBeside: beside, Streams: []play.Stream{
				{Prompt: 1, Tokens: 40}, {Arrives: ms(20), Prompt: prompt, Tokens: 1},
			}}
			r := run(t, c)
			rows := block
			if beside > 0 {
				rows = beside
			}
			var longest time.Duration
			waited := 0
			for _, took := range r.Streams[0].Took {
				longest = max(longest, took)
				if took > step {
					waited++
				}
			}
			if longest > step+4*task(rows) {
				t.Errorf("%v, blocks of %d: a step took %v; a block takes %v and a step %v", place, rows, longest, 4*task(rows), step)
			}
			if waited < 30 {
				t.Errorf("%v, blocks of %d: only %d steps met the prompt", place, rows, waited)
			}
			// The prompt waits for no more than one step at each of its tasks.
			if took, most := r.Streams[1].Took[0], prompt/small*4*(task(small)+ms(2)); took > most {
				t.Errorf("%v, blocks of %d: the prompt took %v, more than %v", place, rows, took, most)
			}
			// What came after the last step was in large blocks again.
			large := 0
			for _, x := range r.Records {
				if x.Parts[0].Stream == 1 {
					large = 0
				} else if x.Rows == block {
					large++
				}
			}
			if large < 100 {
				t.Errorf("%v, blocks of %d: %d large tasks behind the last step", place, rows, large)
			}
		}
	}
}
