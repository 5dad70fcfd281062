package main

import (
	"strings"
	"testing"

	"github.com/tandemrun/tandem/sustain"
)

func TestSustain(t *testing.T) {
	out := succeed(t, "", "sustain", "--json", "--minutes", "0.01", "--window", "100ms", "--duty", "50%")
	var got sustainOutput
	decode(t, out, &got)
	if len(got.Windows) < 1 || got.Verdict == "" || got.Why == "" || len(got.Chunks) == 0 || got.Duty != "50%" {
		t.Errorf("%s", out)
	}
	for _, w := range got.Windows {
		if w.Tokens < 1 || w.Rate <= 0 || w.Seconds < 0.05 || w.Duty == nil || *w.Duty > 0.5 {
			t.Errorf("%+v", w)
		}
	}
	// A short run has enough windows for a verdict.
	decode(t, succeed(t, "", "sustain", "--json", "--minutes", "0.02"), &got)
	if len(got.Windows) < 4 || got.Verdict == sustain.TooShort || got.Window >= 0.2 {
		t.Errorf("%+v", got)
	}
	out = succeed(t, "", "sustain", "--minutes", "0.005", "--window", "100ms")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) < 3 || !strings.HasPrefix(strings.TrimSpace(lines[0]), "at ") || !strings.HasSuffix(lines[len(lines)-1], ")") {
		t.Errorf("%s", out)
	}
}

func TestSustainErrors(t *testing.T) {
	for want, args := range map[string][]string{
		"--minutes 0: it must be above 0":              {"--minutes", "0"},
		"--window 1m0s: it must be from 100ms":         {"--minutes", "0.5", "--window", "1m"},
		`--duty: duty cycle "0%": it must be from 1%`:  {"--duty", "0%"},
		`--duty: duty cycle "80": it must be from 1%`:  {"--duty", "80"},
		`--duty: duty cycle "nan%": it must be from 1`: {"--duty", "nan%"},
	} {
		status, _, stderr := command(t, "", append([]string{"sustain"}, args...)...)
		if status != 1 || !strings.Contains(stderr, want) {
			t.Errorf("%q: status %d, %s", args, status, stderr)
		}
	}
	// Of other commands too, and equal answers.
	free := succeed(t, "", "run", "-n", "20", "Hello")
	if slow := succeed(t, "", "run", "-n", "20", "--duty", "20%", "Hello"); slow != free {
		t.Errorf("%q with a duty cycle, %q without", slow, free)
	}
}
