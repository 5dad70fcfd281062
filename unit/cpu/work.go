package cpu

import (
	"time"

	"github.com/tandemrun/tandem/unit"
)

// steady is what each worker does in a task.
func (c *Chunk) steady(w int) {
	for i := range c.steps {
		s := &c.steps[i]
		if s.barrier {
			c.unit.pool.barrier()
		}
		if len(c.run.rows[s.rows]) > 0 {
			s.do(&c.run, w)
		}
	}
}

// timed is steady with the first worker taking the time: of its own share of
// each step, and of waiting for the others.
func (c *Chunk) timed(w int) {
	if w != 0 {
		c.steady(w)
		return
	}
	for i := range c.steps {
		s := &c.steps[i]
		if s.barrier {
			start := time.Now()
			c.unit.pool.barrier()
			c.note(unit.OpTime{Name: "wait", Calls: 1, Time: time.Since(start)})
		}
		if len(c.run.rows[s.rows]) == 0 {
			continue
		}
		t := unit.OpTime{Name: s.name, Rows: s.rows.String(), Calls: 1}
		start := time.Now()
		s.do(&c.run, w)
		t.Time = time.Since(start)
		if s.cost != nil {
			t.Bytes, t.Ops = s.cost(&c.run)
		}
		c.note(t)
	}
}

// note adds a measurement to those of its kind.
func (c *Chunk) note(t unit.OpTime) {
	for i := range c.times {
		if x := &c.times[i]; x.Name == t.Name && x.Rows == t.Rows {
			x.Calls += t.Calls
			x.Time += t.Time
			x.Bytes += t.Bytes
			x.Ops += t.Ops
			return
		}
	}
	c.times = append(c.times, t)
}

// OpTimes returns what was measured; see [unit.OpTimer].
func (c *Chunk) OpTimes() []unit.OpTime {
	out := c.times
	c.times = nil
	return out
}

var _ unit.OpTimer = (*Chunk)(nil)
