package probe_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tandemrun/tandem/engine"
	"github.com/tandemrun/tandem/gguf"
	"github.com/tandemrun/tandem/model/catalog"
	"github.com/tandemrun/tandem/model/tiny"
	"github.com/tandemrun/tandem/probe"
	"github.com/tandemrun/tandem/unit"
	"github.com/tandemrun/tandem/unit/cpu"
	"github.com/tandemrun/tandem/unit/cpu/kernel"
)

// The seed document's own table, within its rounding.
func TestOverlapOfTheSeeds(t *testing.T) {
	ms := func(x float64) time.Duration { return time.Duration(x * float64(time.Millisecond)) }
	for name, c := range map[string]struct{ a, b, parallel, want float64 }{
		"chat":    {6.58, 16.05, 16.10, 0.99},
		"code":    {6.61, 16.19, 16.7, 0.92},
		"qa":      {6.62, 16.70, 16.75, 0.99},
		"summary": {6.60, 16.15, 16.38, 0.97},
		"serial":  {5, 7, 12, 0},
		"nothing": {0, 0, 0, 0},
	} {
		if got := probe.Overlap(ms(c.a), ms(c.b), ms(c.parallel)); math.Abs(got-c.want) > 0.006 {
			t.Errorf("%s: %.3f, not %.2f", name, got, c.want)
		}
	}
	for overlap, want := range map[float64]string{0.51: "strong", 0.5: "meaningful", 0.31: "meaningful", 0.3: "partial", 0.15: "none", -1: "none"} {
		if got := probe.Verdict(overlap); got != want {
			t.Errorf("%g is %s, not %s", overlap, got, want)
		}
	}
}

func open(t *testing.T, units ...int) *engine.Engine {
	t.Helper()
	f, err := gguf.Read(tiny.Name, tiny.File())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	m, err := catalog.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	c := engine.Config{Slots: 2, Context: 64, Block: 16}
	if c.Ranges, err = m.DefaultSplit(); err != nil {
		t.Fatal(err)
	}
	var us []unit.Unit
	for _, name := range []string{"cpu:0", "cpu:1"} {
		u, err := cpu.New(cpu.Config{Name: name, Threads: 1, ISA: kernel.Best()})
		if err != nil {
			t.Fatal(err)
		}
		us = append(us, u)
	}
	for _, u := range units {
		c.Units = append(c.Units, us[u])
	}
	e, err := engine.New(context.Background(), m, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// A probe measures every trial, and leaves logits as they were.
func TestPair(t *testing.T) {
	e := open(t, 0, 0, 1, 0)
	tokens := []int32{2, 105, 394, 4, 807, 106, 4}
	disturbed := 0
	r, err := probe.Pair(t.Context(), e, probe.Options{A: 1, B: 2, Tokens: tokens, Trials: 5, Delay: func() (time.Duration, bool) {
		disturbed++ // every second reading is after a trial: an hour lost in it
		return time.Duration(disturbed) * time.Hour, true
	}})
	if err != nil {
		t.Fatal(err)
	}
	if r.Trials != 20 || r.Kept != 0 {
		t.Errorf("%d trials, %d kept; want 20 and, all being disturbed, 0", r.Trials, r.Kept)
	}
	if r.A != "c2" || r.UnitA != "cpu:0" || r.B != "c3" || r.UnitB != "cpu:1" {
		t.Errorf("pair %s@%s, %s@%s", r.A, r.UnitA, r.B, r.UnitB)
	}
	if r.ColdA <= 0 || r.ColdB <= 0 || r.AloneA.Mean <= 0 || r.Parallel.Median <= 0 {
		t.Errorf("a time is missing: %+v", r)
	}
	if lines := r.Lines(); !strings.Contains(lines, "c2_serial=") || !strings.Contains(lines, "overlap_factor=") {
		t.Errorf("lines %q", lines)
	}
}

func TestPairErrors(t *testing.T) {
	e := open(t, 0, 0, 0, 0)
	for name, o := range map[string]probe.Options{
		"one chunk":  {A: 1, B: 1, Tokens: []int32{2, 4}},
		"no chunk":   {A: 1, B: 9, Tokens: []int32{2, 4}},
		"no tokens":  {A: 1, B: 2},
		"bad tokens": {A: 1, B: 2, Tokens: []int32{2, -4}},
	} {
		if _, err := probe.Pair(t.Context(), e, o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	s, err := e.Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := e.Again(t.Context(), engine.Rerun{Stream: s, Chunk: 0}); err == nil {
		t.Error("a stream that evaluated nothing ran again")
	}
}
