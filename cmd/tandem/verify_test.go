package main

import (
	"bytes"
	"strings"
	"testing"

	public "github.com/tandemrun/tandem"
)

func TestVerifyUnit(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	var r public.UnitReport
	decode(t, succeed(t, "", "verify-unit", "--unit", "cpu:0", "--against", "cpu", "-n", "4", "--ctx", "256", "--json"), &r)
	if !r.Passed || r.Agreement.All.Prompts != 20 || r.Conformance.Checks < 25 || len(r.Conformance.Failures) != 0 || r.Top != 0.99 || r.MeanKL != 0.01 || r.Remembered == "" {
		t.Errorf("got %+v", r)
	}
	// For people the same, and the last line sums up.
	var out bytes.Buffer
	if err := printReport(&console{out: &out}, r); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	last := lines[len(lines)-1]
	for _, part := range []string{"verify-unit cpu:0 against cpu: passed: conformance ", "top-1 100.00 %", "mean KL 0", "max KL 0", "largest logit difference 0"} {
		if !strings.Contains(last, part) {
			t.Errorf("the last line %q does not say %q", last, part)
		}
	}
	for _, kind := range []string{"\nchat ", "\ncode ", "\nqa ", "\nsummary ", "\nall "} {
		if !strings.Contains(out.String(), kind) {
			t.Errorf("no %q in\n%s", kind, out.String())
		}
	}
}

func TestVerifyUnitCannot(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--unit", "npu"}, `"npu"`},
		{[]string{"--unit", "cpu:0", "--against", "npu"}, `"npu"`},
		{[]string{"--unit", "cpu"}, "against itself"},
		{[]string{"--unit", "cpu:0", "-n", "0"}, "-n 0"},
		{[]string{"--unit", "cpu:0", "--top1", "2"}, "top-1"},
		{[]string{"--unit", "cpu:0", "--kv", "q9"}, "--kv"},
		{[]string{"--unit", "cpu:0", "-m", "no-such.gguf"}, "no-such.gguf"},
		{nil, "--unit"},
	} {
		status, out, err := command(t, "", append([]string{"verify-unit"}, c.args...)...)
		if status != 2 || out != "" || strings.Count(err, "\n") != 1 || !strings.HasPrefix(err, "tandem: ") || !strings.Contains(err, c.want) {
			t.Errorf("%q: status %d, stdout %q, stderr %q", c.args, status, out, err)
		}
	}
}
