package main

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestSplitFlags(t *testing.T) {
	for in, want := range map[string][]string{
		"":                          nil,
		"  ":                        nil,
		"--a  b\t-c":                {"--a", "b", "-c"},
		`--place c1=cpu:0,c3=cpu:1`: {"--place", "c1=cpu:0,c3=cpu:1"},
		`--system 'be brief' -x ""`: {"--system", "be brief", "-x", ""},
		`--x="a b"'c "d"' e`:        {`--x=a bc "d"`, "e"},
	} {
		got, err := splitFlags(in)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v", in, got, err)
		}
	}
	if _, err := splitFlags("--x 'a"); err == nil {
		t.Error("an open quote")
	}
}

func at(ms int) time.Time { return time.UnixMilli(int64(ms)) }

func ms(n ...int) []time.Duration {
	var out []time.Duration
	for _, x := range n {
		out = append(out, time.Duration(x)*time.Millisecond)
	}
	return out
}

func TestFigures(t *testing.T) {
	warm := sequence{Stream: 0, Submitted: at(0), Last: at(90), Prompt: 5, Tokens: 2, First: ms(50)[0], Between: ms(40), Inside: ms(1)[0]}
	one := sequence{Stream: 1, Submitted: at(100), Last: at(150), Prompt: 5, Tokens: 4, First: ms(20)[0], Between: ms(10, 8, 12), Inside: ms(24)[0]}
	two := sequence{Stream: 2, Submitted: at(151), Last: at(211), Prompt: 5, Tokens: 3, First: ms(40)[0], Between: ms(10, 10), Inside: ms(16)[0]}
	decoded, prompts := measuredSequences("run", []sequence{warm, one, two})
	got := map[string]float64{}
	newFigures(decoded, prompts).put(got)
	want := map[string]float64{"tok_s": 100, "ttft": 20, "itl_p50": 10, "itl_p90": 12, "itl_p99": 12, "cpu_active": 0.2}
	for name, x := range want {
		if d := got[name] - x; d > 1e-9 || d < -1e-9 {
			t.Errorf("run: %s is %g, want %g", name, got[name], x)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%v", got)
	}

	// Two streams at once: rates add up, and the host's share is not known.
	beside := two
	beside.Submitted, beside.Last = at(120), at(180)
	f := newFigures([]sequence{one, beside}, nil)
	got = map[string]float64{}
	f.put(got)
	if _, ok := got["cpu_active"]; ok || got["tok_s"] != 200 {
		t.Errorf("%v", got)
	}
	f.aggregate()
	if got := f.rate; got != 7/0.08 {
		t.Errorf("aggregate %g", got)
	}

	// A benchmark: prompts and decoding by turns, each warmed up.
	p := func(stream, prompt, tokens int) sequence {
		return sequence{Stream: stream, Prompt: prompt, Tokens: tokens}
	}
	decoded, prompts = measuredSequences("bench", []sequence{p(0, 128, 1), p(0, 128, 1), p(1, 1, 8), p(2, 1, 8), p(1, 1, 64), p(2, 1, 64)})
	if len(prompts) != 1 || len(decoded) != 2 || decoded[0].Tokens != 64 || decoded[1].Tokens != 64 {
		t.Errorf("%+v, %+v", decoded, prompts)
	}
}

// Five pairs of each command; what comes of the figures depends on the machine.
func TestAB(t *testing.T) {
	if testing.Short() {
		t.Skip("runs some 60 processes")
	}
	self(t)
	for _, args := range [][]string{
		{"--a", "--chunks 4", "--b", "--chunks 3 --threads 1"},
		{"--of", "bench", "--a", "-p 16", "--b", "-p 16 --streams 2", "--env-b", "LLM_FAST_PREDICTION=0"},
		{"--of", "batch", "--a", "", "--b", "--streams 2"},
	} {
		out := succeed(t, "", slices.Concat([]string{"ab", "--json", "-r", "5", "-n", "4"}, args)...)
		var got abOutput
		decode(t, out, &got)
		if got.ComparisonResult.Run < 5 || got.Verdict == "" || got.Kept > got.ComparisonResult.Run {
			t.Errorf("%q: %s", args, out)
		}
		if got.Kept > 0 && (len(got.Rows) < 4 || got.Rows[0].Name != "tok_s" || got.Rows[0].A.Median <= 0) {
			t.Errorf("%q: %+v", args, got.Rows)
		}
		if equal := got.Equal; got.Kept > 0 && (equal == nil) != (got.Of == "bench") || equal != nil && !*equal {
			t.Errorf("%q: tokens %v, %+v", args, equal, got.Divergence)
		}
	}
}

func TestABErrors(t *testing.T) {
	self(t)
	for want, args := range map[string][]string{
		"with fewer than 5":              {"-r", "4"},
		"must be at least 2":             {"-n", "1"},
		"--a: --x 'y: a ' is not closed": {"--a", "--x 'y"},
		"--env-b =x: it must be":         {"--env-b", "=x"},
		"--set excludes":                 {"--set", "seeds", "--a", "--chunks 2"},
		"side B: tandem run":             {"--b", "--chunks 0"},
		"--chunks 0: it must be":         {"--b", "--chunks 0"},
	} {
		status, out, stderr := command(t, "", slices.Concat([]string{"ab"}, args)...)
		if status != 1 || out != "" || !strings.Contains(stderr, want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%q: status %d, %s%s", args, status, stderr, out)
		}
	}
}
