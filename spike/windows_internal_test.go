package spike

import (
	"testing"
	"time"
)

// A wait is counted when it ends; it disturbed the windows before as well, as far
// as it reaches back.
func TestDisturbed(t *testing.T) {
	begin := time.Unix(0, 0)
	at := func(ms int) time.Time { return begin.Add(time.Duration(ms) * time.Millisecond) }
	seen := []look{{at(0), 0}, {at(50), 0}, {at(100), 0}, {at(150), 0}, {at(200), 60 * time.Millisecond}, {at(250), 61 * time.Millisecond}}
	want := []bool{false, true, true, true, false} // the wait may have begun at 90 ms
	for i, w := range want {
		if got := disturbed(seen, seen[i].at, seen[i+1].at); got != w {
			t.Errorf("window %d: disturbed %v", i, got)
		}
	}
}

// What is beyond twice the median time between tokens is a stall, in the mean of the
// streams.
func TestStalls(t *testing.T) {
	at := func(ms ...int) (out []time.Time) {
		for _, x := range ms {
			out = append(out, time.UnixMilli(int64(x)))
		}
		return out
	}
	for _, x := range []struct {
		times [][]time.Time
		want  time.Duration
	}{
		{[][]time.Time{at(0, 10, 20, 40, 50)}, 0},
		{[][]time.Time{at(0, 10, 20, 45, 55)}, 5 * time.Millisecond},
		{[][]time.Time{at(0, 10, 20, 45, 55), at(0, 10, 20, 30)}, 2500 * time.Microsecond},
		{[][]time.Time{at(0)}, 0},
	} {
		if got := stalls(x.times); (got - x.want).Abs() > time.Microsecond {
			t.Errorf("%v: stalls of %v, want %v", x.times, got, x.want)
		}
	}
}
