package spike_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tandemrun/tandem/plan"
	"github.com/tandemrun/tandem/spike"
	"github.com/tandemrun/tandem/unit/sim"
)

// device measures a profile in virtual time.
func device(t *testing.T, p *sim.Profile, o spike.Options) *spike.Report {
	t.Helper()
	if o.Streams == nil {
		o.Streams = []int{1, 2, 4}
	}
	o.Tokens, o.Trials, o.Probes = 64, 2, 3
	r, err := spike.Measure(t.Context(), spike.NewDevice(p, sim.NewVirtual()), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func macStudio(t *testing.T) *spike.Report {
	p, err := sim.Find("mac-studio")
	if err != nil {
		t.Fatal(err)
	}
	return device(t, p, spike.Options{Base: []string{"ane", "ane", "ane", "ane"}, Moved: []string{"ane", "ane", "gpu", "ane"}})
}

// What the seed document measured, what it hoped for, and what it overlooked.
func TestMacStudio(t *testing.T) {
	r := macStudio(t)
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 0.005*want {
			t.Errorf("%s: %.3f, not %.3f", what, got, want)
		}
	}
	for _, x := range r.Results {
		switch {
		case x.Placement == "ane":
			near("base", x.Measured.Aggregate, 1000/30.3)
		case x.Streams == 1:
			near("moved", x.Measured.Aggregate, 1000/39.4)
			near("the first token of the moved placement", x.Cold, 5.4+6.8+1200+10.6)
			if x.Overlap != 0 {
				t.Errorf("one stream overlapped by %.3f", x.Overlap)
			}
		case x.Streams == 2 && x.Merge == 1:
			if x.Measured.Aggregate < 43 || x.Overlap < 0.9 {
				t.Errorf("two streams: %.2f tok/s with an overlap of %.2f", x.Measured.Aggregate, x.Overlap)
			}
			near("two streams, steady", x.Measured.Steady, 1000/22.8)
		}
		if math.Abs(x.Predicted.Aggregate/x.Measured.Aggregate-1) > 0.01 || math.Abs(x.Predicted.Steady/x.Measured.Steady-1) > 0.01 {
			t.Errorf("%s, %d streams: predicted %+v, measured %+v", x.Placement, x.Streams, x.Predicted, x.Measured)
		}
		if !x.TokensEqual || !x.LogitsEqual || x.Divergence != nil || x.Kept != x.Trials {
			t.Errorf("%s, %d streams: %+v", x.Placement, x.Streams, x)
		}
	}
	if len(r.Overlaps) != 5 {
		t.Fatalf("%d overlaps: four kinds of prompt and a control", len(r.Overlaps))
	}
	for _, o := range r.Overlaps {
		want := 1.0
		if o.Category == "control" {
			want = 0
		}
		if math.Abs(o.Factor-want) > 0.03 || math.Abs(o.Predicted-o.Factor) > 0.01 {
			t.Errorf("%s: overlap %.3f, predicted %.3f", o.Category, o.Factor, o.Predicted)
		}
	}
	if r.Usable != 0 || !strings.Contains(r.Why, "c1 → c2 → c3 → c4 → token → c1") {
		t.Errorf("usable by one stream: %.2f: %s", r.Usable, r.Why)
	}
	v := r.Verdict
	if v.Overlap != "strong" || !v.RuleMet || !v.SplitGains || v.ByStreams[0].RuleMet || v.Best.Streams != 2 {
		t.Errorf("verdict %+v", v)
	}
	if r.Prefill.Why == "" {
		t.Error("a prompt was pipelined, though c1 and c2 can be on the Neural Engine only")
	}
	cold := map[string]float64{}
	for _, c := range r.Chunks {
		cold[c.Name+"@"+c.Unit] = c.Cold
	}
	if cold["c3@gpu"] != 1200 || cold["c3@ane"] != 7.5 {
		t.Errorf("cold times %v", cold)
	}
}

// A profile with handoffs, a driver, batch costs, cold starts and units that can
// share a prompt.
const unseen = `{
	"name": "unseen", "hidden": 100, "host_ms": 0.3,
	"units": [{"name": "A"}, {"name": "B"}],
	"chunks": [
		{"name": "x", "on": {"A": {"ms": 4, "row_ms": 0.2, "stream_ms": 1, "cold_ms": 10}, "B": {"ms": 6, "row_ms": 0.3}}},
		{"name": "y", "kv": 50, "on": {"A": {"ms": 3, "row_ms": 0.2, "stream_ms": 2}, "B": {"ms": 4, "row_ms": 0.1, "stream_ms": 2}}},
		{"name": "z", "reads": ["y"], "on": {"A": {"ms": 5, "stream_ms": 0.5}, "B": {"ms": 5, "cold_ms": 20}}}
	],
	"handoffs": [{"from": "A", "to": "B", "call_ms": 1, "ns_per_byte": 2500}, {"from": "*", "to": "A", "call_ms": 0.5}]
}`

// Predictions hold on a profile that nobody has seen, and a prompt flows through
// two units.
func TestUnseenProfile(t *testing.T) {
	p, err := sim.Parse("unseen", []byte(unseen))
	if err != nil {
		t.Fatal(err)
	}
	r := device(t, p, spike.Options{Base: []string{"A", "A", "A"}, Moved: []string{"A", "B", "A"}, Streams: []int{1, 3}})
	for _, x := range r.Results {
		if math.Abs(x.Predicted.Aggregate/x.Measured.Aggregate-1) > 0.01 || math.Abs(x.PredictedOverlap-x.Overlap) > 0.01 {
			t.Errorf("%s, %d streams, merge %d: predicted %+v, overlap %.3f; measured %+v, %.3f", x.Placement, x.Streams, x.Merge, x.Predicted, x.PredictedOverlap, x.Measured, x.Overlap)
		}
		if x.Merge == 1 && x.Merged != 1 || x.Role == "base" && x.Merge == 0 && x.Merged < 2 {
			t.Errorf("%s, %d streams, merge %d: up to %d streams in a task", x.Placement, x.Streams, x.Merge, x.Merged)
		}
		if moved := x.Role == "moved"; moved != (x.CopyMS > 0) || moved != (x.PassedBytes > 0) {
			t.Errorf("%s: %g ms of copies, %d bytes passed", x.Placement, x.CopyMS, x.PassedBytes)
		}
	}
	if len(r.Prefill.Results) != 2 {
		t.Fatalf("prefill %+v", r.Prefill)
	}
	serial, pipelined := r.Prefill.Results[0], r.Prefill.Results[1]
	if pipelined.MeasuredMS >= serial.MeasuredMS || pipelined.Overlap < 0.3 || !pipelined.LogitsEqual {
		t.Errorf("a prompt took %.2f ms on one unit and %.2f through two, overlap %.2f", serial.MeasuredMS, pipelined.MeasuredMS, pipelined.Overlap)
	}
	for _, x := range r.Prefill.Results {
		if math.Abs(x.PredictedMS/x.MeasuredMS-1) > 0.01 {
			t.Errorf("%s: predicted %.2f ms, took %.2f", x.Role, x.PredictedMS, x.MeasuredMS)
		}
	}
}

// A placement of their own for prompts is where they flow, and where decoding is
// nothing changes.
func TestPrefillPlacement(t *testing.T) {
	p, err := sim.Parse("unseen", []byte(unseen))
	if err != nil {
		t.Fatal(err)
	}
	base, moved, prompts := []string{"A", "A", "A"}, []string{"A", "B", "A"}, []string{"B", "A", "A"}
	without := device(t, p, spike.Options{Base: base, Moved: moved, Streams: []int{1}})
	with := device(t, p, spike.Options{Base: base, Moved: moved, Streams: []int{1}, Prefill: prompts})
	for i, x := range with.Results {
		if x.Measured != without.Results[i].Measured {
			t.Errorf("%s: %+v tok/s, and %+v without a placement for prompts", x.Placement, x.Measured, without.Results[i].Measured)
		}
	}
	last := with.Prefill.Results[len(with.Prefill.Results)-1]
	if last.Role != "pipelined" || last.Placement != spike.Placement(prompts) || !last.LogitsEqual || math.Abs(last.PredictedMS/last.MeasuredMS-1) > 0.01 {
		t.Errorf("a prompt on %v: %+v", prompts, last)
	}
	if _, err := spike.Measure(t.Context(), spike.NewDevice(p, sim.NewVirtual()), spike.Options{Base: base, Moved: moved, Prefill: base[:2]}); err == nil || !strings.Contains(err.Error(), "2 chunks for prompts") {
		t.Errorf("two chunks for prompts: %v", err)
	}
}

// Every turn and trial is predicted before it is measured, and all are.
func TestPredictedBefore(t *testing.T) {
	predicted := map[string]bool{}
	measured := map[string]bool{}
	fromChunks, decoded := 0, false
	r := macStudio(t)
	for _, l := range r.Raw {
		decoded = decoded || l.Kind == "decode"
		what := l.Kind
		if what == "prediction" {
			what = l.What
		}
		if what == "from chunks" {
			fromChunks++
			if decoded || l.Rate.Steady <= 0 {
				t.Errorf("%s by %d streams: %+v is predicted from the chunks, after decoding: %v", l.Placement, l.Streams, *l.Rate, decoded)
			}
			continue
		}
		key := fmt.Sprint(what, " ", l.Placement, " ", l.Streams)
		switch what {
		case "decode":
			key += fmt.Sprint(" ", *l.Merge, " ", *l.Trial)
		case "prefill":
			key += fmt.Sprint(" ", *l.Trial)
		case "probe":
			key += " " + l.Category
		}
		switch {
		case l.Kind == "prediction":
			predicted[key] = true
			if measured[key] {
				t.Errorf("%s was predicted after it was measured", key)
			}
		case what == "decode" || what == "probe" || what == "prefill":
			measured[key] = true
			if !predicted[key] {
				t.Errorf("%s was not predicted", key)
			}
		}
	}
	if fromChunks != len(r.Results) {
		t.Errorf("%d of %d schedules are predicted from the chunks", fromChunks, len(r.Results))
	}
	if len(predicted) < 20 || len(measured) != len(predicted) {
		t.Errorf("%d predictions of %d measurements", len(predicted), len(measured))
	}
}

// blind is a device whose costs have to be measured.
type blind struct{ *spike.Device }

func (blind) Costs() *plan.Costs { return nil }

// drifting is a clock on which everything takes more and less time by turns.
type drifting struct{ *sim.Virtual }

func (d drifting) Sleep(ctx context.Context, t time.Duration) error {
	const period = 20 // seconds
	speed := 1 + 0.3*math.Sin(2*math.Pi*float64(d.Now().UnixNano())/1e9/period)
	return d.Virtual.Sleep(ctx, time.Duration(float64(t)*speed))
}

// A turn is predicted from what was measured right before it, so predictions hold
// while the machine drifts. One run takes little of the drift's period.
func TestDrift(t *testing.T) {
	p, err := sim.Parse("drifting", []byte(`{
		"name": "drifting", "hidden": 100,
		"units": [{"name": "A"}, {"name": "B"}],
		"chunks": [
			{"name": "c1", "on": {"A": {"ms": 1.5, "stream_ms": 0.5}, "B": {"ms": 1.5, "stream_ms": 0.5}}},
			{"name": "c2", "kv": 50, "on": {"A": {"ms": 1, "stream_ms": 0.3}, "B": {"ms": 1.25, "stream_ms": 0.3}}},
			{"name": "c3", "reads": ["c2"], "on": {"A": {"ms": 2, "stream_ms": 0.5}, "B": {"ms": 2.5, "stream_ms": 0.5}}}
		],
		"handoffs": [{"from": "*", "to": "*", "call_ms": 0.25}]
	}`))
	if err != nil {
		t.Fatal(err)
	}
	r, err := spike.Measure(t.Context(), blind{spike.NewDevice(p, drifting{sim.NewVirtual()})}, spike.Options{
		Base: []string{"A", "A", "A"}, Moved: []string{"A", "B", "A"}, Streams: []int{1, 2}, Tokens: 32, Trials: 4, Probes: 2,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range r.Results {
		if math.Abs(x.Ratio-1) > 0.07 || math.Abs(x.Measured.Steady/x.Predicted.Steady-1) > 0.07 {
			t.Errorf("%s, %d streams, merge %d: predicted %.1f, measured %.1f tok/s, ratio %.3f", x.Placement, x.Streams, x.Merge, x.Predicted.Steady, x.Measured.Steady, x.Ratio)
		}
	}
	slow, fast := math.Inf(1), 0.0 // the base, one stream, in all turns
	for _, l := range r.Raw {
		if l.Kind == "decode" && l.Placement == "A" && l.Streams == 1 {
			slow, fast = min(slow, l.Rate.Steady), max(fast, l.Rate.Steady)
		}
	}
	if fast < 1.2*slow {
		t.Errorf("the base decoded between %.1f and %.1f tok/s: there was no drift to speak of", slow, fast)
	}
}

// The files hold what they should and nothing from elsewhere.
func TestFiles(t *testing.T) {
	r := macStudio(t)
	dir := filepath.Join(t.TempDir(), "new", "report")
	if err := r.WriteFiles(dir); err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	page := read("report.html")
	for _, part := range []string{"prefers-color-scheme:dark", "<svg", "43.7", "token → c1", "Timelines", "waiting for"} {
		if !strings.Contains(page, part) {
			t.Errorf("report.html has no %q", part)
		}
	}
	for _, part := range []string{"<script", "<link", "@import", "src=", "url(http"} {
		if strings.Contains(page, part) {
			t.Errorf("report.html has %q", part)
		}
	}
	if n := strings.Count(page, "http"); n != strings.Count(page, `xmlns="http://www.w3.org/2000/svg"`) {
		t.Errorf("report.html has %d addresses beside those of the format", n)
	}
	if md := read("report.md"); !strings.Contains(md, "| c3 | gpu | 1200.000 | 16.600 |") || !strings.Contains(md, "- Overlap capability") {
		t.Errorf("report.md:\n%s", md)
	}
	lines := strings.Split(strings.TrimSpace(read("raw.jsonl")), "\n")
	if len(lines) != len(r.Raw) {
		t.Errorf("raw.jsonl has %d lines for %d entries", len(lines), len(r.Raw))
	}
	for _, l := range lines {
		d := json.NewDecoder(strings.NewReader(l))
		d.DisallowUnknownFields()
		var x spike.Line
		if err := d.Decode(&x); err != nil || x.Kind == "" {
			t.Fatalf("%s: %v", l, err)
		}
	}
	checkTrace(t, []byte(read("trace.json")), 2)
}

// checkTrace checks a Chrome trace: processes, spans with a duration, arrows in
// pairs. Package trace checks the format in depth.
func checkTrace(t *testing.T, data []byte, processes int) {
	t.Helper()
	var file struct {
		TraceEvents []struct {
			Name, Ph string
			PID, TID *int
			TS, Dur  *float64
			ID       string
		} `json:"traceEvents"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	pids, arrows, tasks := map[int]bool{}, map[string]int{}, 0
	for i, e := range file.TraceEvents {
		if e.PID == nil || e.TID == nil || e.Name == "" || e.Ph != "M" && (e.TS == nil || *e.TS < 0) {
			t.Fatalf("event %d: %+v", i, e)
		}
		pids[*e.PID] = true
		switch e.Ph {
		case "X":
			tasks++
			if e.Dur == nil || *e.Dur < 0 {
				t.Errorf("event %d has no duration", i)
			}
		case "s":
			arrows[e.ID]++
		case "f":
			arrows[e.ID]--
		}
	}
	if len(pids) != processes || tasks == 0 || len(arrows) == 0 {
		t.Errorf("%d processes, %d spans, %d arrows", len(pids), tasks, len(arrows))
	}
	for id, n := range arrows {
		if n != 0 {
			t.Errorf("arrow %s does not end", id)
		}
	}
}

// The summary has the keys that programs read.
func TestSummary(t *testing.T) {
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(macStudio(t).Summary()); err != nil {
		t.Fatal(err)
	}
	var s map[string]any
	if err := json.Unmarshal(b.Bytes(), &s); err != nil {
		t.Fatal(err)
	}
	has := func(where string, x any, keys ...string) {
		t.Helper()
		m, _ := x.(map[string]any)
		for _, k := range keys {
			if _, ok := m[k]; !ok {
				t.Errorf("%s has no %s", where, k)
			}
		}
	}
	first := func(key string) any {
		l, _ := s[key].([]any)
		if len(l) == 0 {
			t.Fatalf("%s is empty", key)
		}
		return l[0]
	}
	has("the summary", s, "chunks", "overlap_factor", "usable_overlap_one_stream", "results", "prefill", "verdict")
	has("a chunk", first("chunks"), "name", "unit", "cold_ms", "warm_ms")
	has("a result", first("results"), "placement", "streams", "predicted_tok_s", "measured_tok_s", "cold_ms", "realised_overlap", "tokens_equal", "first_divergence")
	for _, k := range []string{"predicted_tok_s", "measured_tok_s"} {
		has(k, first("results").(map[string]any)[k], "aggregate", "steady")
	}
}

// Two measurements of a device are equal.
func TestDeterminism(t *testing.T) {
	a, b := macStudio(t).Summary(), macStudio(t).Summary()
	a.Seconds, b.Seconds = 0, 0
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	if !bytes.Equal(x, y) || !reflect.DeepEqual(a.Chunks, b.Chunks) {
		t.Errorf("%s\n%s", x, y)
	}
}

func TestErrors(t *testing.T) {
	p, err := sim.Find("mac-studio")
	if err != nil {
		t.Fatal(err)
	}
	lab := spike.NewDevice(p, sim.NewVirtual())
	base := []string{"ane", "ane", "ane", "ane"}
	good := spike.Options{Base: base, Moved: []string{"ane", "ane", "gpu", "ane"}, Streams: []int{1}, Tokens: 4, Trials: 1, Probes: 1}
	for want, change := range map[string]func(*spike.Options){
		"changes nothing":     func(o *spike.Options) { o.Moved = base },
		"c1 cannot be on gpu": func(o *spike.Options) { o.Moved = []string{"gpu", "ane", "ane", "ane"} },
		"placements of 1":     func(o *spike.Options) { o.Base = base[:1] },
		"streams []":          func(o *spike.Options) { o.Streams = nil },
		"1 tokens":            func(o *spike.Options) { o.Tokens = 1 },
	} {
		o := good
		change(&o)
		if _, err := spike.Measure(t.Context(), lab, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, not %q", err, want)
		}
	}
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := spike.Measure(done, lab, good); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
