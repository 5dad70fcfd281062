package play_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tandemrun/tandem/engine"
	"github.com/tandemrun/tandem/unit/sim"
	"github.com/tandemrun/tandem/unit/sim/play"
)

// warmStudio is the profile mac-studio without the second that the first task on
// the GPU takes: a unit would rest for long behind it.
func warmStudio(t *testing.T) *sim.Profile {
	t.Helper()
	p, err := sim.Find("mac-studio")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range p.Chunks {
		for name, cost := range c.On {
			cost.ColdMS = nil
			c.On[name] = cost
		}
	}
	return p
}

// Alone on one unit, half a duty doubles the steps to the nanosecond, once what
// could be saved up is used. The host's time is within the rest.
func TestDuty(t *testing.T) {
	p := warmStudio(t)
	c := play.Config{Profile: p, Streams: play.Same(1, 1, 32)}
	free, err := play.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	c.Duty = func() float64 { return 0.5 }
	half, err := play.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(free.Streams[0].Tokens, half.Streams[0].Tokens); d != "" {
		t.Errorf("a duty cycle changed the tokens: %s", d)
	}
	var steps []time.Time
	for _, x := range half.Records {
		if x.Chunk == 3 {
			steps = append(steps, x.End)
		}
	}
	var work time.Duration
	for _, x := range free.Records[:4] {
		work += x.End.Sub(x.Start)
	}
	for i := 20; i < len(steps)-1; i++ {
		if got := steps[i+1].Sub(steps[i]); got != 2*work {
			t.Fatalf("step %d took %v, want twice %v", i+1, got, work)
		}
	}
}

// With two streams on two units no unit is busier than its duty, and the busiest
// is as busy.
func TestDutyOfUnits(t *testing.T) {
	p := warmStudio(t)
	c := play.Config{Profile: p, Placement: map[string]string{"c3": "gpu"}, Streams: play.Same(2, 1, 128)}
	for _, duty := range []float64{0.9, 0.6, 0.25} {
		c.Duty = func() float64 { return duty }
		r, err := play.Run(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		most := time.Duration(0)
		for _, u := range r.Units {
			most = max(most, u.Busy)
		}
		const task = 20 * time.Millisecond // the longest is shorter
		limit := time.Duration(duty*float64(r.Wall+engine.DutyCredit)) + task
		if most > limit || most < time.Duration(0.97*duty*float64(r.Wall)) {
			t.Errorf("duty %g: the busiest unit was busy for %v of %v", duty, most, r.Wall)
		}
	}
}

// The units of a chain wait for each other; a duty above what they are busy for
// anyway costs nothing.
func TestDutyOfChain(t *testing.T) {
	p := warmStudio(t)
	c := play.Config{Profile: p, Placement: map[string]string{"c3": "gpu"}, Streams: play.Same(1, 1, 64)}
	free, err := play.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	c.Duty = func() float64 { return 0.6 } // 22.8 of 39.4 ms are less
	calm, err := play.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if calm.Wall != free.Wall {
		t.Errorf("%v with a duty, %v without", calm.Wall, free.Wall)
	}
}
