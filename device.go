package tandem

import (
	"context"
	"fmt"
	"slices"

	"github.com/tandemrun/tandem/probe"
	"github.com/tandemrun/tandem/spike"
	"github.com/tandemrun/tandem/unit/sim"
)

// A Device is a device profile that shipped with the package, or of a file, and
// the time that it runs in. docs/devices.md describes profiles.
type Device struct {
	Name string // of a profile, or a file
	// Scale is how much longer a simulated second takes than a real one; 0 runs in
	// virtual time, which is exact and takes no time.
	Scale float64
}

// DeviceProfiles lists the device profiles that ship.
func DeviceProfiles() []string { return sim.Profiles() }

func (d Device) open() (*sim.Profile, *spike.Device, error) {
	p, err := sim.Find(d.Name)
	if err != nil {
		return nil, nil, fmt.Errorf("--device: %w", err)
	}
	var clock sim.Clock = sim.NewVirtual()
	if d.Scale != 0 {
		if clock, err = sim.NewScaled(d.Scale); err != nil {
			return nil, nil, fmt.Errorf("--scale: %w", err)
		}
	}
	return p, spike.NewDevice(p, clock), nil
}

// place reads a placement of a device, chunks by number.
func (d Device) place(p *sim.Profile, flag, spec string) ([]string, error) {
	placement := map[string]string{}
	if spec != "" {
		names, err := place(flag, spec, slices.Repeat([]string{defaultUnit}, len(p.Chunks)))
		if err != nil {
			return nil, err
		}
		for i, name := range names {
			if name != defaultUnit { // chunks that are not named are where the profile has them
				placement[p.Chunks[i].Name] = name
			}
		}
	}
	out, err := p.Place(placement)
	if err != nil {
		return nil, fmt.Errorf("--%s %s: %w", flag, spec, err)
	}
	return out, nil
}

// Spike measures on a simulated device. Of Layout only the placements are used.
func (d Device) Spike(ctx context.Context, s Spike) (*SpikeReport, error) {
	p, lab, err := d.open()
	if err != nil {
		return nil, err
	}
	o := s.options()
	if o.Base, err = d.place(p, "place", s.Layout.Place); err != nil {
		return nil, err
	}
	if s.Move == "" {
		s.Move = d.move(p, lab, o.Base)
	}
	if s.Move == "" {
		o.Moved, o.Still = o.Base, fmt.Sprintf("the device profile %s says of no chunk what it takes on another unit than where it is; a chunk that moves needs a second unit in its list of units, and its latency there", p.Name)
	} else if o.Moved, err = moved(o.Base, s.Move); err != nil {
		return nil, err
	}
	for i, name := range o.Moved {
		if !lab.CanRun(i, name) {
			return nil, fmt.Errorf("--move %s: the device profile %s does not say what c%d takes on %q", s.Move, p.Name, i+1, name)
		}
	}
	if s.Layout.PlacePrefill != "" {
		if o.Prefill, err = d.place(p, "place-prefill", s.Layout.PlacePrefill); err != nil {
			return nil, err
		}
	}
	return spike.Measure(ctx, lab, o)
}

// move is c3, or the first chunk that can, on another unit.
func (d Device) move(p *sim.Profile, lab *spike.Device, base []string) string {
	order := []int{spikeChunk}
	for i := range p.Chunks {
		order = append(order, i)
	}
	for _, i := range order {
		for _, u := range p.Units {
			if i < len(base) && u.Name != base[i] && lab.CanRun(i, u.Name) {
				return fmt.Sprintf("c%d=%s", i+1, u.Name)
			}
		}
	}
	return ""
}

// Probe measures two chunks on a simulated device, and the same with both on one
// unit, if they can be. Of Layout only Place is used.
func (d Device) Probe(ctx context.Context, p Probe) (ProbeResult, error) {
	profile, lab, err := d.open()
	if err != nil {
		return ProbeResult{}, err
	}
	names, err := d.place(profile, "place", p.Layout.Place)
	if err != nil {
		return ProbeResult{}, err
	}
	a, b, err := pair(p.Pair, names)
	if err != nil {
		return ProbeResult{}, err
	}
	run := func(names []string) (r probe.Result, err error) {
		lab.Run(func() {
			e, oops := lab.Open(ctx, spike.Layout{Place: names, Streams: 2, Context: 16, Block: 16})
			if oops != nil {
				err = oops
				return
			}
			r, err = probe.Pair(ctx, e, probe.Options{A: a, B: b, Tokens: []int32{1, 2}, Trials: p.Trials})
			if oops := e.Close(); err == nil {
				err = oops
			}
		})
		return r, err
	}
	return probeBoth(run, names, a, b, func(i int, name string) bool { return lab.CanRun(i, name) })
}
