package power

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func sample(length time.Duration, w map[Part]float64) Sample {
	from := map[Part]string{}
	for p := range w {
		from[p] = "sensor of " + string(p)
	}
	return Sample{Length: length, Watts: w, From: from}
}

func TestSummary(t *testing.T) {
	var r Recorder
	r.Add(sample(0, map[Part]float64{CPU: 1000})) // begins it
	r.Idle(sample(2*time.Second, map[Part]float64{CPU: 10}))
	r.Add(sample(time.Second, map[Part]float64{CPU: 30, GPU: 5, DRAM: 2}))
	r.Add(sample(3*time.Second, map[Part]float64{CPU: 50, DRAM: 2}))
	got := r.Summary([]Status{{Source: "rapl", Usable: true}, {Source: "nvml", Why: "there is no library"}})
	want := Summary{Seconds: 4, IdleSeconds: 2, Samples: 2, Parts: map[Part]Figure{
		CPU: {Basis: Measured, Source: "sensor of cpu", Watts: new(45.0), IdleWatts: new(10.0), Joules: new(180.0),
			AboveIdle: new(140.0), Covered: new(1.0)},
		GPU:      {Basis: Unavailable, Why: "the sensors told of 25 % of the time"},
		ANE:      {Basis: Unavailable, Why: "this system has no source that tells it"},
		DRAM:     {Basis: Measured, Source: "sensor of dram", Watts: new(2.0), Joules: new(8.0), Covered: new(1.0)},
		Combined: {Basis: Unavailable, Why: "no part of it is known"},
		Machine:  {Basis: Unavailable, Why: "rapl: it has no such sensor"},
	}}
	if d := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-9)); d != "" {
		t.Error(d)
	}
}

// Where nothing is known, no number is written, in whatever form.
func TestNoZero(t *testing.T) {
	var r Recorder
	r.Add(sample(time.Second, nil))
	s := r.Summary(nil)
	data, err := json.Marshal(s.Parts)
	if err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(string(data), "0123456789") {
		t.Errorf("%s", data)
	}
	var b strings.Builder
	c, err := NewCSV(&b, start)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []Sample{
		{At: start.Add(1500 * time.Millisecond)},
		{At: start.Add(2500 * time.Millisecond), Watts: map[Part]float64{CPU: 12.5, ANE: 0, Combined: 12.5, Machine: 40}},
	} {
		if err := c.Write(x); err != nil {
			t.Fatal(err)
		}
	}
	want := "ts_sec,cpu_w,gpu_w,ane_w,dram_w,combined_w\n1.500,,,,,\n2.500,12.5000,,0.0000,,12.5000\n"
	if b.String() != want {
		t.Errorf("%s", b.String())
	}
}

func TestEstimate(t *testing.T) {
	var r Recorder
	r.Add(sample(10*time.Second, map[Part]float64{CPU: 20}))
	s := r.Summary(nil)
	s.Parts[Combined] = Figure{Basis: Unavailable}
	s.Estimate([]UnitTime{
		{Unit: "cpu:0", Part: CPU, Busy: time.Second, BusyWatts: new(5.0), Provenance: "stated"}, // was measured
		{Unit: "ane", Part: ANE, Busy: 4 * time.Second, BusyWatts: new(1.0), IdleWatts: new(0.25), Provenance: "stated"},
		{Unit: "gpu", Part: GPU, Busy: 2 * time.Second, BusyWatts: new(4.0), Provenance: "stated"},
		{Unit: "gpu:1", Part: GPU, Busy: 2 * time.Second},
	})
	if got := s.Parts[CPU]; got.Basis != Measured || *got.Joules != 200 {
		t.Errorf("cpu %+v", got)
	}
	want := map[Part]Figure{
		ANE:      {Basis: Estimated, Source: "ane busy 4.00 s at stated 1 W", Watts: new(0.55), Joules: new(5.5), AboveIdle: new(3.0)},
		GPU:      {Basis: Estimated, Source: "gpu busy 2.00 s at stated 4 W, its watts at rest not known and not counted", Watts: new(0.8), Joules: new(8.0)},
		Combined: {Basis: Estimated, Source: "cpu (measured) + gpu (estimated) + ane (estimated)", Watts: new(21.35), Joules: new(213.5)},
	}
	for p, f := range want {
		if d := cmp.Diff(f, s.Parts[p], cmpopts.EquateApprox(0, 1e-9)); d != "" {
			t.Errorf("%s: %s", p, d)
		}
	}
}
