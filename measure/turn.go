package measure

import (
	"slices"
	"time"

	"github.com/tandemrun/tandem/probe"
)

// A turn is what a step or block took: by chunk, in all, and around the tasks.
type turn struct {
	rows             int
	times            []time.Duration
	total            time.Duration
	gap, wake, host  time.Duration // between tasks, before the first one, and before the block was asked for
	waited           float64       // share of the time in which threads waited for a CPU
	submitted, ended time.Time
}

// level makes all turns of a group like its mean: now and then a step takes
// longer, and what follows has to wait for it, so that a run of steps takes
// what they take on average and not what the median one does.
func level(group []turn) []turn {
	n := time.Duration(len(group))
	if n == 0 {
		return group
	}
	mean := group[0]
	mean.times = make([]time.Duration, len(mean.times))
	for _, x := range []func(*turn) *time.Duration{
		func(t *turn) *time.Duration { return &t.total },
		func(t *turn) *time.Duration { return &t.gap },
		func(t *turn) *time.Duration { return &t.wake },
		func(t *turn) *time.Duration { return &t.host },
	} {
		var sum time.Duration
		for i := range group {
			sum += *x(&group[i])
		}
		*x(&mean) = sum / n
	}
	for i := range mean.times {
		for _, t := range group {
			mean.times[i] += t.times[i]
		}
		mean.times[i] /= n
	}
	return slices.Repeat([]turn{mean}, len(group))
}

// typical is the median of the turns that are kept by the rule of package probe.
func typical(all []turn) turn {
	if len(all) == 0 {
		return turn{}
	}
	shares := make([]float64, len(all))
	for i, t := range all {
		shares[i] = t.waited
	}
	indices, _ := probe.Keep(shares, min(fewest, len(all)))
	var kept []turn
	for _, i := range indices {
		kept = append(kept, all[i])
	}
	of := func(f func(turn) time.Duration) time.Duration {
		var x []time.Duration
		for _, t := range kept {
			x = append(x, f(t))
		}
		return median(x)
	}
	out := turn{rows: kept[0].rows, times: make([]time.Duration, len(kept[0].times))}
	for i := range out.times {
		out.times[i] = of(func(t turn) time.Duration { return t.times[i] })
	}
	out.total = of(func(t turn) time.Duration { return t.total })
	out.gap = of(func(t turn) time.Duration { return t.gap })
	out.wake = of(func(t turn) time.Duration { return t.wake })
	out.host = of(func(t turn) time.Duration { return t.host })
	return out
}

// median is the middle one of times, and of two the lesser: what disturbs makes
// them longer.
func median(x []time.Duration) time.Duration {
	if len(x) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(x))[(len(x)-1)/2]
}
