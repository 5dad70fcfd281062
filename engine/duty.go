package engine

import "time"

// A duty cycle keeps a unit cool: it is busy for at most a share of the time. A
// task of length d uses up d / duty of time, and the unit begins no other before
// that much has passed. Time in which it had nothing to do counts, up to
// [DutyCredit] of it: a unit that waits for others for long enough in each step
// does not rest at all. So over any time t a unit is busy for at most
// duty × (t + DutyCredit), and for the task in hand.
//
// It rests in its queue, by the engine's clock: tasks gather there meanwhile, and
// other units go on. The rest is not part of a record. A stream whose context is
// cancelled meanwhile ends when the rest does.

// DutyCredit is how much time at rest a unit can save up.
const DutyCredit = 250 * time.Millisecond

// leastDuty keeps a duty that is out of range from stopping a unit.
const leastDuty = 0.01

// tire uses up the time of a task. Only the unit's goroutine calls it.
func (e *Engine) tire(q *queue, r Record) {
	if e.cfg.Duty == nil || r.End.IsZero() {
		return
	}
	duty := min(max(e.cfg.Duty(), leastDuty), 1)
	if saved := r.Start.Add(-DutyCredit); q.used.Before(saved) {
		q.used = saved
	}
	q.used = q.used.Add(time.Duration(float64(r.End.Sub(r.Start)) / duty))
}

// resting sleeps while the unit has to rest, and reports whether it did, in which
// case the queue may have changed. Closing the engine ends it. e.mu is held.
func (e *Engine) resting(q *queue) bool {
	if e.closed || q.used.IsZero() {
		return false
	}
	d := q.used.Sub(e.clock.Now())
	if d <= 0 {
		return false
	}
	e.mu.Unlock()
	_ = e.clock.Sleep(e.life, d)
	e.mu.Lock()
	return true
}
