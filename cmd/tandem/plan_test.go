package main

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// planJSON is what a program reads of tandem plan --json.
type planJSON struct {
	Plans    []onePlan `json:"plans"`
	Baseline onePlan   `json:"baseline"`
}

type onePlan struct {
	Placement     []string         `json:"placement"`
	Boundaries    []int            `json:"boundaries"`
	Streams       int              `json:"streams"`
	Block         int              `json:"block"`
	PredictedTokS float64          `json:"predicted_tok_s"`
	PredictedTTFT float64          `json:"predicted_ttft_ms"`
	MeasuredTokS  *float64         `json:"measured_tok_s"`
	Bytes         map[string]int64 `json:"bytes"`
	Joules        *float64         `json:"joules_per_token"`
}

func TestPlanDevice(t *testing.T) {
	out := succeed(t, "", "plan", "--device", "mac-studio", "--streams", "1")
	for _, want := range []string{"33.0", "moving c3 to gpu loses 23 % for one stream", "chain", "estimated from busy times and stated watts", "unavailable"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	out = succeed(t, "", "plan", "--device", "mac-studio", "--streams", "2", "--verify")
	for _, want := range []string{"c1=ane,c2=ane,c3=gpu,c4=ane", "simulated units", "+0.0 %"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	var p planJSON
	decode(t, succeed(t, "", "plan", "--device", "mac-studio", "--streams", "2", "--json"), &p)
	best := p.Plans[0]
	if !slices.Equal(best.Placement, []string{"ane", "ane", "gpu", "ane"}) || best.PredictedTokS < 43 || best.MeasuredTokS != nil || best.Bytes != nil {
		t.Errorf("%+v", best)
	}
	if b := p.Baseline; math.Abs(b.PredictedTokS-33) > 0.1 || !slices.Equal(b.Placement, []string{"ane", "ane", "ane", "ane"}) {
		t.Errorf("%+v", b)
	}
	decode(t, succeed(t, "", "plan", "--device", "mac-studio", "--streams", "1", "--goal", "energy", "--json"), &p)
	if j := p.Plans[0].Joules; j == nil || math.Abs(*j-0.0303) > 1e-6 {
		t.Errorf("%+v", p.Plans[0])
	}
}

func TestPlanErrors(t *testing.T) {
	for _, x := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"--device", "no-such"}, 1, "mac-studio"},
		{[]string{"--device", "mac-studio", "-m", "x.gguf"}, 1, "--device"},
		{[]string{"--device", "mac-studio", "--streams", "0"}, 1, "--streams 0"},
		{[]string{"--device", "mac-studio", "--prompt", "-1"}, 1, "--prompt -1"},
		{[]string{"--device", "mac-studio", "-o", "x.json"}, 1, "-o"},
		{[]string{"--device", "mac-studio", "--goal", "speed"}, 2, "--goal"},
	} {
		status, out, err := command(t, "", append([]string{"plan"}, x.args...)...)
		if status != x.status || out != "" || !strings.Contains(err, x.want) {
			t.Errorf("%q: status %d, %q, %q", x.args, status, out, err)
		}
	}
}
