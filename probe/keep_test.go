package probe_test

import (
	"slices"
	"testing"

	"github.com/tandemrun/tandem/probe"
)

func TestKeep(t *testing.T) {
	const q = probe.Disturbed
	for _, x := range []struct {
		shares []float64
		fewest int
		kept   []int
		quiet  int
	}{
		{nil, 3, []int{}, 0},
		{[]float64{0, 0, 0}, 3, []int{0, 1, 2}, 3},
		{[]float64{q, 2 * q, 0, q / 2, 9}, 3, []int{0, 2, 3}, 3},
		// Too few are quiet: the quieter half, of five three.
		{[]float64{0.9, 0.1, 0, 0.5, 0.3}, 3, []int{1, 2, 4}, 1},
		{[]float64{0.4, 0.3, 0.2, 0.1}, 1, []int{2, 3}, 0},
		// More are quiet than half, though fewer than asked for.
		{[]float64{0, 9, 0}, 3, []int{0, 2}, 2},
		{[]float64{9}, 3, []int{0}, 0},
	} {
		kept, quiet := probe.Keep(x.shares, x.fewest)
		if !slices.Equal(kept, x.kept) || quiet != x.quiet {
			t.Errorf("%v, %d: kept %v, %d quiet; want %v, %d", x.shares, x.fewest, kept, quiet, x.kept, x.quiet)
		}
	}
}
