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

// lay lays the model out by the plan of the flags, if there is one.
func (s *session) lay(ctx context.Context, c *console, f layoutFlags, o tandem.Options) (tandem.Options, error) {
	if f.plan == "" {
		return o, nil
	}
	if f.Chunks != nil || len(f.Split) > 0 || f.Place != "" || f.PlacePrefill != "" || f.Block != nil || f.Merge != nil {
		return o, errors.New("--plan says how the model is laid out; leave out --chunks, --split, --place, --place-prefill, --block and --merge")
	}
	if f.plan != "auto" {
		u, err := tandem.ReadPlan(f.plan)
		if err != nil {
			return o, fmt.Errorf("--%w", err)
		}
		s.plan = u
		return u.Options(o), nil
	}
	p := tandem.Planning{Layout: o, Top: 1}
	p.Layout.Observe = nil
	if isTerminal(c.err) {
		p.Progress = func(what string) { fmt.Fprintf(c.err, "\r%s\x1b[K", what) }
		defer fmt.Fprint(c.err, "\r\x1b[K")
	}
	plans, err := s.model.Plan(ctx, p)
	if err != nil {
		return o, fmt.Errorf("--plan auto: %w", err)
	}
	s.plan = plans.Use()
	return s.plan.Options(o), nil
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

// checkPlan says what was slower than the plan.
func (c *console) checkPlan(s *session) error {
	if s.plan == nil {
		return nil
	}
	notes, err := s.plan.Check()
	for _, n := range notes {
		fmt.Fprintf(c.err, "tandem: note: %s\n", n)
	}
	return err
}
