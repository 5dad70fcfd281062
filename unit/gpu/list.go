package gpu

import (
	"math"

	"github.com/tandemrun/tandem/program"
	"github.com/tandemrun/tandem/unit"
	"github.com/tandemrun/tandem/unit/gpu/compute"
	"github.com/tandemrun/tandem/unit/gpu/shader"
)

// A lister writes the dispatches of one shape.
type lister struct {
	*plan
	shape shape
	list  []compute.Dispatch
	// What dispatches since the last barrier read and wrote.
	reads, writes []program.View
}

// list is the dispatches of a run of a shape.
func (x *plan) list(s shape) []compute.Dispatch {
	l := &lister{plan: x, shape: s}
	for i, in := range x.p.Inputs {
		l.copyRows("handoff", in.Rows, l.section(x.up, x.inputs[i]), l.view(in.View), in.View.Width, nil, views(in.View))
	}
	for _, op := range x.p.Ops {
		l.op(op)
	}
	for i, out := range x.p.Outputs {
		l.copyRows("handoff", out.Rows, l.view(out.View), l.section(x.down, x.outputs[i]), out.View.Width, views(out.View), nil)
	}
	if x.p.Logits >= 0 {
		v := program.View{Buf: x.p.Logits, Width: x.p.Buffers[x.p.Logits].Width}
		l.copyRows("handoff", program.Wanted, l.view(v), l.section(x.down, x.logits), v.Width, views(v), nil)
	}
	return l.list
}

// Values of map.comp's constant.
const (
	mapAdd = iota
	mapScale
	mapSoftcap
	mapCopy
	mapNarrow
	mapGELU
	mapSiLU
)

// none stands for a vector that is not there.
const none = ^uint32(0)

func (l *lister) op(op program.Op) {
	switch op := op.(type) {
	case program.Embed:
		l.embed(op)
	case program.MatMul:
		l.matmul(op)
	case program.RMSNorm:
		l.rmsnorm(op)
	case program.Rope:
		l.rope(op)
	case program.Store:
		l.store(op)
	case program.Attention:
		l.attention(op)
	case program.Gated:
		kind := uint32(mapGELU)
		if op.Act == program.SiLU {
			kind = mapSiLU
		}
		l.mapped(op, kind, op.Gate, op.Up, op.Out, 0)
	case program.Add:
		l.mapped(op, mapAdd, op.A, op.B, op.Out, 0)
	case program.Scale:
		l.mapped(op, mapScale, op.X, op.X, op.X, op.Factor)
	case program.Softcap:
		l.mapped(op, mapSoftcap, op.X, op.X, op.X, op.Cap)
	case program.Narrow:
		l.mapped(op, mapNarrow, op.In, op.In, op.Out, 0)
	}
}

// at is where a view's values are: the column and the rows' distance, in floats.
type at struct {
	bind        compute.Binding
	col, stride int
}

func (l *lister) view(v program.View) at {
	m := l.bufs[v.Buf]
	return at{m.bind, v.Col, m.stride}
}

func (l *lister) section(b compute.Buffer, s section) at {
	return at{compute.Binding{Buffer: b, Offset: s.at, Size: max(s.size, 16)}, 0, s.stride / 4}
}

func (l *lister) count(r program.Rows) int {
	if r == program.Wanted {
		return l.shape.wanted
	}
	return l.shape.rows
}

func (l *lister) rowTable(r program.Rows) compute.Binding {
	return l.section(l.up, l.rowsAt[r]).bind
}

func (l *lister) vectorBinding() compute.Binding {
	return compute.Binding{Buffer: l.vectors, Size: l.vectors.Size()}
}

// add appends a dispatch over x workgroups for each of y rows or tiles, with a
// barrier where it touches what an earlier one since the last barrier wrote, or
// writes what it read.
func (l *lister) add(d compute.Dispatch, x, y int, reads, writes []program.View) {
	d.Groups = [3]int{x, y, 1}
	if overlap(l.writes, reads) || overlap(l.writes, writes) || overlap(l.reads, writes) {
		d.Barrier = true
		l.reads, l.writes = nil, nil
	}
	l.reads, l.writes = append(l.reads, reads...), append(l.writes, writes...)
	l.list = append(l.list, d)
}

func overlap(a, b []program.View) bool {
	for _, x := range a {
		for _, y := range b {
			if x.Buf == y.Buf && x.Col < y.Col+y.Width && y.Col < x.Col+x.Width {
				return true
			}
		}
	}
	return false
}

// views is shorthand for a list of views.
func views(v ...program.View) []program.View { return v }

// What is no buffer of the program, in the search for barriers.
const (
	cacheBuf   = -1 // its columns are the layers
	scratchBuf = -2
)

// wholeCache stands for the cache of a layer.
func wholeCache(layer int) program.View { return program.View{Buf: cacheBuf, Col: layer, Width: 1} }

// groups is the number of workgroups that hold n invocations.
func groups(n int) int { return (n + shader.Invocations - 1) / shader.Invocations }

