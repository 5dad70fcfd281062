// Package golden reads the recorded answers and logits in testdata, for tests.
//
// They come from independent implementations; testdata/README.md says from which.
// The functions fail the test if a file is missing or not as it should be.
package golden

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"
)

// EndOfTurn is the token that ends an answer of the tiny model.
const EndOfTurn = 106

// An Answer is what the tiny model said to a prompt, greedily, by the types of
// its weights. Answers go on behind the end of the turn.
type Answer struct {
	Name   string
	Prompt []int32 `json:"prompt_ids"`
	F32    []int32 `json:"greedy_f32"`
	Q8_0   []int32 `json:"greedy_q8_0"`
	Q4_0   []int32 `json:"greedy_q4_0"`
	// End is the index of the token that ends the turn on F32 weights; nil if none
	// does. Margin is the least distance of the best two logits up to there.
	End    *int    `json:"first_end_of_turn"`
	Margin float64 `json:"min_margin_before_end"`
	// Steps are those of which logits were recorded, of F32 weights: Top10 has
	// tokens with their logits, each within 2e-3.
	Steps []struct {
		Step, Position int
		Top10          [][2]float64 `json:"top10_pytorch"`
	}
}

// Turn is the answer on F32 weights up to the end of the turn, that included, or
// all of it if it has none.
func (a *Answer) Turn() []int32 {
	if a.End == nil {
		return a.F32
	}
	return a.F32[:*a.End+1]
}

// answers is how many there are.
const answers = 14

// Answers reads all answers; testdata is the path of that folder.
func Answers(t testing.TB, testdata string) []Answer {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(testdata, "tiny", "golden", "[0-9][0-9]-*.json"))
	if err != nil || len(files) != answers {
		t.Fatalf("%d recorded answers (%v)", len(files), err)
	}
	var out []Answer
	for _, file := range files {
		var a Answer
		read(t, file, &a)
		if len(a.Prompt) == 0 || len(a.F32) == 0 || len(a.Steps) == 0 {
			t.Fatalf("%s has a prompt of %d tokens, an answer of %d and logits of %d steps", file, len(a.Prompt), len(a.F32), len(a.Steps))
		}
		out = append(out, a)
	}
	return out
}

// Logits are those of a model of random weights at each of its tokens.
type Logits struct {
	Tokens []int32
	Greedy []int32 // what follows
	Width  int     // of the vocabulary
	Data   []float32
}

// Random reads the logits of the F32 file of an architecture; testdata is the path
// of that folder.
func Random(t testing.TB, testdata, arch string) Logits {
	t.Helper()
	base := filepath.Join(testdata, "archs", "random-"+arch)
	var l Logits
	read(t, base+".json", &l)
	data, err := os.ReadFile(base + ".logits.f32")
	if err != nil {
		t.Fatal(err)
	}
	for ; len(data) >= 4; data = data[4:] {
		l.Data = append(l.Data, math.Float32frombits(binary.LittleEndian.Uint32(data)))
	}
	l.Width = len(l.Data) / max(len(l.Tokens), 1)
	if len(l.Tokens) != 48 || len(l.Greedy) != 8 || l.Width != 512 {
		t.Fatalf("%s: %d tokens, %d greedy, %d logits", base, len(l.Tokens), len(l.Greedy), l.Width)
	}
	return l
}

func read(t testing.TB, file string, to any) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, to)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}
