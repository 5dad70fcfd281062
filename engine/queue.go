package engine

import (
	"context"
	"slices"
	"time"

	"github.com/tandemrun/tandem/machine"
	"github.com/tandemrun/tandem/unit"
)

// queue is a unit's tasks whose dependencies are done, at most one a stream, in
// the order in which they became so or the stream's task before was done.
type queue struct {
	unit  unit.Unit
	index int
	ready []*task
	wake  gate // a task is ready, or the engine ends
	ended gate // for Close
	done  bool
	used  time.Time // up to when time is used up; see duty.go
}

// newQueue makes a unit's queue. In real time a unit that is bound to a thread is
// woken by that.
func newQueue(u unit.Unit, index int, real bool) *queue {
	q := &queue{unit: u, index: index, wake: newGate(), ended: newGate()}
	if _, ok := u.(unit.Binder); ok && real {
		q.wake.parker = &machine.Parker{}
	}
	return q
}

// A line is the ready tasks of one stream at one unit. If it is busy, one is in
// the unit's queue or hands; the others stand behind that and take no place in
// the queue, where tasks of other streams would have to wait for them.
type line struct {
	busy   bool
	behind []*task
}

// A task is one chunk's work for one block: at a stop of its route, or half of
// a fetch.
type task struct {
	id    int
	b     *block
	c     *chunk
	at    *stop // nil for a fetch
	fetch *fetch
	waits int     // dependencies that are not done
	next  []*task // tasks that wait for this one
	done  bool
	// For an observer: when it was queued, the task it waited for last, and those
	// on other units whose rows it takes.
	ready time.Time
	after int
	from  []int
}

// need makes t wait for earlier, unless that is done. e.mu is held.
func (t *task) need(earlier *task) {
	if earlier == nil || earlier.done || earlier == t || slices.Contains(earlier.next, t) {
		return
	}
	earlier.next = append(earlier.next, t)
	t.waits++
}

// take makes t wait for a task whose rows it takes. e.mu is held.
func (t *task) take(from *task, away bool) {
	t.need(from)
	if away && t.b.e.cfg.Observe != nil {
		t.from = appendNew(t.from, from.id)
	}
}

// uses are the tasks of one stream that use what a chunk keeps, those before
// the last one that writes there left out.
type uses struct {
	writer  *task
	readers []*task
}

// touch makes t wait for those that use what a chunk keeps in a way that its
// own use must not meet. e.mu is held.
func (t *task) touch(c *chunk, write bool) {
	u := &t.b.s.uses[c.id]
	t.need(u.writer)
	if !write {
		u.readers = appendNew(u.readers, t)
		return
	}
	for _, r := range u.readers {
		t.need(r)
	}
	u.writer, u.readers = t, u.readers[:0]
}

// enqueue puts a task whose dependencies are done into its stream's line. If
// the stream has been stopped, the task and those that need it are dropped.
// e.mu is held.
func (t *task) enqueue() {
	e := t.b.e
	if err := t.b.stopped(e); err != nil {
		e.finish(t, err)
		return
	}
	if e.cfg.Observe != nil {
		t.ready = e.clock.Now()
	}
	if l := t.line(); l.busy {
		l.behind = append(l.behind, t)
	} else {
		l.busy = true
		t.c.q.add(t)
	}
}

func (t *task) line() *line { return &t.b.s.lines[t.c.q.index] }

func (q *queue) add(t *task) {
	q.ready = append(q.ready, t)
	t.b.e.open(&q.wake)
}

// leave takes a task that has left its unit's queue out of its stream's line
// and marks it as done. e.mu is held.
func (e *Engine) leave(t *task, err error) {
	if l := t.line(); len(l.behind) > 0 {
		next := l.behind[0]
		l.behind = slices.Delete(l.behind, 0, 1)
		t.c.q.add(next)
	} else {
		l.busy = false
	}
	e.finish(t, err)
}

// drop takes the tasks of streams that have been stopped out of a queue: their
// calls wait for no more than the task in the unit's hands. e.mu is held.
func (e *Engine) drop(q *queue) {
	for i := 0; i < len(q.ready); {
		t := q.ready[i]
		err := t.b.stopped(e)
		if err == nil {
			i++
			continue
		}
		q.ready = slices.Delete(q.ready, i, i+1)
		e.leave(t, err) // may add the stream's next one at the end
	}
}

// serve works off a unit's queue until the engine is closed and no stream's
// call is left.
func (e *Engine) serve(q *queue) {
	if u, ok := q.unit.(unit.Binder); ok {
		u.Bind()
	}
	var batch []*task
	var job unit.Task
	e.mu.Lock()
	defer e.mu.Unlock()
	for {
		for e.drop(q); len(q.ready) == 0; e.drop(q) {
			if e.closed && e.flying == 0 {
				q.done = true
				e.open(&q.ended)
				return
			}
			_ = e.wait(context.Background(), &q.wake) // this context never ends
		}
		if e.resting(q) || e.lingers(q) {
			continue
		}
		batch = e.pick(q, batch[:0])
		e.mu.Unlock()
		r, err := e.run(q, batch, &job)
		e.tire(q, r)
		e.mu.Lock()
		for _, t := range batch {
			if err == nil {
				t.b.records = append(t.b.records, r)
			}
			e.leave(t, err)
		}
		e.gather(batch, r.End)
	}
}

// await waits until a block's tasks are done.
func (e *Engine) await(b *block) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for b.left > 0 {
		_ = e.wait(context.Background(), &b.finished) // a task that has begun is not interrupted
	}
}

