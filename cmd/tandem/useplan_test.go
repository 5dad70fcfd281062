package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// ownCache gives a test a folder of its own for what is measured.
func ownCache(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	t.Setenv("XDG_CACHE_HOME", dir)
	t.Setenv("HOME", dir)
	return dir
}

// quickPlan is the flags of a plan that does not take long to measure.
var quickPlan = []string{"plan", "--prompt", "24", "-n", "8", "--ctx", "128", "--time", "500ms"}

// planFor writes a plan of the model in the binary to a file.
func planFor(t *testing.T, args ...string) (file, out string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "plan.json")
	return file, succeed(t, "", append(slices.Concat(quickPlan, []string{"-o", file}), args...)...)
}

func TestPlanModel(t *testing.T) {
	cache := ownCache(t)
	file, out := planFor(t, "--json")
	var top map[string]json.RawMessage
	decode(t, out, &top)
	var plans []map[string]any
	decode(t, string(top["plans"]), &plans)
	var baseline map[string]any
	decode(t, string(top["baseline"]), &baseline)
	if len(top) != 2 || len(plans) == 0 {
		t.Fatalf("%s", out)
	}
	keys := strings.Fields("placement boundaries streams block predicted_tok_s predicted_ttft_ms measured_tok_s bytes joules_per_token")
	for _, p := range append(plans, baseline) {
		for _, key := range keys {
			if _, ok := p[key]; !ok {
				t.Errorf("no %s in %v", key, p)
			}
		}
		if p["predicted_tok_s"].(float64) <= 0 || p["predicted_ttft_ms"].(float64) <= 0 || p["measured_tok_s"] != nil || p["bytes"] == nil {
			t.Errorf("%v", p)
		}
	}
	var p planJSON
	decode(t, out, &p)
	units := slices.Compact(slices.Sorted(slices.Values(p.Baseline.Placement)))
	if best := p.Plans[0]; best.PredictedTokS < p.Baseline.PredictedTokS*0.999 && !slices.Equal(best.Placement, p.Baseline.Placement) || len(units) != 1 {
		t.Errorf("the first plan is %+v, and one unit is better: %+v", best, p.Baseline)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var f struct {
		Format int       `json:"tandem_plan"`
		Step   []float64 `json:"step_ms"`
		Costs  string    `json:"costs"`
	}
	if err := json.Unmarshal(data, &f); err != nil || f.Format != 1 || len(f.Step) != len(p.Plans[0].Placement) || !strings.HasPrefix(f.Costs, cache) {
		t.Errorf("%s (%v)", data, err)
	}
	// What was measured is not measured again: the same plans come out.
	if _, again := planFor(t, "--json"); again != out {
		t.Errorf("the second time:\n%s\nthe first time:\n%s", again, out)
	}
}

func TestPlanVerify(t *testing.T) {
	ownCache(t)
	_, out := planFor(t, "--verify")
	for _, want := range []string{"Predicted against this machine", "at this speed", "trials undisturbed", "A step of the whole model when the costs were measured"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	var p planJSON
	_, out = planFor(t, "--verify", "--json")
	decode(t, out, &p)
	measured := 0
	for _, x := range p.Plans {
		if x.MeasuredTokS != nil && *x.MeasuredTokS > 0 {
			measured++
		}
	}
	// Two, and the single unit if it was found to be the best.
	if measured < min(2, len(p.Plans)) || p.Plans[0].MeasuredTokS == nil || p.Baseline.MeasuredTokS == nil {
		t.Errorf("%+v", p)
	}
	for _, x := range []string{"0s", "-1s"} {
		if status, _, err := command(t, "", "plan", "--time", x); status != 1 || !strings.Contains(err, "--time") {
			t.Errorf("--time %s: %d, %q", x, status, err)
		}
	}
}

// However a plan lays a model out, the tokens stay as they are.
func TestRunPlan(t *testing.T) {
	ownCache(t)
	prompt := []string{"-n", "24", "--ctx", "128", "Tell me a story."}
	want := succeed(t, "", append([]string{"run"}, prompt...)...)
	auto, _ := planFor(t)
	own := filepath.Join(t.TempDir(), "own.json")
	if err := os.WriteFile(own, []byte(`{"tandem_plan": 1, "placement": ["cpu:0", "cpu", "cpu:0"], "boundaries": [3, 7], "streams": 1, "block": 8, "merge": 0}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, plan := range []string{auto, own, "auto"} {
		status, got, err := command(t, "", append([]string{"run", "--plan", plan}, prompt...)...)
		if status != 0 || got != want {
			t.Errorf("--plan %s: status %d, %q, %q; without a plan %q", plan, status, got, err, want)
		}
	}
	var a answer
	decode(t, succeed(t, "", append([]string{"run", "--json", "--plan", own}, prompt...)...), &a)
	if len(a.Chunks) != 3 || a.Chunks[1].First != 3 || a.Chunks[2].First != 7 || a.Chunks[1].Unit != "cpu" || a.Chunks[2].Unit != "cpu:0" {
		t.Errorf("%+v", a.Chunks)
	}
	for _, x := range []struct {
		args []string
		want string
	}{
		{[]string{"--plan", "no-such.json"}, "no-such.json"},
		{[]string{"--plan", own, "--chunks", "2"}, "leave out --chunks"},
		{[]string{"--plan", "auto", "--place-prefill", "cpu:0"}, "--place-prefill"},
	} {
		status, out, err := command(t, "", append(append([]string{"run"}, x.args...), "Hello")...)
		if status != 1 || out != "" || !strings.Contains(err, x.want) {
			t.Errorf("%q: status %d, %q, %q", x.args, status, out, err)
		}
	}
}

// Conversations and batches stay as they are under a plan, too.
func TestChatAndBatchPlan(t *testing.T) {
	ownCache(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "plan.json")
	if err := os.WriteFile(file, []byte(`{"tandem_plan": 1, "placement": ["cpu:0", "cpu", "cpu:0"], "boundaries": [3, 7], "streams": 2, "block": 8, "merge": 1, "step_ms": [1e9, 1e-6, 1e9]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	const talk = "Hello\nTell me a story.\n"
	flags := []string{"-n", "24", "--ctx", "128"}
	want := succeed(t, talk, append([]string{"chat"}, flags...)...)
	for _, plan := range []string{file, "auto"} {
		status, got, err := command(t, talk, append([]string{"chat", "--plan", plan}, flags...)...)
		slow := strings.Contains(err, "note: unit cpu takes")
		if status != 0 || got != want || plan == file && !slow {
			t.Errorf("chat --plan %s: status %d, %q, %q; without a plan %q", plan, status, got, err, want)
		}
	}
	in := filepath.Join(dir, "in.jsonl")
	if err := os.WriteFile(in, []byte(strings.Repeat(`{"prompt":"Tell me a story."}`+"\n"+`{"prompt":"Hello"}`+"\n", 2)), 0o600); err != nil {
		t.Fatal(err)
	}
	var lines []batchLine
	for i, x := range []struct {
		args    []string
		streams int
		chunks  int
	}{
		{nil, 4, 4},
		{[]string{"--plan", file}, 2, 3},
		{[]string{"--plan", file, "--streams", "1"}, 1, 3},
		{[]string{"--plan", file, "--streams", "3"}, 2, 3},
		{[]string{"--plan", "auto", "--streams", "2"}, 0, 0},
	} {
		out := filepath.Join(dir, strconv.Itoa(i)+".jsonl")
		args := slices.Concat([]string{"batch", "--json"}, flags, x.args, []string{in, out})
		status, got, err := command(t, "", args...)
		if status != 0 {
			t.Fatalf("%q: %d, %q", args, status, err)
		}
		var sum batchSummary
		decode(t, got, &sum)
		if x.streams > 0 && (sum.Streams != x.streams || len(sum.Chunks) != x.chunks) || sum.Answered != 4 {
			t.Errorf("%q: %+v", args, sum)
		}
		// Of a single stream every step is one to compare.
		if x.streams == 1 && !strings.Contains(err, "note: unit cpu takes") {
			t.Errorf("%q: %q", args, err)
		}
		if got := batchLines(t, out); lines == nil {
			lines = got
		} else if d := cmp.Diff(lines, got); d != "" {
			t.Errorf("%q: %s", args, d)
		}
	}
	status, _, err := command(t, "", "batch", "--plan", file, "--chunks", "2", in, filepath.Join(dir, "x"))
	if status != 1 || !strings.Contains(err, "leave out --chunks") {
		t.Errorf("%d, %q", status, err)
	}
}

// A unit that is slower than its plan says is reported, and what was measured is
// forgotten.
func TestSlowerThanPlanned(t *testing.T) {
	cache := ownCache(t)
	costs := filepath.Join(cache, "costs.json")
	file := filepath.Join(t.TempDir(), "plan.json")
	for _, x := range []struct {
		step string
		slow bool
	}{{"1e-6, 1e9", true}, {"1e9, 1e9", false}} {
		if err := os.WriteFile(costs, []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
		plan := `{"tandem_plan": 1, "placement": ["cpu:0", "cpu"], "boundaries": [4], "streams": 1, "block": 32, "merge": 0, "step_ms": [` + x.step + `], "costs": ` + strconv.Quote(costs) + `}`
		if err := os.WriteFile(file, []byte(plan), 0o600); err != nil {
			t.Fatal(err)
		}
		status, _, err := command(t, "", "run", "--plan", file, "-n", "24", "Tell me a story.")
		note := strings.Contains(err, "note: unit cpu:0 takes") && strings.Contains(err, "for c1 as its plan says") && !strings.Contains(err, "c2")
		if status != 0 || note != x.slow || !x.slow && err != "" {
			t.Errorf("planned %s: status %d, %q", x.step, status, err)
		}
		if _, gone := os.Stat(costs); (gone != nil) != x.slow {
			t.Errorf("planned %s: what was measured: %v", x.step, gone)
		}
	}
	// Too few steps say nothing.
	plan := `{"tandem_plan": 1, "placement": ["cpu:0"], "boundaries": [], "streams": 1, "block": 32, "merge": 0, "step_ms": [1e-6]}`
	if err := os.WriteFile(file, []byte(plan), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, _, err := command(t, "", "run", "--plan", file, "-n", "8", "Tell me a story."); status != 0 || err != "" {
		t.Errorf("eight steps: %d, %q", status, err)
	}
}
