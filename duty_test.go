package tandem

import (
	"testing"
	"time"

	"github.com/tandemrun/tandem/power"
)

func TestDutyCycle(t *testing.T) {
	state := power.Serious
	d := &dutyCycle{most: 0.8, now: 0.8, sample: func() power.Sample { return power.Sample{Pressure: state} }}
	if got := d.share(); got != 0.4 {
		t.Errorf("serious: %g", got)
	}
	state = power.Nominal
	if got := d.share(); got != 0.4 {
		t.Errorf("within a second of the last look: %g", got)
	}
	for s, want := range map[string]float64{"": 0.8, power.Nominal: 0.8, power.Fair: 0.6, power.Serious: 0.4, power.Critical: 0.2} {
		state = s
		d.at = time.Time{}
		if got := d.share(); got < want-1e-9 || got > want+1e-9 {
			t.Errorf("%q: %g, want %g", s, got, want)
		}
	}
}

func TestParseDuty(t *testing.T) {
	for s, want := range map[string]float64{"80%": 0.8, "100%": 1, "1%": 0.01, "12.5%": 0.125} {
		if got, err := ParseDuty(s); err != nil || got != want {
			t.Errorf("%s: %g, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "80", "0%", "101%", "-5%", "x%", "%", "NaN%"} {
		if got, err := ParseDuty(s); err == nil {
			t.Errorf("%q: %g", s, got)
		}
	}
}
