package tandem

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tandemrun/tandem/power"
)

// ParseDuty reads a duty cycle: "80%" is 0.8.
func ParseDuty(s string) (float64, error) {
	n, err := strconv.ParseFloat(strings.TrimSuffix(s, "%"), 64)
	if err != nil || !strings.HasSuffix(s, "%") || !(n >= 1 && n <= 100) {
		return 0, fmt.Errorf("duty cycle %q: it must be from 1%% to 100%%", s)
	}
	return n / 100, nil
}

// dutyFor is what is left of a duty cycle in a thermal state; all of it where
// the state is not known.
func dutyFor(duty float64, state string) float64 {
	switch state {
	case power.Fair:
		return 0.75 * duty
	case power.Serious:
		return 0.5 * duty
	case power.Critical:
		return 0.25 * duty
	}
	return duty
}

// dutyEvery is how old the thermal state may be that a duty cycle goes by.
const dutyEvery = time.Second

// A dutyCycle is a duty cycle by thermal state. It is safe for concurrent use.
type dutyCycle struct {
	most   float64
	sample func() power.Sample

	mu  sync.Mutex
	at  time.Time
	now float64
}

// newDutyCycle begins a duty cycle of at most a share, by the machine's files:
// they are read at most once a second, and by whoever asks.
func newDutyCycle(ctx context.Context, most float64) *dutyCycle {
	m := power.Open(ctx, power.Options{Files: true})
	return &dutyCycle{most: most, now: most, sample: func() power.Sample { return m.Sample(time.Now()) }}
}

// share is the duty cycle now.
func (d *dutyCycle) share() float64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now := time.Now(); now.Sub(d.at) >= dutyEvery {
		d.at, d.now = now, dutyFor(d.most, d.sample().Pressure)
	}
	return d.now
}
