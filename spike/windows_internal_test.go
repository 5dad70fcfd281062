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
