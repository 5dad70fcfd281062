package cpu

import (
	"fmt"
	"math"
	"sync/atomic"

	"github.com/tandemrun/tandem/program"
	"github.com/tandemrun/tandem/quant"
)

// compile turns the program's operations into steps.
func (c *Chunk) compile() error {
	c.run.bufs = make([][]float32, len(c.p.Buffers))
	c.run.own = make([][]float32, len(c.p.Buffers))
	var steps []step
	for i, port := range c.p.Inputs {
		steps = append(steps, c.receive(i, port))
	}
	prepared := map[int]bool{} // inputs whose values are those of their view now
	for _, op := range c.p.Ops {
		switch op := op.(type) {
		case program.MatMul:
			i := c.input(op.In)
			if c.matrices[op.W.Name].WantsInt8() && !prepared[i] {
				steps = append(steps, c.quantize(i))
				prepared[i] = true
			}
			steps = append(steps, c.matmul(op, i))
		case program.Rope:
			t, fresh := c.ropeTable(op)
			if fresh {
				steps = append(steps, c.fillRope(t))
			}
			steps = append(steps, c.rope(op, t))
		default:
			s, ok := c.step(op)
			if !ok {
				return fmt.Errorf("unit %s: operation %s is unknown to this unit", c.unit.Name(), op.Name())
			}
			steps = append(steps, s)
		}
		for i, in := range c.inputs {
			if overlap(steps[len(steps)-1].writes, views(in.view)) {
				prepared[i] = false
			}
		}
	}
	for i, port := range c.p.Outputs {
		steps = append(steps, c.send(i, port))
	}
	if c.p.Logits >= 0 {
		steps = append(steps, c.sendLogits())
	}
	for range c.unit.cfg.Threads {
		c.rooms = append(c.rooms, newAttentionRoom(c.o.Context))
	}
	place(steps)
	aim(steps)
	c.steps, c.idle = steps, make([]idle, c.unit.cfg.Threads)
	c.work = c.steady
	if c.o.TimeOps {
		c.work = c.timed
	}
	return nil
}

func (c *Chunk) class(v program.View) program.Rows { return c.p.Buffers[v.Buf].Rows }

// eachRow makes a step that calls f for each row of v's class, divided by row.
func (c *Chunk) eachRow(name string, v program.View, f func(r *run, i int)) step {
	rows := c.class(v)
	return step{name: name, split: byRow, rows: rows, do: func(r *run, w int) {
		lo, hi := share(len(r.rows[rows]), 1, w, c.unit.pool.n)
		for i := lo; i < hi; i++ {
			f(r, i)
		}
	}}
}

// eachPiece makes a step that works value by value: divided by row when there
// are enough rows, and by column otherwise.
func (c *Chunk) eachPiece(name string, v program.View, f func(r *run, i, lo, hi int)) step {
	rows := c.class(v)
	return step{name: name, split: byItem, rows: rows, do: func(r *run, w int) {
		n, workers := len(r.rows[rows]), c.unit.pool.n
		if n >= workers {
			lo, hi := share(n, 1, w, workers)
			for i := lo; i < hi; i++ {
				f(r, i, 0, v.Width)
			}
			return
		}
		lo, hi := share(v.Width, 64, w, workers)
		for i := range n {
			f(r, i, lo, hi)
		}
	}}
}

func (s step) touching(reads, writes []program.View) step {
	s.reads, s.writes = reads, writes
	return s
}

