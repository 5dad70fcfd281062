package engine

import "slices"

// A span is the positions of one stream whose rows a store has: those from
// from on, as far as the ring has not replaced them, and below upto. Positions
// below high may have been written.
type span struct {
	from, upto, high int
}

// has reports whether the rows of positions [first, last) are there.
func (x span) has(s *store, first, last int) bool {
	return first >= last || max(x.from, x.high-s.rows) <= first && last <= x.upto
}

// first is the first position that a token at pos sees.
func (s *store) first(pos int) int {
	if s.Window > 0 {
		return max(0, pos-s.Window+1)
	}
	return 0
}

// wrote notes that rows of positions [pos, pos+n) will be written to a store
// that has what a token at pos sees. e.mu is held.
func (s *Stream) wrote(x *store, pos, n int) {
	at := &s.held[x.id]
	at.upto = pos + n
	at.high = max(at.high, at.upto)
}

// A fetch moves rows of positions [pos, pos+n) of a stream from one store of a
// layer to another: a task reads them and another one writes them.
type fetch struct {
	from, to *store
	pos, n   int
	rows     rows
}

// fetch makes the tasks that bring a store the rows it lacks of those that the
// block sees. e.mu is held.
func (b *block) fetch(to *store) {
	first := to.first(b.pos)
	have := &b.s.held[to.id]
	if have.has(to, first, b.pos) {
		return
	}
	f := &fetch{to: to, pos: first}
	if have.upto > first && have.has(to, first, have.upto) {
		f.pos = have.upto
	} else {
		*have = span{from: first, high: b.pos} // whatever else was there is given up
	}
	f.n = b.pos - f.pos
	stores := b.e.layers[to.Layer]
	f.from = stores[slices.IndexFunc(stores, func(x *store) bool { // submit has seen that one has them
		return x != to && b.s.held[x.id].has(x, f.pos, b.pos)
	})]
	read, write := b.task(f.from.keeper), b.task(to.keeper)
	read.fetch, write.fetch = f, f
	read.touch(f.from.keeper, false)
	write.take(read, true)
	write.touch(to.keeper, true)
	b.tasks = append(b.tasks, read, write)
	have.upto, have.high = b.pos, max(have.high, b.pos)
}

// run does a task's half of a fetch.
func (f *fetch) run(t *task, r *Record) error {
	if t.c == f.from.keeper {
		return f.rows.read(t.b, f.from, f.pos, f.n, r)
	}
	err := f.rows.write(t.b, f.to, f.pos, f.n, r)
	f.rows = rows{} // it may be large, and the block is kept
	return err
}
