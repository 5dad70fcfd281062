// Package sim is simulated units: they take the time that a device profile says
// and compute nothing.
//
// A [Profile] describes a device: its units, what each chunk of a model takes on
// each of them, handoffs, cold starts, drivers, watts. A [Device] is its units
// on a [Clock]. They run under the same engine and queues as real units, with
// the model that [Model] makes of the profile; package unit/sim/play does that
// in one call. Only the durations of single tasks come from the profile.
// Everything else that can be seen, what overlaps, waits or is merged, is the
// engine's own doing.
//
// # Promises
//
// On a [Virtual] clock times are exact and two runs of the same simulation are
// equal. Logits are made up from the token and its position, so tokens are the
// same on every placement.
//
// Units and chunks keep package unit's contract, but for its equality of bits
// with other units, and all waiting is on the clock.
package sim

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tandemrun/tandem/program"
	"github.com/tandemrun/tandem/unit"
)

// A Device is the units of a profile on a clock.
type Device struct {
	profile *Profile
	clock   Clock
	units   []*Unit
}

// NewDevice makes the units of a profile.
func NewDevice(p *Profile, c Clock) *Device {
	d := &Device{profile: p, clock: c}
	drivers := map[string]*driver{}
	for i, u := range p.Units {
		own := &driver{}
		if u.Driver != "" {
			if drivers[u.Driver] == nil {
				drivers[u.Driver] = own
			}
			own = drivers[u.Driver]
		}
		d.units = append(d.units, &Unit{device: d, profile: &p.Units[i], driver: own})
	}
	return d
}

// Units are the units in the order of the profile.
func (d *Device) Units() []*Unit { return d.units }

// Place is the unit of each chunk, as [Profile.Place] says.
func (d *Device) Place(placement map[string]string) ([]unit.Unit, error) {
	names, err := d.profile.Place(placement)
	if err != nil {
		return nil, err
	}
	var out []unit.Unit
	for _, name := range names {
		out = append(out, d.units[d.profile.unit(name)])
	}
	return out, nil
}

// A Unit is a simulated unit. Its memory and that of its chunks is the few
// bytes that they need to be simulated.
type Unit struct {
	device  *Device
	profile *UnitProfile
	driver  *driver
	busy    atomic.Int64 // nanoseconds
}

// Name is the unit's name in the profile.
func (u *Unit) Name() string { return u.profile.Name }

// Kind is "sim": all simulated units make up the same tokens.
func (u *Unit) Kind() string { return "sim" }

// Profile is what the profile says of the unit.
func (u *Unit) Profile() *UnitProfile { return u.profile }

// Busy is for how long the unit has run tasks and taken handoffs so far; waiting
// for the driver is not part of it.
func (u *Unit) Busy() time.Duration { return time.Duration(u.busy.Load()) }

// Close does nothing.
func (u *Unit) Close() error { return nil }

// Compile finds the chunk in the profile. It takes no time.
func (u *Unit) Compile(_ context.Context, p *program.Program, o unit.Options) (unit.Chunk, error) {
	prof := u.device.profile
	if p.First < 0 || p.First >= len(prof.Chunks) || p.Last != p.First+1 {
		return nil, fmt.Errorf("layers %d..%d are not a chunk of the device profile %s, which has %d", p.First, p.Last-1, prof.Name, len(prof.Chunks))
	}
	spec := prof.Chunks[p.First]
	cost, ok := spec.On[u.Name()]
	if !ok {
		return nil, fmt.Errorf("the device profile %s does not say what %s takes on %s", prof.Name, spec.Name, u.Name())
	}
	c := &chunk{unit: u, p: p, streams: math.MaxInt, warm: cost.ColdMS == nil}
	c.first = ms(cost.MS)
	c.row, c.stream, c.cold = c.first, c.first, c.first
	for _, x := range []struct {
		to   *time.Duration
		from *float64
	}{{&c.row, cost.RowMS}, {&c.stream, cost.StreamMS}, {&c.cold, cost.ColdMS}} {
		if x.from != nil {
			*x.to = ms(*x.from)
		}
	}
	if cost.StreamMS == nil {
		c.streams = 1
	}
	c.wantedOnly = true
	for _, b := range p.Buffers {
		c.wantedOnly = c.wantedOnly && b.Rows == program.Wanted
	}
	return c, nil
}

// take occupies the unit, and its driver, for as long as work says.
func (u *Unit) take(ctx context.Context, work func() time.Duration) error {
	if err := u.driver.lock(ctx, u.device.clock); err != nil {
		return err
	}
	defer u.driver.unlock(u.device.clock)
	d := work()
	u.busy.Add(int64(d))
	return u.device.clock.Sleep(ctx, d)
}

// chunk is a chunk of the profile on a unit.
type chunk struct {
	unit       *Unit
	p          *program.Program
	streams    int
	wantedOnly bool
	warm       bool

	first, row, stream, cold time.Duration
}

// MaxStreams is one for a chunk whose profile says nothing of what further
// streams cost in a task.
func (c *chunk) MaxStreams() int { return c.streams }

