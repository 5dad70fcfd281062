package tandem_test

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tandemrun/tandem"
)

// The seeds' own numbers come out of their devices.
func TestExplainDevice(t *testing.T) {
	phone, err := tandem.ExplainDevice("iphone-17-pro", "")
	if err != nil {
		t.Fatal(err)
	}
	part := func(x tandem.Explanation, name string) float64 {
		for _, p := range x.Parts {
			if p.Name == name && p.MS != nil {
				return *p.MS
			}
		}
		return math.NaN()
	}
	gain := func(x tandem.Explanation, lever, change string) float64 {
		for _, l := range x.Levers {
			if l.Lever == lever && l.Change == change && l.Gain != nil {
				return *l.Gain
			}
		}
		return math.NaN()
	}
	about := func(what string, got, want, off float64) {
		t.Helper()
		if !(math.Abs(got-want) <= off) {
			t.Errorf("%s: %g, want %g", what, got, want)
		}
	}
	// ANE_wait=68.7ms copyBack=1.9ms, 71.7 ms a step, 14.0 tok/s; "caps gain at 2.7 %"; CPU 4 %.
	about("step", phone.StepMS, 71.7, 0.05)
	about("tok/s", phone.Rate, 14.0, 0.05)
	about("wait", part(phone, "unit"), 68.7, 1e-6)
	about("copies", part(phone, "copies"), 1.9, 1e-9)
	about("no copies", gain(phone, "no copies", "rows are used where they are"), 0.027, 0.0005)
	about("CPU", (part(phone, "copies")+part(phone, "cpu"))/phone.StepMS, 0.04, 0.005)

	studio, err := tandem.ExplainDevice("mac-studio", "")
	if err != nil {
		t.Fatal(err)
	}
	about("base", studio.StepMS, 30.3, 1e-6)
	about("c3 on gpu", gain(studio, "other placement", "c3 on gpu"), 30.3/39.4-1, 1e-6)
	about("2 streams", gain(studio, "more streams", "2 streams"), 0, 0.001)
	about("2 streams, c3 on gpu", gain(studio, "more streams", "2 streams, c3 on gpu"), 43.86/33-1, 0.002)
	split, err := tandem.ExplainDevice("mac-studio", "c3=gpu")
	if err != nil {
		t.Fatal(err)
	}
	about("split", split.StepMS, 39.4, 1e-6)
	if split.BoundedBy != "dependency" || studio.BoundedBy != "unit" {
		t.Errorf("split is bounded by %s, base by %s", split.BoundedBy, studio.BoundedBy)
	}
}

// Handoffs of a device are copies; what it does not say is unknown.
func TestExplainOwnDevice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d.json")
	err := os.WriteFile(path, []byte(`{"name":"d","hidden":8,"host_ms":1,
		"units":[{"name":"a"},{"name":"b"}],
		"chunks":[{"name":"x","on":{"a":{"ms":4}}},{"name":"y","on":{"b":{"ms":2},"a":{"ms":3}}}],
		"handoffs":[{"from":"*","to":"*","call_ms":0.5}]}`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	x, err := tandem.ExplainDevice(path, "y=b")
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(x.StepMS-7.5) > 1e-6 || math.Abs(*x.Parts[1].MS-0.5) > 1e-6 || x.Parts[2].MS != nil || math.Abs(x.Chunks[1].MS-2.5) > 1e-6 {
		t.Errorf("%+v", x)
	}
	for _, c := range [][2]string{{"no-such", ""}, {path, "z=a"}, {path, "x=b"}, {path, "x"}} {
		if _, err := tandem.ExplainDevice(c[0], c[1]); err == nil {
			t.Errorf("%q was no error", c)
		}
	}
}

func TestExplain(t *testing.T) {
	m, err := tandem.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	x, err := m.Explain(t.Context(), tandem.ExplainTest{
		Options: tandem.Options{Chunks: 2, Place: "cpu:0"}, Depth: 20, Steps: 5, Units: []string{"cpu:0", "cpu"},
	})
	if err != nil {
		t.Fatal(err)
	}
	var sum, shares float64
	for _, p := range x.Parts {
		sum += *p.MS
	}
	for _, o := range x.Ops {
		shares += o.Share
	}
	if math.Abs(sum-x.StepMS) > 1e-9 || x.StepMS <= 0 || len(x.Chunks) != 2 || x.Kept < 3 || x.Kept > 5 || math.Abs(shares-1) > 1e-9 {
		t.Errorf("parts make %g ms, shares %g: %+v", sum, shares, x)
	}
	if len(x.Ceilings) != 1 || x.Ceilings[0].Read <= 0 || x.Chunks[0].Arithmetic == nil || x.BoundedBy == "" {
		t.Errorf("%+v", x)
	}
	var levers []string
	for _, l := range x.Levers {
		levers = append(levers, l.Lever+": "+l.Change)
	}
	all := strings.Join(levers, "\n")
	// A placement with handoffs is run, and not added up from its parts.
	for _, l := range x.Levers {
		if l.Lever == "other placement" && (l.Basis != "measured" || l.StepMS == nil || *l.StepMS <= 0) {
			t.Errorf("%+v", l)
		}
	}
	for _, want := range []string{"c1 at the ceiling", "c2 in no time", "fewer chunks: 1 instead of 2", "c1 on cpu", "all on cpu", "2 streams", "q8_0 instead of f32"} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in\n%s", want, all)
		}
	}
	if strings.Contains(all, "on cpu:0\n") && strings.Contains(all, "c1 on cpu:0") {
		t.Errorf("a chunk is moved to where it is:\n%s", all)
	}
	if _, err := m.Explain(t.Context(), tandem.ExplainTest{Depth: 2000}); err == nil || !strings.Contains(err.Error(), "--ctx") {
		t.Errorf("too deep: %v", err)
	}
	if _, err := m.Explain(t.Context(), tandem.ExplainTest{Steps: 3, Units: []string{"npu"}}); err == nil || !strings.Contains(err.Error(), "npu") {
		t.Errorf("no such unit: %v", err)
	}
}
