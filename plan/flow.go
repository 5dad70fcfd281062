package plan

import (
	"math"
	"slices"
)

// A flow is work on its way through the queues of units, in nanoseconds since
// its begin. Units and streams go on one at a time; when nobody can, time moves
// on to the next moment at which somebody does.
type flow struct {
	c         *Costs
	s         Schedule
	w         Work
	now       int64
	any       int64 // time in which a unit was busy
	turns     []actor
	asleep    []sleeper
	streams   []*stream
	units     []*station
	at        []*station // by chunk
	copies    [][]Source // by chunk: caches it reads from other units
	readers   [][]int    // by chunk: chunks on its unit that read its caches
	free      int        // slots
	seekers   []*stream  // for a slot
	contended bool       // units slow each other
	waker     *station   // whose tasks are being finished; nil for none
	woke      bool       // it has woken somebody by that
}

// An actor is a stream or a unit.
type actor interface{ resume(f *flow) }

// A sleeper goes on at a time.
type sleeper struct {
	who actor
	at  int64
}

// A task is one chunk's work for one block.
type task struct {
	b     *block
	chunk int
	waits int
	next  []*task
	done  bool
}

// A block is some positions of a stream.
type block struct {
	s            *stream
	rows, wanted int
	step         bool  // of decode
	at           int64 // when it was submitted
	tasks, left  int   // all, and those that are not done
}

// newFlow puts all streams at the begin.
func newFlow(c *Costs, s Schedule, w Work) *flow {
	f := &flow{c: c, s: s, w: w, free: s.Streams, at: make([]*station, len(c.Chunks)),
		copies: make([][]Source, len(c.Chunks)), readers: make([][]int, len(c.Chunks))}
	drivers := map[string]*driver{}
	for i, name := range s.Placement {
		j := slices.IndexFunc(f.units, func(u *station) bool { return c.Units[u.index].Name == name })
		if j < 0 {
			k := c.unit(name)
			d := c.Units[k].driver()
			if drivers[d] == nil {
				drivers[d] = &driver{}
			}
			j = len(f.units)
			f.units = append(f.units, &station{index: k, place: j, driver: drivers[d], idle: true, before: -1, rate: 1})
		}
		f.at[i] = f.units[j]
	}
	for _, u := range f.units {
		u.slowed = make([][2]float64, len(f.units))
		for j, other := range f.units {
			u.slowed[j] = [2]float64{1, 1}
			for _, x := range c.Contention {
				if x.Unit == c.Units[u.index].Name && x.With == c.Units[other.index].Name {
					u.slowed[j] = [2]float64{x.Decode, x.Prefill}
					f.contended = true
				}
			}
		}
	}
	for i, x := range c.Chunks {
		for _, src := range x.Reads {
			if f.at[src.From] != f.at[i] {
				f.copies[i] = append(f.copies[i], src)
			} else if !slices.Contains(f.readers[src.From], i) {
				f.readers[src.From] = append(f.readers[src.From], i)
			}
		}
	}
	for i := range w.Streams {
		st := &stream{last: make([]*task, len(c.Chunks)), lines: make([]line, len(f.units)), prompt: w.Prompt}
		f.streams = append(f.streams, st)
		if w.Stagger > 0 && i > 0 {
			f.sleep(st, int64(i)*int64(w.Stagger))
		} else {
			f.turns = append(f.turns, st)
		}
	}
	return f
}

// run lets everything happen.
func (f *flow) run() {
	for {
		for len(f.turns) > 0 {
			who := f.turns[0]
			f.turns = f.turns[1:]
			who.resume(f)
		}
		next, end := -1, int64(math.MaxInt64)
		for i, x := range f.asleep {
			if at := f.wakes(x); at < end {
				next, end = i, at
			}
		}
		if next < 0 {
			return
		}
		f.pass(end)
		who := f.asleep[next].who
		if u, ok := who.(*station); ok && u.running {
			u.left = 0
		}
		f.asleep = slices.Delete(f.asleep, next, next+1)
		who.resume(f)
	}
}

// wakes is when a sleeper goes on, as things are.
func (f *flow) wakes(x sleeper) int64 {
	if u, ok := x.who.(*station); ok && u.running {
		if u.rate == 1 {
			return f.now + u.left
		}
		return f.now + int64(math.Ceil(float64(u.left)/u.rate))
	}
	return x.at
}

