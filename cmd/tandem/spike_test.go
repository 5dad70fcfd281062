package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	public "github.com/tandemrun/tandem"
)

func TestSpikeDevice(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "report")
	out := succeed(t, "", "spike", "--device", "mac-studio", "-n", "16", "--streams", "2,1", "--trials", "1", "-o", dir)
	for _, part := range []string{"Overlap probe", "1200.000", "Usable by one stream: 0.00", "Best schedule found: c1=ane,c2=ane,c3=gpu,c4=ane"} {
		if !strings.Contains(out, part) {
			t.Errorf("no %q in\n%s", part, out)
		}
	}
	for _, name := range public.SpikeFiles() {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	var s public.SpikeSummary
	decode(t, succeed(t, "", "spike", "--device", "mac-studio", "--json", "--streams", "1", "--trials", "1", "-n", "4", "--move", "c3=gpu"), &s)
	if len(s.Results) == 0 || !s.Results[0].TokensEqual {
		t.Errorf("summary %+v", s)
	}
}

// A device with one unit has nothing to move to, and its figures all the same.
func TestSpikeOneUnit(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "report")
	out := succeed(t, "", "spike", "--device", "iphone-17-pro", "--streams", "1,2", "--trials", "1", "-o", dir)
	for _, part := range []string{"No chunk can move", "needs a second unit", "1 stream: 14.0 tok/s, 71.7 ms a token."} {
		if !strings.Contains(out, part) {
			t.Errorf("no %q in\n%s", part, out)
		}
	}
	if strings.Contains(out, "The move") {
		t.Errorf("a verdict on a move in\n%s", out)
	}
	for _, name := range public.SpikeFiles() {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A real run, on a model so small that it is quick; its times mean nothing.
func TestSpikeEmbedded(t *testing.T) {
	var s public.SpikeSummary
	decode(t, succeed(t, "", "spike", "-m", "embedded", "--json", "--move", "c3=cpu", "-n", "8", "--trials", "1", "--probes", "1", "--streams", "1,2"), &s)
	// four on each unit, and on a GPU where there is one
	if len(s.Chunks) < 8 || len(s.Chunks)%4 != 0 || len(s.Results) < 6 || s.Moved != "c1=cpu:0,c2=cpu:0,c3=cpu,c4=cpu:0" || s.Usable != 0 {
		t.Errorf("%d chunks, %d results, moved %s, usable %g", len(s.Chunks), len(s.Results), s.Moved, s.Usable)
	}
	for _, r := range s.Results {
		if !r.TokensEqual || !r.LogitsEqual {
			t.Errorf("%s, %d streams: %+v", r.Placement, r.Streams, r.Divergence)
		}
	}
	if len(s.Prefill.Results) < 2 || len(s.Probe) != 5 {
		t.Errorf("prefill %+v, probe %+v", s.Prefill, s.Probe)
	}
}

func TestProbeDevice(t *testing.T) {
	var r public.ProbeResult
	decode(t, succeed(t, "", "probe", "--device", "mac-studio", "--pair", "c2@ane,c3@gpu", "--json"), &r)
	if r.Overlap < 0.97 || r.Control != 0 || r.AMs != 6.8 || r.BMs != 16.6 || r.BColdMs != 1200 || r.Kept != 40 || r.ControlUnit != "ane" {
		t.Errorf("probe %+v", r)
	}
}

func TestDeviceErrors(t *testing.T) {
	for want, args := range map[string][]string{
		"exclude each other":      {"spike", "--device", "mac-studio", "-m", "embedded"},
		"needs --device":          {"probe", "--pair", "c1,c2", "--scale", "1"},
		"no-such-device":          {"probe", "--device", "no-such-device", "--pair", "c1,c2"},
		"c1 cannot be on \"gpu\"": {"probe", "--device", "mac-studio", "--pair", "c1@gpu,c2"},
		"does not say what c1":    {"spike", "--device", "mac-studio", "--move", "c1=gpu"},
		"c3 is on ane already":    {"spike", "--device", "iphone-17-pro", "--move", "c3=ane"},
		"is not of the form":      {"spike", "--device", "mac-studio", "--move", "3=gpu"},
		"on ane already":          {"spike", "--device", "mac-studio", "--move", "c3=ane"},
		"there is no chunk c9":    {"spike", "--move", "c9=cpu", "-m", "embedded"},
		"cpu:99":                  {"spike", "--move", "c3=cpu:99", "-m", "embedded"},
		"-n 1":                    {"spike", "-n", "1"},
	} {
		var out, err strings.Builder
		if status := run(args, strings.NewReader(""), &out, &err); status != 1 || !strings.Contains(err.String(), want) {
			t.Errorf("%v: status %d, %q, want %q", args, status, err.String(), want)
		}
	}
}
