package perplexity_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tandemrun/tandem/perplexity"
)

func TestWindows(t *testing.T) {
	text := []int32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	got, err := perplexity.Windows(text, 5, 77)
	if err != nil {
		t.Fatal(err)
	}
	want := []perplexity.Window{{[]int32{77, 1, 2, 3, 4}, 2}, {[]int32{77, 6, 7, 8, 9}, 2}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if n := got[0].Scored(); n != 2 { // tokens 3 and 4
		t.Errorf("%d scored", n)
	}
	if text[0] != 0 {
		t.Error("the text was changed")
	}
	got, err = perplexity.Windows(text[:4], 4, -1)
	if err != nil || len(got) != 1 || got[0].Tokens[0] != 0 || got[0].Scored() != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	for _, length := range []int{-1, 0, 2, 12} {
		if _, err := perplexity.Windows(text, length, -1); err == nil {
			t.Errorf("windows of %d were no error", length)
		}
	}
}

func TestEstimate(t *testing.T) {
	var e perplexity.Estimate
	if !math.IsNaN(e.Perplexity()) || e.Error() != 0 {
		t.Errorf("of nothing: %g ± %g", e.Perplexity(), e.Error())
	}
	for range 3 {
		e.Add(math.Log(8))
	}
	if math.Abs(e.Perplexity()-8) > 1e-12 || e.Error() > 1e-6 || e.Scored() != 3 {
		t.Errorf("always 1/8: %g ± %g", e.Perplexity(), e.Error())
	}
	// 1 and 3: mean 2, variance 1, standard error e² · sqrt(1 / 1).
	e = perplexity.Estimate{}
	e.Add(1)
	e.Add(3)
	if math.Abs(e.Perplexity()-math.Exp(2)) > 1e-12 || math.Abs(e.Error()-math.Exp(2)) > 1e-12 {
		t.Errorf("%g ± %g", e.Perplexity(), e.Error())
	}
}
