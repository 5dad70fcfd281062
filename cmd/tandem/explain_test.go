package main

import (
	"strings"
	"testing"

	public "github.com/tandemrun/tandem"
)

func TestExplain(t *testing.T) {
	out := succeed(t, "", "explain", "--device", "iphone-17-pro")
	for _, part := range []string{"71.670 ms (14.0 tok/s)", "68.700 ms  95.9 %", "1.900 ms   2.7 %", "+2.7 %", "dispatch  unknown", "bounded by unit"} {
		if !strings.Contains(out, part) {
			t.Errorf("no %q in\n%s", part, out)
		}
	}
	out = succeed(t, "", "explain", "--device", "mac-studio")
	for _, part := range []string{"30.300 ms (33.0 tok/s)", "c3 on gpu", "-23.1 %", "25.4 tok/s", "43.9 tok/s"} {
		if !strings.Contains(out, part) {
			t.Errorf("no %q in\n%s", part, out)
		}
	}
	var x public.Explanation
	decode(t, succeed(t, "", "explain", "--json", "-n", "4", "-d", "16", "--chunks", "2"), &x)
	if x.Steps != 4 || x.Depth != 16 || len(x.Chunks) != 2 || x.StepMS <= 0 || len(x.Levers) < 8 || x.KV != "f32" {
		t.Errorf("got %+v", x)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--device", "no-such"}, "mac-studio"},
		{[]string{"--device", "mac-studio", "--place", "c9=gpu"}, "c9"},
		{[]string{"--device", "mac-studio", "-m", "x"}, "exclude"},
		{[]string{"-n", "1"}, "-n 1"},
		{[]string{"-d", "0"}, "-d 0"},
		{[]string{"--place", "npu"}, `"npu"`},
	} {
		status, out, err := command(t, "", append([]string{"explain"}, c.args...)...)
		if status != 1 || out != "" || strings.Count(err, "\n") != 1 || !strings.Contains(err, c.want) {
			t.Errorf("%q: status %d, stdout %q, stderr %q", c.args, status, out, err)
		}
	}
}
