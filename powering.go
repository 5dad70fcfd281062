package tandem

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tandemrun/tandem/power"
	"github.com/tandemrun/tandem/unit/sim"
)

type (
	// A PowerSummary is what a run drew, by part, and how each figure is known.
	PowerSummary = power.Summary
	// A PowerFigure is what is known of one part.
	PowerFigure = power.Figure
	// A PowerPart is what watts are of.
	PowerPart = power.Part
	// A PowerSource is a source of watts, and why it cannot be used.
	PowerSource = power.Status
)

// How a [PowerFigure] is known.
const (
	PowerMeasured    = power.Measured
	PowerEstimated   = power.Estimated
	PowerUnavailable = power.Unavailable
)

// PowerParts lists the parts in the order in which people read them.
func PowerParts() []PowerPart { return power.Parts() }

// A PowerRun says how to measure the power of a run.
type PowerRun struct {
	Interval time.Duration // between samples; 0 is a second
	// Idle is for how long the machine is sampled before the run, to know what it
	// draws without; 0 leaves that out. Where nothing tells watts it is left out
	// too.
	Idle time.Duration
	CSV  io.Writer // if not nil, takes a row for each sample
}

// A PowerReport is what a run drew.
type PowerReport struct {
	PowerSummary
	Sources []PowerSource `json:"sources"`
}

// MeasurePower samples what the machine draws while run runs, from its begin to
// its end. A machine without a source is no error: the report says what is
// unavailable and why. The error of run is returned as it is, with the report.
func MeasurePower(ctx context.Context, o PowerRun, run func() error) (r PowerReport, err error) {
	if o.Interval == 0 {
		o.Interval = time.Second
	}
	m := power.Open(ctx, power.Options{Interval: o.Interval})
	defer func() { err = errors.Join(err, m.Close()) }()
	var rec power.Recorder
	if m.Watts() {
		if err := idle(ctx, m, o, &rec); err != nil {
			return r, err
		}
	}
	begin := time.Now()
	var csv *power.CSV
	if o.CSV != nil {
		if csv, err = power.NewCSV(o.CSV, begin); err != nil {
			return r, err
		}
	}
	m.Sample(begin)
	var failed error
	sample := func() {
		s := m.Sample(time.Now())
		rec.Add(s)
		if csv != nil && failed == nil {
			failed = csv.Write(s)
		}
	}
	done := make(chan error, 1)
	go func() { done <- run() }()
	tick := time.NewTicker(o.Interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			sample()
		case err := <-done:
			sample()
			sources := m.Status()
			return PowerReport{rec.Summary(sources), sources}, errors.Join(err, failed)
		}
	}
}

// idle samples the machine at rest.
func idle(ctx context.Context, m *power.Meter, o PowerRun, to *power.Recorder) error {
	m.Sample(time.Now())
	for left := o.Idle; left > 0; left -= o.Interval {
		select {
		case <-time.After(min(left, o.Interval)):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		to.Idle(m.Sample(time.Now()))
	}
	return nil
}

// EstimatePower fills in the parts that were not measured, from how long units
// were busy and what a device profile (its name or a file, docs/devices.md) says
// that units of these names draw.
func EstimatePower(s *PowerSummary, profile string, usage []Usage) error {
	p, err := sim.Find(profile)
	if err != nil {
		return err
	}
	busy := map[string]time.Duration{}
	var names []string
	for _, u := range usage {
		for _, x := range u.Units {
			names = addNew(names, x.Unit)
			busy[x.Unit] += x.Busy
		}
	}
	var units []power.UnitTime
	for _, name := range names {
		i := slices.IndexFunc(p.Units, func(u sim.UnitProfile) bool { return u.Name == name })
		if i < 0 {
			continue
		}
		u := p.Units[i]
		units = append(units, power.UnitTime{
			Unit: name, Part: partOfUnit(name), Busy: busy[name], BusyWatts: u.Busy, IdleWatts: u.Idle, Provenance: u.Watts,
		})
	}
	if len(names) > 0 && len(units) == 0 {
		return fmt.Errorf("device profile %s: it has none of the units that ran (%s)", p.Name, strings.Join(names, ", "))
	}
	s.Estimate(units)
	return nil
}

// partOfUnit is the part of the machine that a unit is, by its kind.
func partOfUnit(name string) PowerPart {
	kind, _, _ := strings.Cut(name, ":")
	switch kind {
	case "gpu":
		return power.GPU
	case "ane", "coreml":
		return power.ANE
	}
	return power.CPU
}
