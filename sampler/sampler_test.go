package sampler_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tandemrun/tandem/sampler"
)

var logits = []float32{1, 3, 3, -2, 2.5, float32(math.NaN())}

func pick(o sampler.Options, n int) []int32 {
	s := sampler.New(o)
	var out []int32
	for range n {
		out = append(out, s.Pick(slices.Clone(logits)))
	}
	return out
}

func TestGreedyTakesTheLowestOfEqualIDs(t *testing.T) {
	if got := pick(sampler.Options{TopK: 1, Seed: 5}, 1)[0]; got != 1 {
		t.Errorf("token %d, not 1", got)
	}
	if got := sampler.Best([]float32{float32(math.NaN()), -1, -1}); got != 1 {
		t.Errorf("best of NaN, -1, -1 is %d, not 1", got)
	}
}

func TestSeedsRepeat(t *testing.T) {
	o := sampler.Options{Temperature: 1, Seed: 42}
	if a, b := pick(o, 50), pick(o, 50); !slices.Equal(a, b) {
		t.Error("the same seed gives other tokens")
	}
	o.Seed = 43
	if a, b := pick(o, 50), pick(sampler.Options{Temperature: 1, Seed: 42}, 50); slices.Equal(a, b) {
		t.Error("another seed gives the same 50 tokens")
	}
}

// Each filter leaves exactly the tokens it should.
func TestFilters(t *testing.T) {
	// Probabilities at temperature 1: tokens 1 and 2 0.35 each, 4 0.21, 0 0.05, 3 0.002.
	for name, c := range map[string]struct {
		o    sampler.Options
		want []int32
	}{
		"all":         {sampler.Options{Temperature: 3}, []int32{0, 1, 2, 3, 4}},
		"top-k":       {sampler.Options{Temperature: 3, TopK: 3}, []int32{1, 2, 4}},
		"top-p":       {sampler.Options{Temperature: 1, TopP: 0.8}, []int32{1, 2, 4}},
		"top-p small": {sampler.Options{Temperature: 1, TopP: 0.1}, []int32{1}},
		"min-p":       {sampler.Options{Temperature: 1, MinP: 0.5}, []int32{1, 2, 4}},
		"min-p all":   {sampler.Options{Temperature: 1, MinP: 1}, []int32{1, 2}},
	} {
		got := pick(c.o, 3000)
		slices.Sort(got)
		if got = slices.Compact(got); !slices.Equal(got, c.want) {
			t.Errorf("%s: tokens %v, not %v", name, got, c.want)
		}
	}
}

// Draws follow the softmax of the logits over the temperature.
func TestDistribution(t *testing.T) {
	const n = 40000
	count := map[int32]float64{}
	for _, id := range pick(sampler.Options{Temperature: 1, Seed: 1}, n) {
		count[id]++
	}
	var sum float64
	for _, x := range logits[:5] {
		sum += math.Exp(float64(x))
	}
	for id, x := range logits[:5] {
		p := math.Exp(float64(x)) / sum
		if d := math.Abs(count[int32(id)]/n - p); d > 5*math.Sqrt(p/n) {
			t.Errorf("token %d was drawn in a share of %.4f, not %.4f", id, count[int32(id)]/n, p)
		}
	}
}

func TestRepetitionPenalty(t *testing.T) {
	// Greedy takes 1, then 2, then 4 when what was taken is pushed down.
	if got := pick(sampler.Options{Repeat: 2}, 3); !slices.Equal(got, []int32{1, 2, 4}) {
		t.Errorf("%v, not [1 2 4]", got)
	}
	// One token back, the first is free again.
	if got := pick(sampler.Options{Repeat: 2, RepeatLast: 1}, 3); !slices.Equal(got, []int32{1, 2, 1}) {
		t.Errorf("%v, not [1 2 1]", got)
	}
}

func TestCheckNamesTheFlag(t *testing.T) {
	for flag, o := range map[string]sampler.Options{
		"--temp":           {Temperature: -1},
		"--top-k":          {TopK: -1},
		"--top-p":          {TopP: 1.5},
		"--min-p":          {MinP: math.NaN()},
		"--repeat-penalty": {Repeat: -1},
		"--repeat-last":    {RepeatLast: -1},
	} {
		if err := o.Check(); err == nil || !strings.HasPrefix(err.Error(), flag+" ") {
			t.Errorf("%s: %v", flag, err)
		}
	}
}
