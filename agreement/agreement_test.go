package agreement_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tandemrun/tandem/agreement"
)

var nan, inf = float32(math.NaN()), float32(math.Inf(1))

func TestCompare(t *testing.T) {
	for _, c := range []struct {
		name string
		a, b []float32
		want agreement.Position
	}{
		{"equal", []float32{1, 3, 2}, []float32{1, 3, 2}, agreement.Position{Reference: 1, Tested: 1}},
		{"a constant apart", []float32{1, 3, 2}, []float32{5, 7, 6}, agreement.Position{Difference: 4, Reference: 1, Tested: 1}},
		// p = (1/2, 1/2), q = (1/4, 3/4): ½ ln 2 + ½ ln ⅔ = ½ ln 4/3.
		{"by hand", []float32{0, 0}, []float32{0, float32(math.Log(3))},
			agreement.Position{KL: math.Log(4./3) / 2, Difference: math.Log(3), Reference: 0, Tested: 1, Lead: math.Log(3)}},
		{"certain", []float32{0, 1000}, []float32{1000, 0}, agreement.Position{KL: 1000, Difference: 1000, Reference: 1, Tested: 0, Lead: 1000}},
		{"ties take the lower id", []float32{2, 2}, []float32{2, 2}, agreement.Position{}},
		{"not a number", []float32{0, 1}, []float32{0, nan}, agreement.Position{KL: math.Inf(1), Difference: math.Inf(1), Reference: 1, Tested: -1}},
		{"infinite", []float32{-inf, 1}, []float32{0, 1}, agreement.Position{KL: math.Inf(1), Difference: math.Inf(1), Reference: -1, Tested: 1}},
	} {
		got := agreement.Compare(c.a, c.b)
		if !near(got.KL, c.want.KL) || !near(got.Difference, c.want.Difference) || got.Reference != c.want.Reference || got.Tested != c.want.Tested || !near(got.Lead, c.want.Lead) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
	if (agreement.Position{Reference: agreement.NoToken, Tested: agreement.NoToken}).Equal() {
		t.Error("two rows that are not finite agree")
	}
}

func near(a, b float64) bool {
	return a == b || math.Abs(a-b) <= 1e-7*max(1, math.Abs(b)) // logits are float32
}

// KL agrees with its definition over probabilities, and is not negative.
func TestKL(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, scale := range []float64{1e-6, 0.1, 3} {
		a, b := make([]float32, 500), make([]float32, 500)
		for i := range a {
			a[i] = float32(r.NormFloat64() * 4)
			b[i] = a[i] + float32(r.NormFloat64()*scale)
		}
		var want float64
		for i := range a {
			p, q := agreement.LogProb(a, int32(i)), agreement.LogProb(b, int32(i))
			want += math.Exp(p) * (p - q)
		}
		got := agreement.Compare(a, b).KL
		if got < 0 || math.Abs(got-want) > 1e-13 {
			t.Errorf("scale %g: %g, want %g", scale, got, want)
		}
	}
	if x := agreement.LogProb([]float32{0, nan}, 0); !math.IsNaN(x) {
		t.Errorf("the probability beside a NaN is %g", x)
	}
}

func TestTally(t *testing.T) {
	var a, b, all agreement.Tally
	positions := []agreement.Position{
		{KL: 0.25, Difference: 2, Reference: 1, Tested: 1},
		{KL: 0.75, Difference: 1, Reference: 1, Tested: 2},
		{KL: 0.5, Difference: 3, Reference: 4, Tested: 4},
		{KL: 0, Difference: 0, Reference: 4, Tested: 4},
	}
	for i, p := range positions {
		all.Add(p)
		if i < 1 {
			a.Add(p)
		} else {
			b.Add(p)
		}
	}
	a.Merge(b)
	if a != all {
		t.Errorf("merged %+v, added %+v", a, all)
	}
	if all.TopShare() != 0.75 || all.MeanKL() != 0.375 || all.MaxKL != 0.75 || all.Difference != 3 {
		t.Errorf("%+v: top %g, mean %g", all, all.TopShare(), all.MeanKL())
	}
	all.Add(agreement.Compare([]float32{1}, []float32{nan}))
	if all.NotFinite != 1 || !math.IsInf(all.MeanKL(), 1) || all.TopShare() != 0.6 || all.MaxKL != 0.75 {
		t.Errorf("with a NaN: %+v", all)
	}
	if none := (agreement.Tally{}); none.TopShare() != 0 || none.MeanKL() != 0 {
		t.Error("an empty tally agrees")
	}
}

// fake gives made-up logits that depend on the text so far; off moves those of
// one position.
type fake struct {
	text []int32
	row  [8]float32
	off  int // length of the text at which it differs; 0 for never
	fail int
}

func (f *fake) Next(ctx context.Context, tokens []int32) ([]float32, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f.text = append(f.text, tokens...)
	if len(f.text) == f.fail {
		return nil, errors.New("broken")
	}
	best := (int(f.text[len(f.text)-1]) + 3) % len(f.row)
	for i := range f.row {
		f.row[i] = -float32(i)
	}
	f.row[best] = 5
	if len(f.text) == f.off {
		f.row[(best+1)%len(f.row)] = 9
	}
	return f.row[:], nil
}

func TestFollow(t *testing.T) {
	never := func(int32) bool { return false }
	follow := func(ref, tested *fake, limit int, end func(int32) bool) (answer []int32, tally agreement.Tally, first int, err error) {
		first = -1
		answer, err = agreement.Follow(t.Context(), ref, tested, []int32{1, 2}, limit, end, func(p agreement.Position) error {
			if first < 0 && !p.Equal() {
				first = tally.Positions
			}
			tally.Add(p)
			return nil
		})
		return
	}

	answer, tally, first, err := follow(&fake{}, &fake{}, 4, never)
	if err != nil || !slices.Equal(answer, []int32{5, 0, 3, 6}) || tally.Same != 4 || tally.SumKL != 0 || first != -1 {
		t.Errorf("equal: %v, %+v, first %d, %v", answer, tally, first, err)
	}
	// The tested stream is given the reference's tokens, so it differs once only.
	tested := &fake{off: 4}
	answer, tally, first, err = follow(&fake{}, tested, 4, never)
	if err != nil || !slices.Equal(answer, []int32{5, 0, 3, 6}) || tally.Same != 3 || first != 2 || !slices.Equal(tested.text, []int32{1, 2, 5, 0, 3}) {
		t.Errorf("one position off: %v, %+v, first %d, saw %v, %v", answer, tally, first, tested.text, err)
	}
	answer, tally, _, err = follow(&fake{}, &fake{}, 9, func(id int32) bool { return id == 3 })
	if err != nil || !slices.Equal(answer, []int32{5, 0, 3}) || tally.Positions != 3 {
		t.Errorf("ended: %v, %+v, %v", answer, tally, err)
	}
	answer, _, _, err = follow(&fake{}, &fake{fail: 3}, 9, never)
	if err == nil || len(answer) != 1 {
		t.Errorf("a broken stream: %v, %v", answer, err)
	}
	if _, err := agreement.Follow(t.Context(), &fake{}, &fake{}, nil, 1, never, nil); err == nil {
		t.Error("an empty prompt was no error")
	}
	stop := errors.New("enough")
	if _, err := agreement.Follow(t.Context(), &fake{}, &fake{}, []int32{1}, 5, never, func(agreement.Position) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("stopped: %v", err)
	}
}

func TestDiverge(t *testing.T) {
	for _, c := range []struct {
		a, b []int32
		want int
	}{
		{nil, nil, -1},
		{[]int32{1, 2}, []int32{1, 2}, -1},
		{[]int32{1, 2}, []int32{1, 3}, 1},
		{[]int32{1, 2}, []int32{1}, 1},
		{nil, []int32{1}, 0},
	} {
		if got := agreement.Diverge(c.a, c.b); got != c.want {
			t.Errorf("%v and %v: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
