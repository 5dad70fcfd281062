package gpu

import (
	"encoding/binary"
	"fmt"

	"github.com/tandemrun/tandem/program"
	"github.com/tandemrun/tandem/unit"
)

// maxTilings is how many different tilings a program's attention may need.
const maxTilings = 8

// A shape is what a list of dispatches depends on, beside the plan.
type shape struct {
	rows, wanted int
	tiles        [maxTilings]int
}

// A run is what the device computes at once: rows of some parts of a task.
type run []span

// A span is rows [lo, hi) of a part; from is how many of its wanted rows come
// before, and wanted those in it.
type span struct {
	part   *unit.Part
	lo, hi int
	from   int
	wanted []int
}

// cut checks a task and cuts it into runs of at most x.rows rows, x.wanted of
// them wanted. Runs of a part follow each other.
func (x *plan) cut(t *unit.Task) ([]run, error) {
	var out []run
	var now run
	rows, wanted := 0, 0
	for i := range t.Parts {
		p := &t.Parts[i]
		if err := x.check(p); err != nil {
			return nil, err
		}
		for lo, from := 0, 0; lo < len(p.Tokens); {
			if rows == x.rows {
				out, now, rows, wanted = append(out, now), nil, 0, 0
			}
			hi := min(len(p.Tokens), lo+x.rows-rows)
			n := from
			for n < len(p.Wanted) && p.Wanted[n] < hi {
				if wanted+n-from == x.wanted {
					hi = p.Wanted[n] // the next run begins with this row
					break
				}
				n++
			}
			if hi > lo {
				now = append(now, span{p, lo, hi, from, p.Wanted[from:n]})
				rows, wanted = rows+hi-lo, wanted+n-from
			}
			if hi < len(p.Tokens) {
				out, now, rows, wanted = append(out, now), nil, 0, 0
			}
			lo, from = hi, n
		}
	}
	if len(now) > 0 {
		out = append(out, now)
	}
	return out, nil
}

// check checks a part before anything is done.
func (x *plan) check(p *unit.Part) error {
	n := len(p.Tokens)
	if p.Slot < 0 || p.Slot >= x.o.Slots || p.Pos < 0 || p.Pos+n > x.o.Context || n > x.o.Block {
		return fmt.Errorf("a part of %d tokens at position %d in slot %d: the chunk has %d slots of %d positions and blocks of %d", n, p.Pos, p.Slot, x.o.Slots, x.o.Context, x.o.Block)
	}
	if len(p.In) != len(x.p.Inputs) || len(p.Out) != len(x.p.Outputs) {
		return fmt.Errorf("a part with %d inputs and %d outputs: the chunk has %d and %d", len(p.In), len(p.Out), len(x.p.Inputs), len(x.p.Outputs))
	}
	for _, token := range p.Tokens {
		if token < 0 || int(token) >= x.vocab {
			return fmt.Errorf("token %d is not in the vocabulary of %d", token, x.vocab)
		}
	}
	for i, at := range p.Wanted {
		if at < 0 || at >= n || i > 0 && at <= p.Wanted[i-1] {
			return fmt.Errorf("row %d of a block of %d is wanted", at, n)
		}
	}
	return nil
}

// each calls f for each row of a class: its number in the run, the span it is
// of, its number in the part and its number in the part's rows of that class.
func (r run) each(class program.Rows, f func(i int, s *span, at, out int)) {
	i := 0
	for k := range r {
		s := &r[k]
		if class == program.Wanted {
			for n, at := range s.wanted {
				f(i, s, at, s.from+n)
				i++
			}
			continue
		}
		for at := s.lo; at < s.hi; at++ {
			f(i, s, at, at)
			i++
		}
	}
}

// fill writes a run's rows, inputs and table rows into up, and returns the
// run's shape.
func (x *plan) fill(r run) shape {
	up := x.up.Bytes()
	var s shape
	before := make(map[*span]int, len(r)) // rows of the run before a span
	for _, class := range []program.Rows{program.All, program.Wanted} {
		sec := up[x.rowsAt[class].at:]
		n := 0
		r.each(class, func(i int, sp *span, at, _ int) {
			if _, ok := before[sp]; !ok && class == program.All {
				before[sp] = i
			}
			index := before[sp] + at - sp.lo
			for k, v := range [4]int{int(sp.part.Tokens[at]), sp.part.Pos + at, sp.part.Slot, index} {
				binary.LittleEndian.PutUint32(sec[16*i+4*k:], uint32(v))
			}
			n++
		})
		if class == program.Wanted {
			s.wanted = n
		} else {
			s.rows = n
		}
	}
	for k, t := range x.tilings {
		s.tiles[k] = r.tile(t, up[t.sec.at:])
	}
	for _, t := range x.tables {
		sec, rowBytes := up[t.sec.at:], len(t.op.Table.Data)/t.op.Table.Rows
		r.each(t.rows, func(i int, sp *span, at, _ int) {
			from := int(sp.part.Tokens[at])*rowBytes + t.lo
			copy(sec[i*t.sec.stride:], t.op.Table.Data[from:from+t.n])
		})
	}
	for k, in := range x.p.Inputs {
		sec := floats(up[x.inputs[k].at:][:x.inputs[k].size])
		r.each(in.Rows, func(i int, sp *span, _, out int) {
			copy(sec[i*in.View.Width:], sp.part.In[k].Row(out, in.View.Width))
		})
	}
	return s
}

// tile writes the tiles of a run, first row and number of rows, and returns how
// many there are. Rows of a tile are of one slot and in ascending order.
func (r run) tile(t tiling, to []byte) int {
	tiles, size := 0, 0
	var last *span
	r.each(t.rows, func(i int, s *span, _, _ int) {
		if s != last || size == t.size {
			binary.LittleEndian.PutUint32(to[8*tiles:], uint32(i))
			last, size, tiles = s, 0, tiles+1
		}
		size++
		binary.LittleEndian.PutUint32(to[8*tiles-4:], uint32(size))
	})
	return tiles
}

// take copies a run's outputs and logits out of down.
func (x *plan) take(r run) {
	down := x.down.Bytes()
	for k, out := range x.p.Outputs {
		sec := floats(down[x.outputs[k].at:][:x.outputs[k].size])
		r.each(out.Rows, func(i int, s *span, _, row int) {
			copy(s.part.Out[k].Row(row, out.View.Width), sec[i*out.View.Width:])
		})
	}
	if x.p.Logits < 0 {
		return
	}
	width := x.p.Buffers[x.p.Logits].Width
	sec := floats(down[x.logits.at:][:x.logits.size])
	r.each(program.Wanted, func(i int, s *span, _, row int) {
		copy(s.part.Logits[row*width:(row+1)*width], sec[i*width:])
	})
}
