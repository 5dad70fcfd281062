package probe

import (
	"cmp"
	"slices"
)

// Keep tells which trials to keep, in their order, by the share of each that
// threads waited for a CPU: those of at most [Disturbed], or the quieter half of
// all where these are fewer than a number. On a busy machine nothing is quiet,
// and of small models nothing is even on a quiet one with few cores; what was
// disturbed least is nearest to the truth then. The rule does not look at
// what the trials took.
func Keep(shares []float64, fewest int) (kept []int, quiet int) {
	order := make([]int, len(shares))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(shares[a], shares[b]) })
	for quiet < len(order) && shares[order[quiet]] <= Disturbed {
		quiet++
	}
	n := quiet
	if quiet < min(fewest, len(order)) {
		n = (len(order) + 1) / 2
	}
	kept = order[:max(n, quiet)]
	slices.Sort(kept)
	return kept, quiet
}