// step compiles the operations that need nothing prepared.
func (c *Chunk) step(op program.Op) (s step, ok bool) {
	k, p := c.unit.set, c.p
	switch op := op.(type) {
	case program.Embed:
		c.vocab = min(c.vocab, op.Table.Rows)
		block, size := op.Table.Type.BlockSize(), op.Table.Type.BlockBytes()
		rowBytes := len(op.Table.Data) / op.Table.Rows
		lo, n := op.Col/block*size, op.Out.Width/block*size
		return c.eachRow(op.Name(), op.Out, func(r *run, i int) {
			out := r.row(p, op.Out, i)
			at := r.rows[c.class(op.Out)][i].token*rowBytes + lo
			// The lengths were checked when the program was validated.
			_ = quant.Type.Dequantize(op.Table.Type, out, op.Table.Data[at:at+n])
			k.Scale(out, out, op.Scale)
		}).touching(nil, views(op.Out)), true
	case program.RMSNorm:
		return c.eachRow(op.Name(), op.In, func(r *run, i int) {
			in, out := r.row(p, op.In, i), r.row(p, op.Out, i)
			for g := 0; g < len(in); g += op.Group {
				k.RMSNorm(out[g:g+op.Group], in[g:g+op.Group], op.Weight, op.Eps)
			}
		}).touching(views(op.In), views(op.Out)), true
	case program.Store:
		x := c.caches[op.Cache]
		return c.eachRow(op.Name(), op.K, func(r *run, i int) {
			at := r.rows[program.All][i]
			x.store(k, at.slot, at.pos, r.row(p, op.K, i), r.row(p, op.V, i))
		}).touching(views(op.K, op.V), views(wholeCache(x.Layer))), true
	case program.Attention:
		return c.attention(op), true
	case program.Gated:
		gated := k.GeluMul
		if op.Act == program.SiLU {
			gated = k.SiluMul
		}
		return c.eachPiece(op.Name(), op.Out, func(r *run, i, lo, hi int) {
			gated(r.row(p, op.Out, i)[lo:hi], r.row(p, op.Gate, i)[lo:hi], r.row(p, op.Up, i)[lo:hi])
		}).touching(views(op.Gate, op.Up), views(op.Out)), true
	case program.Add:
		return c.eachRow(op.Name(), op.Out, func(r *run, i int) {
			k.Add(r.row(p, op.Out, i), r.row(p, op.A, i), r.row(p, op.B, i))
		}).touching(views(op.A, op.B), views(op.Out)), true
	case program.Scale:
		return c.eachRow(op.Name(), op.X, func(r *run, i int) {
			x := r.row(p, op.X, i)
			k.Scale(x, x, op.Factor)
		}).touching(views(op.X), views(op.X)), true
	case program.Softcap:
		return c.eachPiece(op.Name(), op.X, func(r *run, i, lo, hi int) {
			k.Softcap(r.row(p, op.X, i)[lo:hi], op.Cap)
		}).touching(views(op.X), views(op.X)), true
	case program.Narrow:
		return c.eachRow(op.Name(), op.Out, func(r *run, i int) {
			// Rows of all parts follow each other in both classes.
			from := r.first(r.rows[program.Wanted][i].part) + r.rows[program.Wanted][i].at
			copy(r.row(p, op.Out, i), r.row(p, op.In, from))
		}).touching(views(op.In), views(op.Out)), true
	}
	return step{}, false
}

// first is the row at which a part's rows begin.
func (r *run) first(part int) int {
	n := 0
	for i := range part {
		n += len(r.task.Parts[i].Tokens)
	}
	return n
}

// attentionTile is how many queries the kernels take over the same cache rows
// at once: what they can hold in registers. positionTile is how many positions
// of a prompt, whose rows come from memory once then.
const (
	attentionTile = 4
	positionTile  = 16
)

