package power

import (
	"testing"
	"testing/fstest"
	"time"
)

func TestLog(t *testing.T) {
	l := Open(t.Context(), Options{Root: fstest.MapFS{}}).Log(time.Hour)
	defer l.Close()
	at := func(s float64) time.Time { return start.Add(time.Duration(s * 1e9)) }
	for i, w := range []float64{10, 20, 40} {
		s := sample(time.Second, map[Part]float64{CPU: w})
		s.At = at(float64(i + 1)) // of the second before
		l.add(s)
	}
	for _, c := range []struct {
		from, to, want float64
		ok             bool
	}{
		{0, 3, 70, true},
		{0.5, 1.5, 15, true},
		{1.25, 1.75, 10, true},
		{-0.1, 0.9, 10, true}, // nine tenths of it are known
		{-0.5, 1, 0, false},
		{4, 5, 0, false},
		{2, 2, 0, false},
	} {
		got, ok := l.Joules(CPU, at(c.from), at(c.to))
		if ok != c.ok || got < c.want-1e-6 || got > c.want+1e-6 {
			t.Errorf("from %g to %g: %g J, %v", c.from, c.to, got, ok)
		}
		if _, ok := l.Joules(GPU, at(c.from), at(c.to)); ok {
			t.Error("joules of a part that nobody measured")
		}
	}
}
