package engine

import (
	"context"
	"time"
)

// A company is streams whose decode steps ended with one task. They ask for
// their next steps within microseconds of each other, and a unit that began the
// first one's at once would read the first chunk's weights for each of them. So a
// unit that has nothing else to do waits for those that are missing, for a part of
// what the step took at most: a caller may do something with its token first.
type company struct {
	missing int // streams that have not asked for anything since
	until   time.Time
	waits   *queue // that waits for them, if one does
}

const (
	// patience is how many times as long as it may be waited for a company its step
	// took. Merged tasks of the first of four chunks save a quarter.
	patience = 16
	// leastPatience is what waiting is worth: less is lost in timers and wakes.
	leastPatience = 100 * time.Microsecond
)

// gather makes a company of the streams whose steps a batch has just ended. e.mu
// is held since before they could go on.
func (e *Engine) gather(batch []*task, end time.Time) {
	if len(batch) < 2 || end.IsZero() {
		return
	}
	var c *company
	for _, t := range batch {
		b := t.b
		if !b.step || b.left > 0 || b.err != nil || !t.joins() {
			continue
		}
		if c == nil {
			d := end.Sub(b.submitted) / patience
			if d < leastPatience {
				return
			}
			c = &company{until: end.Add(d)}
		}
		b.s.company, b.s.left = c, false
		c.missing++
	}
}

// leaveCompany tells the others of a stream's company not to wait for it any
// more: it has asked for something or is closed. e.mu is held.
func (s *Stream) leaveCompany() {
	c := s.company
	if c == nil || s.left {
		return
	}
	s.left = true
	if c.missing--; c.missing == 0 && c.waits != nil {
		s.e.open(&c.waits.wake)
	}
}

// lingers waits for the companies of a queue's tasks and reports whether it did,
// in which case the queue may have changed. It does so if all tasks are first
// ones of decode steps with somebody missing. e.mu is held.
func (e *Engine) lingers(q *queue) bool {
	var until time.Time
	for _, t := range q.ready {
		c := t.b.s.company
		if c == nil || c.missing == 0 || t.b.left < len(t.b.tasks) || !t.joins() {
			return false
		}
		if until.IsZero() || c.until.Before(until) {
			until = c.until
		}
	}
	d := until.Sub(e.clock.Now())
	if d <= 0 || e.closed {
		return false
	}
	for _, t := range q.ready {
		t.b.s.company.waits = q
	}
	ctx, cancel := context.WithCancel(e.life)
	defer cancel()
	e.clock.Go(func() {
		if e.clock.Sleep(ctx, d) == nil {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.open(&q.wake)
		}
	})
	_ = e.wait(context.Background(), &q.wake) // this context never ends
	return true
}