// attention divides the work into tiles: neighbouring positions of a prompt, or
// heads of a group where there are too few of them.
func (c *Chunk) attention(op program.Attention) step {
	x, k := c.caches[op.Cache], c.unit.set
	rows, group := c.class(op.Q), op.Heads/c.p.Caches[op.Cache].KVHeads
	qw, ow := c.p.Buffers[op.Q.Buf].Width, c.p.Buffers[op.Out.Buf].Width
	query := func(r *run, w, i, head int, t tile) {
		at := r.rows[rows][i]
		t.slot, t.pos, t.head = at.slot, at.pos, head/group
		t.q = r.bufs[op.Q.Buf][i*qw+op.Q.Col+head*x.KeyDim:]
		t.out = r.bufs[op.Out.Buf][i*ow+op.Out.Col+head*x.ValueDim:]
		x.attend(k, &t, c.rooms[w], op.Scale)
	}
	heads := func(r *run, w int) {
		tiles := (group + attentionTile - 1) / attentionTile // of a group
		perRow := op.Heads / group * tiles
		// Later positions see more rows, so the workers take turns.
		for i := w; i < len(r.rows[rows])*perRow; i += c.unit.pool.n {
			kv, t := i%perRow/tiles, i%tiles
			query(r, w, i/perRow, kv*group+t*attentionTile, tile{n: min(attentionTile, group-t*attentionTile), qstride: x.KeyDim, ostride: x.ValueDim})
		}
	}
	positions := func(r *run, w int) {
		all := r.rows[rows]
		tiles := (len(all) + positionTile - 1) / positionTile
		for i := w; i < tiles*op.Heads; i += c.unit.pool.n {
			for lo, hi := i/op.Heads*positionTile, min(len(all), (i/op.Heads+1)*positionTile); lo < hi; {
				n := 1
				for lo+n < hi && all[lo+n].part == all[lo].part && all[lo+n].pos == all[lo].pos+n {
					n++
				}
				query(r, w, lo, i%op.Heads, tile{n: n, step: 1, qstride: qw, ostride: ow})
				lo += n
			}
		}
	}
	few := positionTile - 1 // rows of a part for which heads are as good
	if group < attentionTile {
		few = 1
	}
	s := step{name: op.Name(), split: byItem, rows: rows, do: func(r *run, w int) {
		if len(r.rows[rows]) > few*len(r.task.Parts) {
			positions(r, w)
		} else {
			heads(r, w)
		}
	}}
	s.cost = func(r *run) (bytes, ops int64) {
		for _, at := range r.rows[rows] {
			seen := at.pos + 1
			if x.Window > 0 {
				seen = min(seen, x.Window)
			}
			bytes += x.kv.Size(seen * (x.kw + x.vw))
			ops += 2 * int64(op.Heads) * int64(seen) * int64(x.KeyDim+x.ValueDim)
		}
		return bytes, ops
	}
	return s.touching(views(op.Q, wholeCache(x.Layer)), views(op.Out))
}

// input returns the index of the input for a view.
func (c *Chunk) input(v program.View) int {
	for i, in := range c.inputs {
		if in.view == v {
			return i
		}
	}
	c.inputs = append(c.inputs, &input{view: v, cols: v.Width})
	return len(c.inputs) - 1
}

// inputView stands for the quantised form of an input in hazards.
func inputView(i int) program.View { return program.View{Buf: inputBuf, Col: i, Width: 1} }

func (c *Chunk) quantize(i int) step {
	in, rows := c.inputs[i], c.class(c.inputs[i].view)
	s := step{name: "quantize", split: byRow, rows: rows, do: func(r *run, w int) {
		if lo, hi := share(len(r.rows[rows]), 1, w, c.unit.pool.n); lo < hi {
			c.unit.set.QuantizeInput(in.in, lo, hi)
		}
	}}
	return s.touching(views(in.view), views(inputView(i)))
}

// matmulPiece is how many bytes of weights a worker takes at a time: its own run
// stays one stream of memory (pieces from one counter for all broke the
// prefetchers and cost 35 % on a two-core Zen 4), and the last piece is not
// waited for long.
const matmulPiece = 64 << 10

