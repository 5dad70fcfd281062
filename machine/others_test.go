package machine

import "testing"

func TestBusyTicks(t *testing.T) {
	const stat = "cpu  300 3 40 500 6 7 8 9 10 11\n" +
		"cpu0 100 1 10 200 5 3 4 2 50 60\n" +
		"cpu1 200 2 30 300 1 4 4 7 0 0\n" +
		"cpu10 1000 0 0 0 0 0 0 0 0 0\n" +
		"intr 5\nctxt 6\n"
	for _, c := range []struct {
		stat string
		cpus []int
		want int64
		ok   bool
	}{
		{stat, []int{0}, 100 + 1 + 10 + 3 + 4 + 2, true},
		{stat, []int{0, 1}, 120 + 200 + 2 + 30 + 4 + 4 + 7, true},
		{stat, []int{0, 2}, 120, false}, // a CPU that is not there
		{stat, nil, 0, false},
		{"cpu0 1 2\n", []int{0}, 3, true}, // an old kernel
		{"cpu0 1 x\n", []int{0}, 0, false},
		{"cpu0 1 -2\n", []int{0}, 0, false},
		{"", []int{0}, 0, false},
	} {
		got, ok := busyTicks(c.stat, c.cpus)
		if ok != c.ok || ok && got != c.want {
			t.Errorf("CPUs %v of %q: %d, %v", c.cpus, c.stat, got, ok)
		}
	}
}