// pass lets time pass until then.
func (f *flow) pass(until int64) {
	d := until - f.now
	f.now = until
	some := false
	for _, u := range f.units {
		if !u.running {
			continue
		}
		some = true
		u.busy += d
		if u.rate == 1 {
			u.left -= d
		} else {
			u.left = max(u.left-int64(float64(d)*u.rate), 0)
		}
	}
	if some {
		f.any += d
	}
}

// sleep lets an actor go on after a while.
func (f *flow) sleep(who actor, d int64) { f.asleep = append(f.asleep, sleeper{who, f.now + d}) }

// rates sets how fast the tasks in hand go on beside each other.
func (f *flow) rates() {
	if !f.contended {
		return
	}
	for _, u := range f.units {
		u.rate = 1
		for j, other := range f.units {
			if u != other && u.running && other.running {
				u.rate /= u.slowed[j][u.class]
			}
		}
	}
}

// late reports whether somebody who is woken now comes late: the unit that has
// just finished something goes on with other work, or it has woken somebody else
// before, who has its thread.
func (f *flow) late() bool {
	if f.waker == nil {
		return false
	}
	late := f.woke || len(f.waker.queue) > 0
	f.woke = true
	return late
}

// submit makes the tasks of a block and queues those that can start.
func (f *flow) submit(b *block) {
	b.at = f.now
	b.s.leaveCompany(f)
	tasks := make([]*task, len(f.c.Chunks))
	last := b.s.last
	for i := range f.c.Chunks {
		x := &f.c.Chunks[i]
		computes := !x.WantedOnly || b.wanted > 0
		if !computes && len(f.copies[i]) == 0 {
			continue
		}
		t := &task{b: b, chunk: i}
		tasks[i] = t
		b.tasks++
		b.left++
		if computes {
			for _, src := range x.Takes {
				t.need(tasks[src.From])
			}
		}
		for _, src := range x.Reads {
			t.need(tasks[src.From])
		}
		t.need(last[i]) // its cache as the block before left it
		for _, j := range f.readers[i] {
			t.need(last[j]) // they read rows that this task may overwrite
		}
	}
	for i, t := range tasks {
		if t == nil {
			continue
		}
		last[i] = t
		if t.waits == 0 {
			f.enqueue(t)
		}
	}
}

func (t *task) need(earlier *task) {
	if earlier == nil || earlier.done || slices.Contains(earlier.next, t) {
		return
	}
	earlier.next = append(earlier.next, t)
	t.waits++
}

// A line is the tasks of one stream at one unit that could start: one is in the
// unit's queue or hands, and the others stand behind it.
type line struct {
	busy   bool
	behind []*task
}

// enqueue puts a task that can start into its stream's line.
func (f *flow) enqueue(t *task) {
	u := f.at[t.chunk]
	if l := &t.b.s.lines[u.place]; l.busy {
		l.behind = append(l.behind, t)
	} else {
		l.busy = true
		f.add(u, t)
	}
}

// add puts a task into a unit's queue.
func (f *flow) add(u *station, t *task) {
	u.queue = append(u.queue, t)
	f.rouse(u)
}

// rouse wakes a unit that waits.
func (f *flow) rouse(u *station) {
	if !u.idle {
		return
	}
	if u.lingering {
		u.lingering = false
		f.asleep = slices.DeleteFunc(f.asleep, func(x sleeper) bool { return x.who == actor(u) })
	}
	u.idle, u.woken = false, true
	x := f.c.Units[u.index]
	wake := x.Wake
	if f.now-u.since <= int64(x.Awake) {
		wake = x.WakeSoon
	}
	if f.waker != u && f.late() {
		wake += f.c.Late
	}
	if wake > 0 {
		f.sleep(u, int64(wake))
	} else {
		f.turns = append(f.turns, u)
	}
}

// leave takes a task that is done out of its stream's line.
func (f *flow) leave(t *task) {
	u := f.at[t.chunk]
	if l := &t.b.s.lines[u.place]; len(l.behind) > 0 {
		next := l.behind[0]
		l.behind = l.behind[1:]
		f.add(u, next)
	} else {
		l.busy = false
	}
	f.finish(t)
}

// finish frees what waited for a task.
func (f *flow) finish(t *task) {
	t.done = true
	for _, n := range t.next {
		if n.waits--; n.waits == 0 {
			f.enqueue(n)
		}
	}
	t.next = nil
	if t.b.left--; t.b.left == 0 && t.b.s.awaits == t.b {
		t.b.s.awaits = nil
		t.b.s.late = f.late()
		f.turns = append(f.turns, t.b.s)
	}
}
