package sustain

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tandemrun/tandem/power"
)

// run is windows of half a minute with speeds.
func run(speeds ...float64) []Window {
	var out []Window
	for i, x := range speeds {
		out = append(out, Window{Begin: 30 * float64(i), Seconds: 30, Rate: x})
	}
	return out
}

func with(all []Window, change func(i int, w *Window)) []Window {
	for i := range all {
		change(i, &all[i])
	}
	return all
}

func TestJudge(t *testing.T) {
	slow := func() []Window { return run(100, 100, 101, 99, 95, 97, 85, 80, 80, 81, 80, 80) } // from 3 minutes on
	for name, c := range map[string]struct {
		windows []Window
		verdict string
		from    float64
		why     string
	}{
		"steady":        {run(100, 100, 100, 100, 91, 92, 91, 92), Steady, 0, "no two windows in a row are below 90 % of the first 1m0s"},
		"one dip":       {run(100, 100, 100, 100, 100, 50, 100, 100), Steady, 0, "no two windows in a row are below 90 % of the first 1m0s"},
		"last window":   {run(100, 100, 100, 100, 100, 100, 100, 50), Steady, 0, "no two windows in a row are below 90 % of the first 1m0s"},
		"too short":     {run(100, 50, 50), TooShort, 0, "3 windows; at least 4 are needed"},
		"nothing known": {slow(), Slowed, 180, "no sign of heat; not known: throttle counts, frequency, thermal state"},
		"counted": {with(slow(), func(i int, w *Window) { w.Throttles = new(int64(i / 6)) }), Throttled, 180,
			"cores were slowed down for heat 2 times"},
		"frequency": {with(slow(), func(i int, w *Window) { w.MHz = new(4000 - 100*float64(i)) }), Throttled, 180,
			"the frequency fell from 3850 to 3350 MHz"},
		"cool": {with(slow(), func(i int, w *Window) { w.MHz, w.Throttles, w.Pressure = new(4000.0), new(int64(0)), power.Fair }), Slowed, 180,
			"no sign of heat"},
		"state": {with(slow(), func(i int, w *Window) {
			w.Celsius = new(80 + float64(i))
			if w.Pressure = power.Fair; i >= 7 {
				w.Pressure = power.Serious
			}
		}), Throttled, 180, "the thermal state is serious at 87 °C"},
		"duty": {with(slow(), func(i int, w *Window) {
			if w.Duty = new(0.8); i >= 6 {
				w.Duty = new(0.6)
			}
		}), Throttled, 180, "the duty cycle was lowered to 60 % for heat"},
	} {
		got := Judge(c.windows)
		at := 0.0
		if got.From != nil {
			at = *got.From
		}
		if got.Verdict != c.verdict || at != c.from || got.Why != c.why {
			t.Errorf("%s: %s from %g, %q", name, got.Verdict, at, got.Why)
		}
	}
	v := Judge(slow())
	if v.Reference != 100 || *v.Rate != 80 {
		t.Errorf("from %g to %g tok/s", v.Reference, *v.Rate)
	}
}

func TestCollector(t *testing.T) {
	begin := time.Unix(1000, 0)
	at := func(s float64) time.Time { return begin.Add(time.Duration(s * 1e9)) }
	c := NewCollector(begin, 2*time.Second, power.Sample{At: begin, Throttles: new(int64(5))})
	add := func(s power.Sample, tokens int) bool {
		for range tokens {
			c.Token()
		}
		return c.Sample(s, nil)
	}
	watts := func(w float64) map[power.Part]float64 { return map[power.Part]float64{power.Combined: w} }
	ended := []bool{
		add(power.Sample{At: at(1), Length: time.Second, Watts: watts(10), Celsius: new(50.0), MHz: new(3000.0), Throttles: new(int64(5)), Pressure: power.Nominal}, 10),
		add(power.Sample{At: at(2.5), Length: 1500 * time.Millisecond, Watts: watts(20), Celsius: new(49.0), MHz: new(2000.0), Throttles: new(int64(7)), Pressure: power.Fair}, 15),
		add(power.Sample{At: at(3.9), Length: 1400 * time.Millisecond}, 10),
		add(power.Sample{At: at(4), Length: 100 * time.Millisecond}, 20),    // the next window is not late because this one was
		add(power.Sample{At: at(8.5), Length: 4500 * time.Millisecond}, 45), // nobody looked for long
		add(power.Sample{At: at(10), Length: 1500 * time.Millisecond}, 15),
	}
	if d := cmp.Diff([]bool{false, true, false, true, true, true}, ended); d != "" {
		t.Error(d)
	}
	want := []Window{
		{Begin: 0, Seconds: 2.5, Tokens: 25, Rate: 10, Celsius: new(50.0), MHz: new(2500.0), Watts: new(16.0), Pressure: power.Fair, Throttles: new(int64(2))},
		{Begin: 2.5, Seconds: 1.5, Tokens: 30, Rate: 20},
		{Begin: 4, Seconds: 4.5, Tokens: 45, Rate: 10},
		{Begin: 8.5, Seconds: 1.5, Tokens: 15, Rate: 10},
	}
	if d := cmp.Diff(want, c.Done, cmpopts.EquateApprox(0, 1e-9)); d != "" {
		t.Error(d)
	}
}
