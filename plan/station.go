package plan

// A station is a unit: its queue and what it has in hand.
type station struct {
	index     int // in Costs.Units
	place     int // in flow.units
	driver    *driver
	queue     []*task
	idle      bool  // waits for a task
	lingering bool  // for streams, though it has tasks; see company
	since     int64 // when it began to
	woken     bool  // for the next batch
	before    int   // chunk that it computed last; -1 is none
	batch     []*task
	rows      []int   // of the batch's parts
	parts     []int64 // what is left to do for the batch, in turn
	asked     bool    // for the driver
	running   bool
	left      int64        // of the part in hand, at full speed
	rate      float64      // of full speed
	class     int          // of the batch: 0 decode, 1 prefill
	slowed    [][2]float64 // by station at work beside it, then class
	busy      int64
}

// A driver runs one thing at a time, first come, first served.
type driver struct {
	busy    bool
	waiting []*station
}

// resume goes on with what is in hand, and then with the queue.
func (u *station) resume(f *flow) {
	if u.lingering { // for long enough
		u.idle, u.lingering = false, false
	}
	for {
		if u.running {
			u.running = false
			f.rates()
			u.release(f)
		}
		if len(u.parts) > 0 {
			if !u.take(f) {
				return
			}
			continue
		}
		f.waker, f.woke = u, false
		for _, t := range u.batch {
			f.leave(t)
		}
		f.gather(u.batch)
		f.waker = nil
		again := len(u.batch) > 0
		u.batch = u.batch[:0]
		if len(u.queue) == 0 {
			u.idle, u.since = true, f.now
			return
		}
		if u.lingers(f) {
			return
		}
		if u.pick(f); again && len(u.parts) > 0 {
			u.parts[0] += int64(f.c.Units[u.index].Next)
		}
	}
}

// take begins the next part of the batch; it returns false if the unit has to
// wait, for the driver or for the part's end.
func (u *station) take(f *flow) bool {
	d := u.driver
	if !u.asked && d.busy {
		u.asked = true
		d.waiting = append(d.waiting, u)
		return false
	}
	u.asked, d.busy = false, true
	u.left, u.parts = u.parts[0], u.parts[1:]
	if u.left == 0 {
		u.release(f)
		return true
	}
	u.running = true
	f.rates()
	f.sleep(u, 0) // its end is not known: see wakes
	return false
}

// release gives the driver to who is next.
func (u *station) release(f *flow) {
	d := u.driver
	if len(d.waiting) == 0 {
		d.busy = false
		return
	}
	f.turns = append(f.turns, d.waiting[0])
	d.waiting = d.waiting[1:]
}

// pick takes the first task of the queue, and those of other streams for the
// same chunk that fit beside it, and sees what they take.
func (u *station) pick(f *flow) {
	if i := u.next(f); i > 0 {
		first := u.queue[i]
		copy(u.queue[1:], u.queue[:i])
		u.queue[0] = first
	}
	first := u.queue[0]
	c := &f.c.Chunks[first.chunk]
	cost := c.On[f.s.Placement[first.chunk]]
	most := limit(f.s.Streams, f.s.Merge, cost.most())
	rows, wanted := first.b.rows, first.b.wanted
	u.batch = append(u.batch[:0], first)
	rest := u.queue[:0]
	for _, t := range u.queue[1:] {
		fits := rows+t.b.rows <= f.s.Block && (f.c.Wanted == 0 || wanted+t.b.wanted <= f.c.Wanted)
		if t.chunk != first.chunk || len(u.batch) >= most || !fits {
			rest = append(rest, t)
			continue
		}
		u.batch = append(u.batch, t)
		rows, wanted = rows+t.b.rows, wanted+t.b.wanted
	}
	u.queue = rest
	u.measure(f, c, cost)
}

// next is the index of the task to run next: the first, but of decode tasks that
// may be merged the one of the earliest chunk, so that streams meet, and of others,
// if there are no more streams than units, the one of the latest, so that streams
// part.
func (u *station) next(f *flow) int {
	first := u.queue[0]
	best := 0
	for i, t := range u.queue {
		switch chunk := u.queue[best].chunk; {
		case f.joins(first):
			if f.joins(t) && t.chunk < chunk {
				best = i
			}
		case first.b.rows == 1 && f.s.Streams-f.free <= len(f.units):
			if t.b.rows == 1 && !f.joins(t) && t.chunk > chunk {
				best = i
			}
		}
	}
	return best
}

// measure lists what a batch takes: cache rows, one after the other, and then
// the rows it takes and the computation at once.
func (u *station) measure(f *flow, c *Chunk, cost Cost) {
	u.parts, u.rows, u.class = u.parts[:0], u.rows[:0], 0
	chunk := u.batch[0].chunk
	on := f.s.Placement[chunk]
	var handoff int64
	wanted := 0 // rows of parts of several
	for _, t := range u.batch {
		for _, src := range f.copies[chunk] {
			u.parts = append(u.parts, int64(f.c.handoff(f.s.Placement[src.From], on, src.Bytes*int64(t.b.rows))))
		}
		n := t.b.rows
		if c.WantedOnly {
			n = t.b.wanted
		}
		if n == 0 {
			continue // the block brought cache rows and nothing to compute
		}
		u.rows = append(u.rows, n)
		if n > 1 {
			u.class = 1
			wanted += t.b.wanted
		}
		for _, src := range c.Takes {
			if from := f.s.Placement[src.From]; from != on {
				handoff += int64(f.c.handoff(from, on, src.Bytes*int64(n)))
			}
		}
	}
	if len(u.rows) > 0 {
		took := cost.task(u.rows, wanted)
		if u.before == chunk && cost.Next > 0 && len(u.rows) == 1 && u.rows[0] == 1 {
			took = cost.Next
		}
		u.before = chunk
		u.parts = append(u.parts, handoff+int64(took))
	}
	if !u.woken && len(u.parts) > 0 {
		u.parts[0] += int64(f.c.Units[u.index].Between)
	}
	u.woken = false
}
