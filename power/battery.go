package power

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// battery is what the machine takes from its batteries while it runs on them:
// all of the machine.
type battery struct {
	t     tree
	paths []string
	last  string // why the last sample had nothing
}

const supplies = "sys/class/power_supply"

func openBattery(t tree) (source, error) {
	b := &battery{t: t}
	for _, name := range t.list(supplies) {
		path := supplies + "/" + name
		kind, err := t.text(path + "/type")
		if err != nil || kind != "Battery" {
			continue
		}
		if scope, err := t.text(path + "/scope"); err == nil && scope == "Device" {
			continue // of a mouse or the like
		}
		b.paths = append(b.paths, path)
	}
	if len(b.paths) == 0 {
		return nil, errors.New("there is no battery in /sys/class/power_supply")
	}
	return b, nil
}

func (*battery) name() string { return "battery" }

func (b *battery) sensors() []string { return b.paths }

func (b *battery) sample(_ time.Time, s *Sample) {
	sum, on := 0.0, 0
	b.last = ""
	for _, path := range b.paths {
		status, err := b.t.text(path + "/status")
		if err != nil {
			b.last = err.Error()
			return
		}
		if status != "Discharging" {
			continue
		}
		watts, err := b.watts(path)
		if err != nil {
			b.last = err.Error()
			return
		}
		sum += watts
		on++
	}
	if on == 0 {
		b.last = "the machine does not run on its battery"
		return
	}
	s.add(Machine, "battery", sum)
}

// watts is power_now in microwatts, or the product of current in microamperes,
// which some drivers give a sign, and voltage in microvolts.
func (b *battery) watts(path string) (float64, error) {
	if p, err := b.t.number(path + "/power_now"); err == nil && p != 0 {
		return math.Abs(float64(p)) / 1e6, nil
	}
	current, err := b.t.number(path + "/current_now")
	if err != nil {
		return 0, fmt.Errorf("/%s has neither power_now nor current_now: %w", path, err)
	}
	voltage, err := b.t.number(path + "/voltage_now")
	if err != nil {
		return 0, fmt.Errorf("/%s: %w", path, err)
	}
	if current == 0 || voltage <= 0 {
		return 0, fmt.Errorf("/%s discharges, but tells no current", path)
	}
	return math.Abs(float64(current)) * float64(voltage) / 1e12, nil
}

func (b *battery) why() string { return b.last }

func (*battery) close() error { return nil }
