package sim

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A Clock is the time of a simulation and where its goroutines wait. It is an
// engine's clock that units can also sleep on.
type Clock interface {
	// Now is the simulated time; it begins at 1 January 1970.
	Now() time.Time
	// Go runs f in a goroutine that belongs to the clock.
	Go(f func())
	// Wait returns nil when the gate, a channel with room for one value, has been
	// opened, or the cause of the end of ctx.
	Wait(ctx context.Context, gate chan struct{}) error
	// Open lets the goroutine go on that waits at the gate or is about to.
	Open(gate chan struct{})
	// Sleep returns nil when d of simulated time has passed, or the cause of the
	// end of ctx.
	Sleep(ctx context.Context, d time.Duration) error
}

func newGate() chan struct{} { return make(chan struct{}, 1) }

// Run runs f in a goroutine of the clock and returns when f has returned. It is
// how a simulation begins, from outside of the clock.
func Run(c Clock, f func()) {
	done := make(chan struct{})
	c.Go(func() {
		defer close(done)
		f()
	})
	<-done
}

// All runs functions side by side in goroutines of the clock and returns when
// all have returned. It is called from a goroutine of the clock.
func All(c Clock, fs ...func()) {
	if len(fs) == 0 {
		return
	}
	gate := newGate()
	var left atomic.Int64
	left.Store(int64(len(fs)))
	for _, f := range fs {
		c.Go(func() {
			defer func() {
				if left.Add(-1) == 0 {
					c.Open(gate)
				}
			}()
			f()
		})
	}
	_ = c.Wait(context.Background(), gate) // this context never ends
}

// Virtual is a clock whose time passes only when all of its goroutines wait: it
// then jumps to the earliest time at which one of them wakes. A simulation on it
// takes as long as its computation and its times are exact.
//
// One goroutine of the clock runs at a time. Those that could run take turns in
// the order in which their gates were opened, and sleepers of one time in the
// order in which they lay down; so two runs of the same simulation are equal to
// the last record. A goroutine that a context wakes has its turn when nobody else
// has one left at that time.
type Virtual struct {
	mu       sync.Mutex
	now      time.Duration
	running  bool
	ready    []chan struct{} // whose turn it is, in order
	sleepers []sleeper       // as they lay down
	watched  []*watch        // waits that a context can end
}

type sleeper struct {
	at   time.Duration
	gate chan struct{}
}

type watch struct {
	ctx   context.Context
	gate  chan struct{}
	ended bool
}

// NewVirtual makes a virtual clock.
func NewVirtual() *Virtual { return &Virtual{} }

// Now is the simulated time.
func (v *Virtual) Now() time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	return time.Unix(0, int64(v.now)).UTC()
}

// Go runs f in a goroutine that belongs to the clock, when its turn comes.
func (v *Virtual) Go(f func()) {
	gate := newGate()
	v.Open(gate)
	go func() {
		<-gate
		defer func() {
			v.mu.Lock()
			defer v.mu.Unlock()
			v.next()
		}()
		f()
	}()
}

// Open gives the goroutine that waits at the gate a turn.
func (v *Virtual) Open(gate chan struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.ready = append(v.ready, gate)
	if !v.running {
		v.next()
	}
}

// next gives the turn to the next goroutine. v.mu is held.
func (v *Virtual) next() {
	v.running = false
	var gate chan struct{}
	if len(v.ready) > 0 {
		gate = v.ready[0]
		v.ready = slices.Delete(v.ready, 0, 1)
	} else if i := slices.IndexFunc(v.watched, func(w *watch) bool { return w.ctx.Err() != nil && !w.ended }); i >= 0 {
		v.watched[i].ended = true
		gate = v.watched[i].gate
	} else if len(v.sleepers) > 0 {
		first := 0
		for i, s := range v.sleepers {
			if s.at < v.sleepers[first].at {
				first = i
			}
		}
		v.now, gate = v.sleepers[first].at, v.sleepers[first].gate
		v.sleepers = slices.Delete(v.sleepers, first, first+1)
	} else {
		return // until somebody outside opens a gate
	}
	v.running = true
	gate <- struct{}{}
}

// Wait passes the turn on and returns at the next one.
func (v *Virtual) Wait(ctx context.Context, gate chan struct{}) error {
	v.mu.Lock()
	return v.wait(ctx, gate)
}

// wait is Wait with v.mu held, which it frees.
func (v *Virtual) wait(ctx context.Context, gate chan struct{}) error {
	if ctx.Done() == nil {
		v.next()
		v.mu.Unlock()
		<-gate
		return nil
	}
	w := &watch{ctx: ctx, gate: gate}
	v.watched = append(v.watched, w)
	v.next()
	v.mu.Unlock()
	// Contexts of the simulation are looked at before time moves on; this is for
	// one that ends outside of it when nobody in it moves.
	stop := context.AfterFunc(ctx, func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		if !v.running {
			v.next()
		}
	})
	<-gate
	stop()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.watched = slices.DeleteFunc(v.watched, func(x *watch) bool { return x == w })
	if !w.ended {
		return nil
	}
	v.sleepers = slices.DeleteFunc(v.sleepers, func(s sleeper) bool { return s.gate == gate })
	return context.Cause(ctx)
}

// Sleep passes the turn on until d has passed. It returns at once if d is not
// positive.
func (v *Virtual) Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	gate := newGate()
	v.mu.Lock()
	v.sleepers = append(v.sleepers, sleeper{v.now + d, gate})
	return v.wait(ctx, gate)
}

// Scaled is a clock whose time passes with the machine's, at another rate:
// simulated time d takes scale × d. Times are as exact as the machine's timers.
type Scaled struct {
	scale float64
	start time.Time
}

// NewScaled makes a scaled clock; scale is above 0, and 1 is real time.
func NewScaled(scale float64) (*Scaled, error) {
	if !(scale > 0 && scale <= 1e6) {
		return nil, fmt.Errorf("time scale %g: it must be above 0 and at most 1e6; 1 is real time, 0.1 ten times as fast", scale)
	}
	return &Scaled{scale, time.Now()}, nil
}

// Now is the simulated time.
func (s *Scaled) Now() time.Time {
	return time.Unix(0, int64(float64(time.Since(s.start))/s.scale)).UTC()
}

// Go runs f in a goroutine.
func (s *Scaled) Go(f func()) { go f() }

// Open lets the goroutine go on that waits at the gate.
func (s *Scaled) Open(gate chan struct{}) { gate <- struct{}{} }

// Wait waits at the gate.
func (s *Scaled) Wait(ctx context.Context, gate chan struct{}) error {
	select {
	case <-gate:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Sleep sleeps for scale × d.
func (s *Scaled) Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	t := time.NewTimer(time.Duration(float64(d) * s.scale))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
