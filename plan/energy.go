package plan

import (
	"fmt"
	"slices"
	"time"
)

// Energy is joules a token, or why there is no such figure.
type Energy struct {
	Joules *float64 // nil if nothing is known of any watts
	// Basis says how the watts are known and what is not counted.
	Basis string
}

// energyOf estimates from busy and idle times and the units' watts.
func energyOf(c *Costs, p Prediction, tokens int) Energy {
	var joules float64
	var how, missing []string
	add := func(u Unit, watts *float64, d time.Duration, what string) {
		if watts == nil {
			missing = append(missing, fmt.Sprintf("%s watts of %s not known and not counted", what, u.Name))
			return
		}
		joules += *watts * d.Seconds()
		if !slices.Contains(how, u.Watts) {
			how = append(how, u.Watts)
		}
	}
	for _, x := range p.Units {
		u := c.Units[c.unit(x.Name)]
		add(u, u.BusyWatts, x.Busy, "busy")
		add(u, u.IdleWatts, p.Wall-x.Busy, "idle")
	}
	if len(how) == 0 {
		return Energy{Basis: "unavailable: no watts are known of these units"}
	}
	joules /= float64(tokens)
	basis := fmt.Sprintf("estimated from busy times and %s watts", and(how))
	for _, m := range missing {
		basis += "; " + m
	}
	return Energy{&joules, basis}
}
