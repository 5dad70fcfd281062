package spike

import (
	"context"
	"sync"
	"time"

	"github.com/tandemrun/tandem/engine"
	"github.com/tandemrun/tandem/model"
	"github.com/tandemrun/tandem/plan"
	"github.com/tandemrun/tandem/prompts"
	"github.com/tandemrun/tandem/unit"
	"github.com/tandemrun/tandem/unit/sim"
)

// A Lab is where engines of one model are opened and what they run on: this
// machine, or a simulated device.
//
// Everything is measured inside of Run, because the goroutines of simulated
// units belong to a clock. Engines are opened and closed from one goroutine at a
// time.
type Lab interface {
	Name() string // of the model, or of the device
	Model() *model.Model
	Ranges() []model.Range
	// Units are the units to measure, the base placement's first. CanRun reports
	// whether a chunk can be on one.
	Units() []Unit
	CanRun(chunk int, unit string) bool
	// Prompts are at least one; streams take them in turn.
	Prompts() []Prompt
	Token(id int32) string      // as the vocabulary has it; "" if there is none
	Text(tokens []int32) string // up to what ends a turn; "" likewise
	Open(ctx context.Context, l Layout) (*engine.Engine, error)
	// Most is how many engines fit into the memory at once, at least 1.
	Most() int
	// Costs are what the tasks take, where that is known and need not be measured.
	Costs() *plan.Costs

	Run(f func())                           // runs f where engines can be used
	All(fs ...func())                       // runs functions side by side
	Host(ctx context.Context) error         // a stream's own work before a step
	Delay() (waited time.Duration, ok bool) // see machine.DelayMeter
	// Others is for how long others have had the CPUs, and how many there are; see
	// machine.Others.
	Others() (busy time.Duration, cpus int, ok bool)
}

// A Unit is a unit of a lab.
type Unit struct {
	Name string `json:"name"`
	Kind string `json:"kind"` // units of one kind give equal bits
}

// A Prompt is where a stream begins.
type Prompt struct {
	Category string
	Name     string
	Tokens   []int32 // at least 1
}

// A Layout is an engine to be opened.
type Layout struct {
	Place   []string // unit of each chunk
	Prefill []string // the same for prompts; nil is Place
	Streams int
	Context int
	Block   int // also beside streams that decode
	Observe func(engine.Record)
}

// Wall is the part of a lab that measures real units.
type Wall struct{}

// Run calls f.
func (Wall) Run(f func()) { f() }

// All runs functions side by side and waits for them.
func (Wall) All(fs ...func()) {
	var wg sync.WaitGroup
	for _, f := range fs {
		wg.Go(f)
	}
	wg.Wait()
}

// Host does nothing: what a stream does on its own is in the times.
func (Wall) Host(context.Context) error { return nil }

// Costs are not known.
func (Wall) Costs() *plan.Costs { return nil }

// A Device is a lab of simulated units.
type Device struct {
	profile *sim.Profile
	clock   sim.Clock
}

// NewDevice makes a lab of a device profile on a clock.
func NewDevice(p *sim.Profile, c sim.Clock) *Device { return &Device{p, c} }

// Name is the profile's name.
func (d *Device) Name() string { return d.profile.Name }

// Model is the profile's model, which computes nothing.
func (d *Device) Model() *model.Model { return sim.Model(d.profile) }

// Ranges are the layers of the profile's chunks.
func (d *Device) Ranges() []model.Range { return sim.Ranges(d.profile) }

// Units are those of the profile.
func (d *Device) Units() []Unit {
	var out []Unit
	for _, u := range d.profile.Units {
		out = append(out, Unit{u.Name, "sim"})
	}
	return out
}

// CanRun reports whether the profile says what a chunk takes on a unit.
func (d *Device) CanRun(chunk int, unit string) bool {
	_, ok := d.profile.Chunks[chunk].On[unit]
	return ok
}

// Prompts are one token each, under the names of the four kinds: a profile's
// tokens are made up and take the same, and what a prompt takes is measured apart.
func (d *Device) Prompts() []Prompt {
	var out []Prompt
	for i, kind := range prompts.Kinds() {
		out = append(out, Prompt{kind, "one token", []int32{int32(i)}})
	}
	return out
}

// Token is "": there is no vocabulary.
func (d *Device) Token(int32) string { return "" }

// Text is "" likewise.
func (d *Device) Text([]int32) string { return "" }

// Most is any number.
func (d *Device) Most() int { return 1 << 10 }

// Costs are what the profile says.
func (d *Device) Costs() *plan.Costs { return plan.FromProfile(d.profile) }

// Open opens an engine whose chunks have never run.
func (d *Device) Open(ctx context.Context, l Layout) (*engine.Engine, error) {
	device := sim.NewDevice(d.profile, d.clock)
	var units [2][]unit.Unit
	for k, place := range [][]string{l.Place, l.Prefill} {
		if place == nil {
			continue
		}
		placement := map[string]string{}
		for i, c := range d.profile.Chunks {
			placement[c.Name] = place[i]
		}
		var err error
		if units[k], err = device.Place(placement); err != nil {
			return nil, err
		}
	}
	return engine.New(ctx, d.Model(), engine.Config{
		Ranges: d.Ranges(), Units: units[0], PrefillUnits: units[1], Slots: l.Streams, Context: l.Context, Block: l.Block, KV: unit.F16,
		Clock: d.clock, Observe: l.Observe,
	})
}

// Run runs f on the clock.
func (d *Device) Run(f func()) { sim.Run(d.clock, f) }

// All runs functions side by side on the clock.
func (d *Device) All(fs ...func()) { sim.All(d.clock, fs...) }

// Host takes what the profile says a stream does on its own before each step.
func (d *Device) Host(ctx context.Context) error { return d.clock.Sleep(ctx, d.profile.Host()) }

// Delay is not known: nothing disturbs simulated units in virtual time.
func (d *Device) Delay() (time.Duration, bool) { return 0, false }

// Others are not known: there are none.
func (d *Device) Others() (time.Duration, int, bool) { return 0, 0, false }
