package ab

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// script gives trials side by side: one list a side, the first to warm up.
func script(a, b []Trial) (func(context.Context, Side) (Trial, error), *string) {
	order := new(string)
	next := [2][]Trial{a, b}
	return func(_ context.Context, s Side) (Trial, error) {
		*order += s.String()
		if len(next[s]) == 0 {
			return Trial{}, errors.New("no more trials")
		}
		t := next[s][0]
		next[s] = next[s][1:]
		return t, nil
	}, order
}

func trials(others float64, speeds ...float64) []Trial {
	var out []Trial
	for _, x := range speeds {
		out = append(out, Trial{Values: map[string]float64{"tok_s": x}, Others: new(others), Tokens: []int32{1, 2, 3}})
	}
	return out
}

func TestDifference(t *testing.T) {
	a := trials(0, 1, 10, 11, 12, 13, 14)
	b := trials(0, 1, 20, 21, 22, 23, 24)
	b[3].Tokens = []int32{1, 2, 4, 5}
	run, order := script(a, b)
	got, err := Compare(t.Context(), Options{Pairs: 5, Primary: "tok_s", Units: map[string]string{"tok_s": "tok/s"}, Run: run})
	if err != nil {
		t.Fatal(err)
	}
	if *order != "ABABABABABAB" {
		t.Errorf("order %s", *order)
	}
	want := Result{
		Primary: "tok_s", Run: 5, Kept: 5, P: new(2.0 / 252), Difference: true, // no overlap: two of the 252 orders
		Rows:  []Row{{"tok_s", "tok/s", Interval{12, 10, 14}, Interval{22, 20, 24}, Interval{22.0/12 - 1, 24.0/14 - 1, 1}}},
		Equal: new(false), Divergence: &Divergence{2, 2},
	}
	if d := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-12)); d != "" {
		t.Error(d)
	}
}

func TestNoDifference(t *testing.T) {
	run, _ := script(trials(0, 1, 10, 12, 14, 16, 18), trials(0, 1, 11, 13, 15, 17, 19))
	got, err := Compare(t.Context(), Options{Pairs: 5, Primary: "tok_s", Run: run})
	if err != nil || got.Difference || got.P == nil || *got.P < 0.5 || !*got.Equal || got.Divergence != nil {
		t.Errorf("%+v, %v", got, err)
	}
	same := trials(0, 5, 5, 5, 5, 5, 5)
	run, _ = script(same, same)
	got, err = Compare(t.Context(), Options{Pairs: 5, Primary: "tok_s", Run: run})
	if err != nil || got.Difference || *got.P != 1 {
		t.Errorf("equal to the last bit: %+v, %v", got, err)
	}
}

// A pair of which one trial was disturbed goes, and another is run for it; the
// rule does not look at the figures.
func TestKeep(t *testing.T) {
	a := append(trials(0, 1, 10), append(trials(0.2, 99), trials(Disturbed, 11, 12, 13, 14)...)...)
	b := trials(0, 1, 10, 11, 11, 12, 13, 14)
	run, order := script(a, b)
	got, err := Compare(t.Context(), Options{Pairs: 5, Primary: "tok_s", Run: run})
	if err != nil {
		t.Fatal(err)
	}
	if got.Run != 6 || got.Kept != 5 || *order != strings.Repeat("AB", 7) || got.Rows[0].A.High != 14 {
		t.Errorf("%+v in %s", got, *order)
	}
}

func TestNeverQuiet(t *testing.T) {
	loud := trials(0.5, make([]float64, 11)...)
	run, _ := script(loud, loud)
	got, err := Compare(t.Context(), Options{Pairs: 5, Primary: "tok_s", Run: run})
	if err != nil || got.Run != 10 || got.Kept != 0 || got.P != nil || got.Difference || len(got.Notes) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestUnknown(t *testing.T) {
	a, b := trials(0, 1, 1, 2, 3, 4, 5), trials(0, 1, 1, 2, 3, 4, 5)
	for i := range a {
		a[i].Others, a[i].Tokens, b[i].Tokens = nil, nil, nil
		a[i].Text, b[i].Text = "abc", "abd"
	}
	run, _ := script(a, b)
	got, err := Compare(t.Context(), Options{Pairs: 5, Primary: "joules_per_token", Run: run})
	if err != nil || !got.AllKept || got.P != nil || got.Notes[0] != "joules_per_token is unavailable" || *got.Divergence != (Divergence{0, 2}) {
		t.Errorf("%+v, %v", got, err)
	}
	if len(got.Rows) != 1 || got.Rows[0].Name != "tok_s" {
		t.Errorf("%+v", got.Rows)
	}
}

func TestErrors(t *testing.T) {
	run, _ := script(nil, nil)
	for want, o := range map[string]Options{
		"4 pairs: with fewer than 5": {Pairs: 4, Primary: "x", Run: run},
		"no primary figure":          {Pairs: 5, Run: run},
		"side A: no more trials":     {Pairs: 5, Primary: "x", Run: run},
	} {
		if _, err := Compare(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	if _, err := Compare(ctx, Options{Pairs: 5, Primary: "x", Run: run}); err == nil || err.Error() != "enough" {
		t.Error(err)
	}
}

// Of two settings that are the same the test finds a difference about as often
// as Alpha says, also where the machine drifts, and it finds one of 10 % in
// noise of 2 %.
func TestRates(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	count := func(gain float64) int {
		found := 0
		for range 1000 {
			drift, trial := 1.0, 0.0
			got, err := Compare(t.Context(), Options{Pairs: 10, Primary: "tok_s", Run: func(_ context.Context, s Side) (Trial, error) {
				trial++
				drift *= 1 + 0.005*rng.NormFloat64()
				x := 100 * drift * (1 + 0.02*rng.NormFloat64())
				if s == B {
					x *= gain
				}
				return Trial{Values: map[string]float64{"tok_s": x}, Others: new(0.0)}, nil
			}})
			if err != nil {
				t.Fatal(err)
			}
			if got.Difference {
				found++
			}
		}
		return found
	}
	if n := count(1); n > 20 {
		t.Errorf("%d of 1000 comparisons of the same found a difference", n)
	}
	if n := count(1.1); n < 950 {
		t.Errorf("%d of 1000 comparisons found 10 %%", n)
	}
}

func TestPercentile(t *testing.T) {
	x := []int{30, 10, 20, 50, 40, 60, 70, 80, 90, 100}
	for p, want := range map[float64]int{0: 10, 0.1: 10, 0.5: 50, 0.51: 60, 0.9: 90, 0.99: 100, 1: 100} {
		if got := Percentile(x, p); got != want {
			t.Errorf("%g: %d, want %d", p, got, want)
		}
	}
	if Percentile([]float64(nil), 0.5) != 0 {
		t.Error("of nothing")
	}
}