// wakeAll wakes all units. e.mu is held.
func (e *Engine) wakeAll() {
	for _, q := range e.queues {
		e.open(&q.wake)
	}
}

// next is the index of the task to run next. That is the first, but of decode
// tasks that may be merged the one of the earliest chunk: a stream that is behind
// catches up with those ahead, and they go on as one. Streams that a race had
// parted would follow each other for ever otherwise. A task is overtaken once by
// each stream at most, since it is merged with it then.
//
// Of decode tasks that are kept apart it is the one of the latest chunk, if there
// are no more streams than units: what is ahead gets to the next unit while that
// has nothing to do, and two streams that began together part. First come, first
// served would let them follow each other through all units, one of which idles. A
// task is overtaken at most by what is left of each other stream's step. With more
// streams than units all have work anyway, and a chunk's weights may still be in a
// cache for the next stream. e.mu is held.
func (e *Engine) next(q *queue) int {
	first := q.ready[0]
	apart := first.apart() && e.cfg.Slots-len(e.free) <= len(e.queues)
	best := 0
	for i, t := range q.ready {
		switch chunk := q.ready[best].c.index; {
		case first.joins():
			if t.joins() && t.c.index < chunk {
				best = i
			}
		case apart:
			if t.apart() && t.c.index > chunk {
				best = i
			}
		}
	}
	return best
}

// apart reports whether a task is of a decode step and is not merged with those of
// other streams.
func (t *task) apart() bool { return t.fetch == nil && len(t.b.tokens) == 1 && t.c.merge == 1 }

// joins reports whether a task is of a decode step and may be merged with those
// of other streams.
func (t *task) joins() bool { return t.fetch == nil && len(t.b.tokens) == 1 && t.c.merge > 1 }

// pick takes the next task of the queue and those of other streams for the same
// chunk that fit beside it. e.mu is held.
func (e *Engine) pick(q *queue, batch []*task) []*task {
	if i := e.next(q); i > 0 {
		first := q.ready[i]
		copy(q.ready[1:], q.ready[:i])
		q.ready[0] = first
	}
	first := q.ready[0]
	batch = append(batch, first)
	alone := first.fetch != nil
	rows, wanted := len(first.b.tokens), len(first.b.wanted)
	rest := q.ready[:0]
	for _, t := range q.ready[1:] {
		n, w := len(t.b.tokens), len(t.b.wanted)
		if alone || t.fetch != nil || t.c != first.c || len(batch) >= first.c.merge || rows+n > e.cfg.Block || wanted+w > e.wanted {
			rest = append(rest, t)
			continue
		}
		batch = append(batch, t)
		rows, wanted = rows+n, wanted+w
	}
	clear(q.ready[len(rest):])
	q.ready = rest
	return batch
}

// run runs a batch of tasks of one chunk.
func (e *Engine) run(q *queue, batch []*task, job *unit.Task) (Record, error) {
	c := batch[0].c
	r := Record{Chunk: c.index, Unit: q.index, Streams: len(batch), Pos: batch[0].b.pos, Start: e.clock.Now()}
	var err error
	if f := batch[0].fetch; f != nil {
		err = f.run(batch[0], &r)
	} else {
		err = e.compute(c, batch, job, &r)
	}
	if err != nil {
		return r, err
	}
	r.End = e.clock.Now()
	if e.cfg.Observe != nil {
		for _, t := range batch {
			r.Parts = append(r.Parts, t.record())
		}
		e.cfg.Observe(r)
	}
	return r, nil
}

// compute runs a batch of tasks that are no fetches.
func (e *Engine) compute(c *chunk, batch []*task, job *unit.Task, r *Record) error {
	*job = unit.Task{Parts: job.Parts[:0]}
	for _, t := range batch {
		if err := t.b.receive(t.at, r); err != nil {
			return err
		}
		if c.idle && len(t.b.wanted) == 0 {
			continue // the block brought cache rows and nothing to compute
		}
		job.Parts = append(job.Parts, t.b.part(t.at))
		r.Rows += len(t.b.tokens)
		r.Wanted += len(t.b.wanted)
	}
	if len(job.Parts) > 0 {
		// A task that has begun is not interrupted: its context is the batch's.
		if err := c.c.Run(context.Background(), job); err != nil {
			return err
		}
		r.CopyTime += job.Handoff + job.Given
		r.CopyOutTime += job.Given
		r.Device = job.Device
	}
	for _, t := range batch {
		if err := t.b.export(t.at, r); err != nil {
			return err
		}
	}
	return nil
}

// record is the task as a part of a record.
func (t *task) record() RecordPart {
	b := t.b
	p := RecordPart{
		Stream: b.s.id, Slot: b.s.slot, Block: b.seq, Pos: b.pos, Rows: len(b.tokens), Wanted: len(b.wanted),
		Submitted: b.submitted, Ready: t.ready, Task: t.id, After: t.after, From: t.from,
	}
	if t.fetch != nil {
		p.Moved = t.fetch.n
	}
	return p
}

// finish marks a task as done and lets those go on that waited for it. e.mu is
// held.
func (e *Engine) finish(t *task, err error) {
	t.done = true
	if err != nil && t.b.err == nil {
		t.b.err = err
	}
	for _, n := range t.next {
		if n.waits--; n.waits == 0 {
			n.after = t.id
			n.enqueue()
		}
	}
	t.next = nil
	if t.b.left--; t.b.left > 0 {
		return
	}
	if t.b.step {
		t.b.s.noteStep()
	}
	e.open(&t.b.finished)
	if e.flying--; e.flying == 0 && e.closed {
		e.wakeAll()
	}
}
