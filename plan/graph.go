package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Step is one decode step of one stream on a placement, seen as a graph: what
// it takes at least, and what of it could overlap.
type Step struct {
	Path  []string      // the chunks of the longest chain of dependencies
	Time  time.Duration // that the chain takes, with handoffs and the stream's own work
	Total time.Duration // all its tasks one after the other, likewise
	// Overlap is how much of what two units could do at once a single stream lets
	// them do: 0 if its tasks are a chain. Why says so in a sentence.
	Overlap float64
	Why     string
	// Busiest is the unit with the most to do in a step, and Busy for how long.
	Busiest string
	Busy    time.Duration
}

// StepOf looks at a decode step of one stream.
func StepOf(c *Costs, placement []string) (Step, error) {
	if err := c.placed(placement); err != nil {
		return Step{}, err
	}
	n := len(c.Chunks)
	ends := make([]time.Duration, n) // of the longest chain that ends there
	before := make([]int, n)
	busy := map[string]time.Duration{}
	s := Step{Total: c.Host}
	last := 0
	for i, x := range c.Chunks {
		took := x.On[placement[i]].one()
		before[i] = -1
		for _, src := range slices.Concat(x.Takes, x.Reads) {
			if placement[src.From] != placement[i] {
				took += c.handoff(placement[src.From], placement[i], src.Bytes)
			}
			if before[i] < 0 || ends[src.From] > ends[before[i]] {
				before[i] = src.From
			}
		}
		ends[i] = took
		if before[i] >= 0 {
			ends[i] += ends[before[i]]
		}
		s.Total += took
		busy[placement[i]] += took
		if ends[i] > ends[last] {
			last = i
		}
	}
	for i := last; i >= 0; i = before[i] {
		s.Path = append([]string{c.Chunks[i].Name}, s.Path...)
	}
	s.Time = c.Host + ends[last]
	for _, name := range placement { // in an order that is fixed
		if busy[name] > s.Busy {
			s.Busiest, s.Busy = name, busy[name]
		}
	}
	work := s.Total - c.Host
	if possible := work - s.Busy; possible > 0 {
		s.Overlap = float64(s.Total-s.Time) / float64(possible)
	}
	s.Why = s.why(c, len(busy))
	return s, nil
}

func (s Step) why(c *Costs, units int) string {
	chain := strings.Join(append(s.Path, "token", c.Chunks[0].Name), " → ")
	switch {
	case units == 1:
		return "all chunks are on one unit, which does one thing at a time"
	case len(s.Path) == len(c.Chunks):
		return fmt.Sprintf("a single stream is a chain: each chunk needs what the one before gives, and the next step needs the token (%s)", chain)
	case s.Overlap <= 0:
		return fmt.Sprintf("what does not depend on each other is on one unit (longest chain: %s)", chain)
	}
	return fmt.Sprintf("%d of %d chunks are in the longest chain (%s); the others can run beside it", len(s.Path), len(c.Chunks), chain)
}

// placed checks a placement.
func (c *Costs) placed(placement []string) error {
	if len(placement) != len(c.Chunks) {
		return fmt.Errorf("a placement of %d chunks; there are %d", len(placement), len(c.Chunks))
	}
	for i, name := range placement {
		if _, ok := c.Chunks[i].On[name]; !ok {
			return fmt.Errorf("what %s takes on %q is not known", c.Chunks[i].Name, name)
		}
	}
	return nil
}