// matmul divides the outputs into one run for each worker, which it works off
// in order; who is done helps the others with what they have not begun.
func (c *Chunk) matmul(op program.MatMul, i int) step {
	m, in, k := c.matrices[op.W.Name], c.inputs[i], c.unit.set
	rows, width, workers := c.class(op.Out), c.p.Buffers[op.Out.Buf].Width, c.unit.pool.n
	align := m.Align()
	piece := max(1, int(matmulPiece*int64(m.Rows)/max(m.Bytes(), 1))/align) * align
	taken := make([]counter, workers) // pieces of each worker's run
	c.counters = append(c.counters, taken)
	heads := make([][]byte, workers)
	for w := range heads {
		begin, _ := share(op.W.Rows, align, w, workers)
		heads[w] = m.Head(begin, matmulPiece)
	}
	s := step{name: op.Name(), split: byItem, rows: rows, heads: heads, do: func(r *run, w int) {
		out := r.bufs[op.Out.Buf][op.Out.Col:]
		for turn := range workers {
			victim := (w + turn) % workers
			begin, end := share(op.W.Rows, align, victim, workers)
			for {
				lo := begin + (int(taken[victim].n.Add(1))-1)*piece
				if lo >= end {
					break
				}
				hi := min(lo+piece, end)
				k.Mul(out, width, m, in.in, lo, hi)
				if op.Bias != nil {
					for j := range r.rows[rows] {
						y := out[j*width+lo : j*width+hi]
						k.Add(y, y, op.Bias[lo:hi])
					}
				}
			}
		}
	}}
	s.cost = func(r *run) (bytes, ops int64) {
		return m.Bytes(), 2 * int64(m.Rows) * int64(m.Cols) * int64(len(r.rows[rows]))
	}
	return s.touching(views(op.In, inputView(i)), views(op.Out))
}

// counter is alone on its cache line.
type counter struct {
	n atomic.Int32
	_ [60]byte
}

// ropeTable returns the table for an operation's frequencies and rows, and
// whether it is new.
func (c *Chunk) ropeTable(op program.Rope) (i int, fresh bool) {
	rows := c.class(op.X)
	for i, t := range c.ropes {
		if t.same(op, rows) {
			return i, false
		}
	}
	c.ropes = append(c.ropes, &ropeTable{op: op, rows: rows})
	return len(c.ropes) - 1, true
}

func ropeView(i int) program.View { return program.View{Buf: ropeBuf, Col: i, Width: 1} }

func (c *Chunk) fillRope(i int) step {
	t := c.ropes[i]
	s := c.eachRow("rope table", t.op.X, func(r *run, i int) {
		pos, n := float64(r.rows[t.rows][i].pos), len(t.op.Freqs)
		for j, freq := range t.op.Freqs {
			sin, cos := math.Sincos(pos * freq)
			t.cos[i*n+j], t.sin[i*n+j] = float32(cos)*t.op.Magnitude, float32(sin)*t.op.Magnitude
		}
	})
	return s.touching(nil, views(ropeView(i)))
}

func (c *Chunk) rope(op program.Rope, table int) step {
	t, k, p := c.ropes[table], c.unit.set, c.p
	n := len(op.Freqs)
	s := c.eachRow(op.Name(), op.X, func(r *run, i int) {
		x := r.row(p, op.X, i)
		for h := 0; h < len(x); h += op.HeadDim {
			k.Rope(x[h:h+op.HeadDim], t.cos[i*n:(i+1)*n], t.sin[i*n:(i+1)*n], op.Interleaved)
		}
	})
	return s.touching(views(op.X, ropeView(table)), views(op.X))
}

func (c *Chunk) receive(port int, in program.Port) step {
	s := c.eachRow("handoff", in.View, func(r *run, i int) {
		at := r.rows[in.Rows][i]
		copy(r.row(c.p, in.View, i), r.task.Parts[at.part].In[port].Row(at.out, in.View.Width))
	})
	return s.touching(nil, views(in.View))
}

func (c *Chunk) send(port int, out program.Port) step {
	s := c.eachRow("handoff", out.View, func(r *run, i int) {
		at := r.rows[out.Rows][i]
		copy(r.task.Parts[at.part].Out[port].Row(at.out, out.View.Width), r.row(c.p, out.View, i))
	})
	return s.touching(views(out.View), nil)
}

// sendLogits copies the logits to the parts, unless they were computed there.
func (c *Chunk) sendLogits() step {
	v := program.View{Buf: c.p.Logits, Width: c.p.Buffers[c.p.Logits].Width}
	s := c.eachRow("handoff", v, func(r *run, i int) {
		at := r.rows[program.Wanted][i]
		src, dst := r.row(c.p, v, i), r.task.Parts[at.part].Logits[at.out*v.Width:]
		if &src[0] != &dst[0] {
			copy(dst, src)
		}
	})
	return s.touching(views(v), nil)
}
