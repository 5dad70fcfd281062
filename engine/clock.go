package engine

import (
	"context"
	"time"

	"github.com/tandemrun/tandem/machine"
)

// A Clock is the time of an engine, and where its goroutines wait for each
// other: a clock of simulated time moves on when all of them wait.
//
// Goroutines that Go starts belong to the clock. Where the clock is simulated,
// New and the methods of the engine and its streams are called from such
// goroutines only, and these wait for each other, and for time to pass, through
// the clock alone.
type Clock interface {
	Now() time.Time
	// Go runs f in a goroutine that belongs to the clock.
	Go(f func())
	// Wait returns nil when the gate, a channel with room for one value, has been
	// opened, or the cause of the end of ctx. One goroutine waits at a gate.
	Wait(ctx context.Context, gate chan struct{}) error
	// Open lets the goroutine go on that waits at the gate or is about to wait
	// there. It does not block.
	Open(gate chan struct{})
	// Sleep returns nil when d has passed, or the cause of the end of ctx.
	Sleep(ctx context.Context, d time.Duration) error
}

// wallClock is the clock of real units.
type wallClock struct{}

func (wallClock) Now() time.Time          { return time.Now() }
func (wallClock) Go(f func())             { go f() }
func (wallClock) Open(gate chan struct{}) { gate <- struct{}{} }

func (wallClock) Wait(ctx context.Context, gate chan struct{}) error {
	select {
	case <-gate:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (wallClock) Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// A gate is where one goroutine waits until what it waits for may have become
// true. It belongs to the engine's mutex, as a condition variable does.
type gate struct {
	c       chan struct{}
	parker  *machine.Parker // instead of c, for a goroutine that is locked to its thread
	waiting bool
}

func newGate() gate { return gate{c: make(chan struct{}, 1)} }

// wait waits at a gate, with e.mu free meanwhile; at one with a parker whatever
// becomes of ctx. e.mu is held.
func (e *Engine) wait(ctx context.Context, g *gate) error {
	g.waiting = true
	e.mu.Unlock()
	var err error
	if g.parker != nil {
		g.parker.Park()
	} else {
		err = e.clock.Wait(ctx, g.c)
	}
	e.mu.Lock()
	g.waiting = false
	return err
}

// open opens a gate if somebody waits at it. e.mu is held.
func (e *Engine) open(g *gate) {
	if g.waiting {
		g.waiting = false
		if g.parker != nil {
			g.parker.Unpark()
			return
		}
		e.clock.Open(g.c)
	}
}
