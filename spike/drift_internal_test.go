package spike

import "testing"

// A run counts if its units were as fast, to 5 %, in the look behind it.
func TestSteady(t *testing.T) {
	for _, x := range []struct {
		before, after speeds
		want          bool
	}{
		{speeds{"a": 1, "b": 1}, speeds{"a": 1.04, "b": 0.96}, true},
		{speeds{"a": 1, "b": 1}, speeds{"a": 1, "b": 1.1}, false},
		{speeds{"a": 1.2}, speeds{"a": 1.1}, false},
		{speeds{"a": 1.2}, speeds{"a": 1.19}, true},
		{nil, nil, true}, // simulated ones
	} {
		if got := steady(x.before, x.after); got != x.want {
			t.Errorf("%v and then %v: steady is %v, want %v", x.before, x.after, got, x.want)
		}
	}
}
