package cpu

import (
	"time"

	"github.com/tandemrun/tandem/unit"
	"github.com/tandemrun/tandem/unit/cpu/kernel"
)

// steady is what each worker does in a task.
func (c *Chunk) steady(w int) {
	c.idle[w].product = -1
	for i := range c.steps {
		s := &c.steps[i]
		if s.barrier {
			c.wait(w, s)
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
	c.idle[w].product = -1
	for i := range c.steps {
		s := &c.steps[i]
		if s.barrier {
			start := time.Now()
			c.wait(w, s)
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

// idle is what a worker does while it waits for others: it prefetches what it
// will read first of the next product. Memory has nothing else to do then.
type idle struct {
	set     *kernel.Set
	product int    // step
	left    []byte // of its head
	_       [16]byte
}

func (c *Chunk) wait(w int, s *step) {
	x := &c.idle[w]
	if s.product != x.product && s.product >= 0 {
		x.set, x.product, x.left = c.unit.set, s.product, c.steps[s.product].heads[w]
	}
	c.unit.pool.barrier(x)
}

// work does a little.
func (x *idle) work() {
	const lines = 4 // so that the barrier is seen soon
	if n := min(len(x.left), 64*lines); n > 0 {
		x.set.Prefetch(x.left[:n])
		x.left = x.left[n:]
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