func variant(kernel string, constants ...uint32) compute.Variant {
	v := compute.Variant{Kernel: kernel}
	copy(v.Constants[:], constants)
	return v
}

// push makes push constants of integers and floats.
func push(values ...any) []uint32 {
	out := make([]uint32, len(values))
	for i, v := range values {
		switch v := v.(type) {
		case int:
			out[i] = uint32(v)
		case uint32:
			out[i] = v
		case float32:
			out[i] = math.Float32bits(v)
		}
	}
	return out
}

func (l *lister) mapped(op program.Op, kind uint32, a, b, out program.View, factor float32) {
	rows := l.class(out)
	n := l.count(rows)
	if n == 0 {
		return
	}
	x, y, z := l.view(a), l.view(b), l.view(out)
	l.add(compute.Dispatch{
		Variant: variant("map", kind), Op: op.Name(), Rows: rows.String(),
		Bind: []compute.Binding{x.bind, y.bind, z.bind, l.rowTable(rows)},
		Push: push(out.Width, x.col, x.stride, y.col, y.stride, z.col, z.stride, factor),
	}, groups(out.Width), n, views(a, b), views(out))
}

// copyRows copies width columns of all rows of a class.
func (l *lister) copyRows(name string, rows program.Rows, from, to at, width int, reads, writes []program.View) {
	n := l.count(rows)
	if n == 0 {
		return
	}
	l.add(compute.Dispatch{
		Variant: variant("map", mapCopy), Op: name, Rows: rows.String(),
		Bind: []compute.Binding{from.bind, from.bind, to.bind, l.rowTable(rows)},
		Push: push(width, from.col, from.stride, 0, 0, to.col, to.stride, float32(0)),
	}, groups(width), n, reads, writes)
}

func (l *lister) embed(op program.Embed) {
	t := l.table(newTable(l.p, op))
	n := l.count(t.rows)
	if n == 0 {
		return
	}
	out := l.view(op.Out)
	l.add(compute.Dispatch{
		Variant: variant("embed", uint32(op.Table.Type)), Op: op.Name(), Rows: t.rows.String(), Bytes: int64(n) * int64(t.n),
		Bind: []compute.Binding{l.section(l.up, t.sec).bind, out.bind},
		Push: push(t.sec.stride, op.Out.Width, n, out.col, out.stride, op.Scale),
	}, groups((op.Out.Width+31)/32), n, nil, views(op.Out))
}

func (l *lister) rmsnorm(op program.RMSNorm) {
	rows := l.class(op.Out)
	n := l.count(rows)
	if n == 0 {
		return
	}
	in, out, weight := l.view(op.In), l.view(op.Out), none
	if op.Weight != nil {
		weight = l.vectorAt[&op.Weight[0]]
	}
	l.add(compute.Dispatch{
		Variant: variant("rmsnorm"), Op: op.Name(), Rows: rows.String(),
		Bind: []compute.Binding{in.bind, out.bind, l.vectorBinding()},
		Push: push(op.Group, in.col, in.stride, out.col, out.stride, weight, op.Eps),
	}, op.In.Width/op.Group, n, views(op.In), views(op.Out))
}

func (l *lister) rope(op program.Rope) {
	rows := l.class(op.X)
	n := l.count(rows)
	if n == 0 || len(op.Freqs) == 0 {
		return
	}
	x, interleaved := l.view(op.X), uint32(0)
	if op.Interleaved {
		interleaved = 1
	}
	table, _ := l.plan.rope(op)
	heads, pairs := op.X.Width/op.HeadDim, len(op.Freqs)
	l.add(compute.Dispatch{
		Variant: variant("rope", interleaved), Op: op.Name(), Rows: rows.String(),
		Bind: []compute.Binding{x.bind, l.vectorBinding(), l.rowTable(rows)},
		Push: push(x.col, x.stride, op.HeadDim, heads, pairs, table),
	}, groups(heads*pairs), n, views(op.X), views(op.X))
}

// storeParts is how many invocations of store.comp write a row of n values.
func storeParts(kv unit.KV, n int) int {
	if kv == unit.Q8_0 {
		return (n + 63) / 64 // two blocks, which are whole words
	}
	return words(kv, n)
}

func (l *lister) store(op program.Store) {
	n := l.shape.rows
	if n == 0 {
		return
	}
	c, k, v := l.caches[op.Cache], l.view(op.K), l.view(op.V)
	l.add(compute.Dispatch{
		Variant: variant("store", uint32(c.kv)), Op: op.Name(), Rows: program.All.String(),
		Bind: []compute.Binding{k.bind, v.bind, c.k, c.v, l.rowTable(program.All)},
		Push: push(k.col, k.stride, op.K.Width, v.col, v.stride, op.V.Width, c.rows),
	}, groups(storeParts(c.kv, op.K.Width)+storeParts(c.kv, op.V.Width)), n, views(op.K, op.V), views(wholeCache(c.Layer)))
}
