package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// rawLogits is logits with the positions as they are written.
type rawLogits struct {
	Chunks    []chunk         `json:"chunks"`
	Positions json.RawMessage `json:"positions"`
}

// The positions are equal, digit for digit, in every layout.
func TestLogitsLayouts(t *testing.T) {
	var golden struct {
		Prompt []int32 `json:"prompt_ids"`
		Greedy []int32 `json:"greedy_f32"`
	}
	b, err := os.ReadFile("../../testdata/tiny/golden/06-code-sum.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &golden); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, id := range append(golden.Prompt, golden.Greedy...) {
		ids = append(ids, strconv.Itoa(int(id)))
	}
	list := filepath.Join(t.TempDir(), "ids")
	if err := os.WriteFile(list, []byte(strings.Join(ids, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	want := ""
	for _, layout := range []struct {
		flags  string
		chunks int
	}{
		{"", 4},
		{"--chunks 1", 1},
		{"--chunks 2 --block 7", 2},
		{"--chunks 10 --threads 1", 10},
		{"--split 3,7 --block 1", 3},
		{"--place c1=cpu:0,c3=cpu:0 --block 64", 4},
		{"--place cpu:0 --ctx 600", 4},
	} {
		args := append([]string{"logits", "--all", "--top", "3", "--tokens", "@" + list}, strings.Fields(layout.flags)...)
		var got rawLogits
		decode(t, succeed(t, "", args...), &got)
		if len(got.Chunks) != layout.chunks {
			t.Errorf("%s: %d chunks, want %d", layout.flags, len(got.Chunks), layout.chunks)
		}
		if want == "" {
			want = string(got.Positions)
			var all []position
			decode(t, want, &all)
			if len(all) != len(ids) || all[len(all)-1].Pos != len(ids)-1 || len(all[0].Top) != 3 {
				t.Fatalf("%d positions for %d tokens: %.200s", len(all), len(ids), want)
			}
		}
		if string(got.Positions) != want {
			t.Errorf("%s: other logits than with the default layout", layout.flags)
		}
	}

	var half rawLogits
	decode(t, succeed(t, "", "logits", "--all", "--top", "3", "--kv", "f16", "--tokens", "@"+list), &half)
	if string(half.Positions) == want {
		t.Error("--kv f16 changes nothing")
	}
}

// The last position alone is that of all, and its digits give the same bits.
func TestLogitsLast(t *testing.T) {
	var all, last struct {
		Chunks    []chunk `json:"chunks"`
		Positions []struct {
			Pos int              `json:"pos"`
			Top [][2]json.Number `json:"top"`
		} `json:"positions"`
	}
	decode(t, succeed(t, "", "logits", "--all", "--tokens", "2,105, 394 4"), &all)
	decode(t, succeed(t, "", "logits", "--json", "--tokens", "2,105,394,4"), &last)
	if len(all.Positions) != 4 || len(last.Positions) != 1 || last.Positions[0].Pos != 3 || len(last.Positions[0].Top) != 10 {
		t.Fatalf("all %v, last %v", all.Positions, last.Positions)
	}
	if !slices.Equal(all.Positions[3].Top, last.Positions[0].Top) {
		t.Errorf("last position %v, of all %v", last.Positions[0].Top, all.Positions[3].Top)
	}
	for _, pair := range last.Positions[0].Top {
		v, err := strconv.ParseFloat(string(pair[1]), 32)
		if err != nil || strconv.FormatFloat(v, 'g', -1, 32) != string(pair[1]) {
			t.Errorf("%s is not the shortest form of a float32", pair[1])
		}
	}
}

func TestHighest(t *testing.T) {
	inf := float32(math.Inf(-1))
	for _, test := range []struct {
		row  []float32
		n    int
		want []int
	}{
		{[]float32{1, 3, 2, 3, 3}, 2, []int{1, 3}},
		{[]float32{1, 3, 2, 3, 3}, 9, []int{1, 3, 4, 2, 0}},
		{[]float32{inf, inf, 0}, 2, []int{2, 0}},
		{[]float32{5}, 1, []int{0}},
	} {
		if got := highest(test.row, test.n); !slices.Equal(got, test.want) {
			t.Errorf("highest(%v, %d) = %v, want %v", test.row, test.n, got, test.want)
		}
	}
}
