package main

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tandemrun/tandem"
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

// One trial of each command; what comes of its figures depends on the machine.
func TestTrials(t *testing.T) {
	self(t)
	for of, flags := range map[string][]string{"run": {"--chunks", "3"}, "bench": {"-p", "16", "--streams", "2"}, "batch": {"--streams", "2"}} {
		r := trialRunner{k: &abCmd{Of: of, N: 4, Prompt: "Tell me a story."}, log: tandem.OpenPowerLog(t.Context(), powerEvery)}
		r.sides[tandem.SideB] = trialSide{flags, []string{"LLM_FAST_PREDICTION=0"}}
		if err := r.begin(); err != nil {
			t.Fatal(err)
		}
		got, err := r.run(t.Context(), tandem.SideB)
		r.end()
		if err := errors.Join(err, r.log.Close()); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"tok_s", "ttft", "itl_p50", "itl_p90", "itl_p99"} {
			if got.Values[name] <= 0 {
				t.Errorf("%s: %s is %g", of, name, got.Values[name])
			}
		}
		if _, ok := got.Values["cpu_active"]; ok != (of == "run") {
			t.Errorf("%s: cpu_active known: %v", of, ok)
		}
		if (of == "run") != (len(got.Tokens) == 4) || (of == "batch") != (got.Text != "") {
			t.Errorf("%s: tokens %v, text %q", of, got.Tokens, got.Text)
		}
	}
}

func TestABOutput(t *testing.T) {
	row := tandem.ComparisonRow{Name: "tok_s", Unit: "tok/s"}
	row.A.Median, row.A.Low, row.A.High = 100, 90, 110
	row.B.Median, row.B.Low, row.B.High = 120, 115, 125
	row.Change.Median, row.Change.Low, row.Change.High = 0.2, 0.1, 0.3
	out := abOutput{abCase: abCase{A: "--x 1", B: "--x 2", EnvB: []string{"K=V"}}, Of: "run", Model: "m.gguf", Tokens: 8, Rule: "a rule",
		ComparisonResult: tandem.ComparisonResult{Primary: "tok_s", Run: 7, Kept: 6, P: new(0.002), Difference: true,
			Rows: []tandem.ComparisonRow{row}, Equal: new(true)}}
	out.Verdict = verdictOf(out.ComparisonResult)
	var b strings.Builder
	if err := out.print(&b); err != nil {
		t.Fatal(err)
	}
	const want = `A: run --x 1
B: K=V run --x 2
m.gguf, 8 tokens; 6 of 7 pairs kept (a rule)
median (95 % interval)  A                B                 change
tok/s                   100 (90 to 110)  120 (115 to 125)  +20.0 % (+10.0 % to +30.0 %)
TTFT ms                 unavailable      unavailable       
ITL p50 ms              unavailable      unavailable       
CPU-active share        unavailable      unavailable       
joules a token          unavailable      unavailable       
tokens: equal in all pairs kept
tok_s: a difference: +20.0 % from A to B (p = 0.002; below 0.01 is a difference)
`
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Error(d)
	}
	if got := verdictOf(tandem.ComparisonResult{}); got != "not judged" {
		t.Errorf("nothing was compared: %q", got)
	}
	if got := verdictOf(tandem.ComparisonResult{P: new(0.01)}); got != "no difference found" {
		t.Error(got)
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
