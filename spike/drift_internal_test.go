package spike

import "testing"

// A look counts if its units were as fast, to 5 %, at their next ones; looks at
// other units tell nothing of them.
func TestSteady(t *testing.T) {
	s := &session{looks: []speeds{
		{"a": 1, "b": 1}, // b is slower next time
		{"a": 1.04},      // a as well, two looks on
		{"b": 1.1},
		{"a": 1.2, "b": 1.12},
		{}, // a simulated one
	}}
	for i, want := range []bool{false, false, true, true, true} {
		if got := s.steady(i); got != want {
			t.Errorf("look %d: steady is %v, want %v", i, got, want)
		}
	}
	s.looks[2]["b"] = 0.97
	if !s.steady(0) {
		t.Error("look 0: 4 and 3 % count as a change")
	}
}
