package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/tandemrun/tandem"
)

// planned are the flags with a plan: auto, a file, or "" for none.
func (f layoutFlags) planned(plan string) layoutFlags {
	f.plan = plan
	return f
}

// planFlags choose a plan.
type planFlags struct {
	Plan string `placeholder:"auto|FILE" help:"Lay the model out as a plan says: a file of tandem plan -o, or auto to find one (measured once for a machine, model and version)."`
}

// lay lays a model out by the plan of the flags, if there is one, for so many
// streams at once. The plan is nil if there is none.
func (c *console) lay(ctx context.Context, m *tandem.Model, f layoutFlags, o tandem.Options, streams int) (*tandem.UsedPlan, tandem.Options, error) {
	if f.plan == "" {
		return nil, o, nil
	}
	if f.Chunks != nil || len(f.Split) > 0 || f.Place != "" || f.PlacePrefill != "" || f.Block != nil || f.Merge != nil {
		return nil, o, errors.New("--plan says how the model is laid out; leave out --chunks, --split, --place, --place-prefill, --block and --merge")
	}
	if f.plan != "auto" {
		u, err := tandem.ReadPlan(f.plan)
		if err != nil {
			return nil, o, fmt.Errorf("--%w", err)
		}
		return u, u.Options(o), nil
	}
	p := tandem.Planning{Layout: o, Top: 1, Streams: streams}
	p.Layout.Observe, p.Layout.Progress = nil, nil
	if isTerminal(c.err) {
		p.Progress = func(what string) { fmt.Fprintf(c.err, "\r%s\x1b[K", what) }
		defer fmt.Fprint(c.err, "\r\x1b[K")
	}
	plans, err := m.Plan(ctx, p)
	if err != nil {
		return nil, o, fmt.Errorf("--plan auto: %w", err)
	}
	u := plans.Use()
	return u, u.Options(o), nil
}

// watch takes a piece of a generation to compare it with the plan.
func (s *session) watch(p tandem.Piece) {
	if s.plan == nil || p.Token < 0 {
		return
	}
	if s.begun {
		s.plan.Add(p.Records)
	}
	s.begun = true
}

// checkPlan says what was slower than the plan, which may be nil.
func (c *console) checkPlan(u *tandem.UsedPlan) error {
	if u == nil {
		return nil
	}
	notes, err := u.Check()
	for _, n := range notes {
		fmt.Fprintf(c.err, "tandem: note: %s\n", n)
	}
	return err
}
