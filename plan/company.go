package plan

// A company is streams whose decode steps ended with one task, for which a unit
// waits before it begins their next ones; see package engine.
type company struct {
	missing int // streams that have not asked for anything since
	until   int64
	waits   *station
}

const (
	patience      = 16      // of a step's time
	leastPatience = 100_000 // ns
)

// joins reports whether a task is of a decode step and may be merged.
func (f *flow) joins(t *task) bool {
	cost := f.c.Chunks[t.chunk].On[f.s.Placement[t.chunk]]
	return t.b.rows == 1 && limit(f.s.Streams, f.s.Merge, cost.most()) > 1
}

// gather makes a company of the streams whose steps a batch has ended.
func (f *flow) gather(batch []*task) {
	if len(batch) < 2 {
		return
	}
	var c *company
	for _, t := range batch {
		if !t.b.step || t.b.left > 0 || !f.joins(t) {
			continue
		}
		if c == nil {
			d := (f.now - t.b.at) / patience
			if d < leastPatience {
				return
			}
			c = &company{until: f.now + d}
		}
		t.b.s.company, t.b.s.left = c, false
		c.missing++
	}
}

// leaveCompany tells that a stream has gone on or ended.
func (s *stream) leaveCompany(f *flow) {
	c := s.company
	if c == nil || s.left {
		return
	}
	s.left = true
	if c.missing--; c.missing == 0 && c.waits != nil {
		f.rouse(c.waits)
	}
}

// lingers reports whether a unit waits for the companies of its tasks, and lets
// it sleep then.
func (u *station) lingers(f *flow) bool {
	var until int64
	for _, t := range u.queue {
		c := t.b.s.company
		if c == nil || c.missing == 0 || t.b.left < t.b.tasks || !f.joins(t) {
			return false
		}
		if until == 0 || c.until < until {
			until = c.until
		}
	}
	if until <= f.now {
		return false
	}
	for _, t := range u.queue {
		t.b.s.company.waits = u
	}
	u.idle, u.lingering, u.since = true, true, f.now
	f.sleep(u, until-f.now)
	return true
}