// Bytes is nothing.
func (c *chunk) Bytes() unit.Bytes { return unit.Bytes{} }

// Close does nothing.
func (c *chunk) Close() error { return nil }

// Run waits for what the task takes and makes up its logits.
func (c *chunk) Run(ctx context.Context, t *unit.Task) error {
	if err := c.check(t); err != nil {
		return err
	}
	err := c.unit.take(ctx, func() time.Duration {
		t.Handoff = c.handoff(t)
		return t.Handoff + c.compute(t) + c.unit.fallbacks(t)
	})
	if err != nil {
		return err
	}
	if c.p.Logits >= 0 {
		for _, p := range t.Parts {
			for i, row := range p.Wanted {
				logits := p.Logits[i*Vocabulary : (i+1)*Vocabulary]
				clear(logits)
				logits[next(p.Tokens[row], p.Pos+row)] = 1
			}
		}
	}
	return nil
}

func (c *chunk) check(t *unit.Task) error {
	for _, p := range t.Parts {
		for _, id := range p.Tokens {
			if id < 0 || id >= Vocabulary {
				return fmt.Errorf("token %d: a simulated model has tokens 0 to %d", id, Vocabulary-1)
			}
		}
	}
	return nil
}

// rows is how many rows of a part the chunk runs for.
func (c *chunk) rows(p unit.Part) int {
	if c.wantedOnly {
		return len(p.Wanted)
	}
	return len(p.Tokens)
}

// compute is what the rows of a task take.
func (c *chunk) compute(t *unit.Task) time.Duration {
	d := c.first
	if !c.warm {
		d, c.warm = c.cold, true
	}
	for i, p := range t.Parts {
		if i > 0 {
			d += c.stream
		}
		d += time.Duration(max(c.rows(p)-1, 0)) * c.row
	}
	return d
}

// handoff is what taking a task's inputs from other units takes.
func (c *chunk) handoff(t *unit.Task) time.Duration {
	var d time.Duration
	for _, p := range t.Parts {
		for i, from := range p.InFrom {
			if from == nil {
				continue
			}
			in := c.p.Inputs[i]
			n := len(p.Tokens)
			if in.Rows == program.Wanted {
				n = len(p.Wanted)
			}
			d += c.unit.device.profile.handoff(from.Name(), c.unit.Name(), int64(4*n*in.View.Width))
		}
	}
	return d
}

// ReadKV takes no time: a handoff is paid for where it arrives. The rows hold
// nothing but which unit they come from.
func (c *chunk) ReadKV(_, _, _, _ int, k, _ []byte) error {
	k[0] = byte(slices.Index(c.unit.device.units, c.unit)) // there are at most 64
	return nil
}

// WriteKV takes the handoff of the rows.
func (c *chunk) WriteKV(_, _, _, _ int, k, v []byte) error {
	from := c.unit.device.units[k[0]]
	return c.unit.take(context.Background(), func() time.Duration {
		return c.unit.device.profile.handoff(from.Name(), c.unit.Name(), int64(len(k)+len(v)))
	})
}

// next makes up the token behind a token (splitmix64, Steele et al. 2014).
func next(token int32, pos int) int {
	x := uint64(uint32(token))<<32 | uint64(uint32(pos))
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return int((x ^ x>>31) % Vocabulary)
}

// A driver runs one task of its units at a time, first come, first served.
type driver struct {
	mu      sync.Mutex
	busy    bool
	waiting []chan struct{}
	inputs  map[*float32]bool // buffers that were an input, where that locks them
}

func (d *driver) lock(ctx context.Context, c Clock) error {
	d.mu.Lock()
	if !d.busy {
		d.busy = true
		d.mu.Unlock()
		return nil
	}
	gate := newGate()
	d.waiting = append(d.waiting, gate)
	d.mu.Unlock()
	// Who waits here is at the head of its unit's queue, and nothing ends that.
	return c.Wait(context.WithoutCancel(ctx), gate)
}

func (d *driver) unlock(c Clock) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.waiting) == 0 {
		d.busy = false
		return
	}
	gate := d.waiting[0]
	d.waiting = d.waiting[1:]
	c.Open(gate)
}

// fallbacks is what outputs cost that cannot be written where they belong,
// because their buffer was an input once. The driver is held.
func (u *Unit) fallbacks(t *unit.Task) time.Duration {
	b := u.profile.Buffers
	if b == nil || !b.Backed || !b.InputLocks {
		return 0
	}
	d := u.driver
	if d.inputs == nil {
		d.inputs = map[*float32]bool{}
	}
	var cost time.Duration
	for _, p := range t.Parts {
		for _, out := range p.Out {
			if len(out.Data) > 0 && d.inputs[&out.Data[0]] {
				cost += ms(b.FallbackMS)
			}
		}
	}
	for _, p := range t.Parts {
		for _, in := range p.In {
			if len(in.Data) > 0 {
				d.inputs[&in.Data[0]] = true
			}
		}
	}
	return cost
}
