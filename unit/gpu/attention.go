package gpu

import (
	"fmt"

	"github.com/tandemrun/tandem/program"
	"github.com/tandemrun/tandem/unit/gpu/compute"
)

// attentionTile is how many queries a workgroup of attention.comp has: heads of
// a group times rows.
type attentionTile struct{ heads, rows int }

// Bounds of attention.comp.
const (
	mostQueries = 8
	mostValues  = 2048 // of the queries of a tile
	mostSums    = 32   // of an invocation
)

// tile chooses the tile of an operation, as large as fits.
func (x *plan) tile(op program.Attention) attentionTile {
	c := x.p.Caches[op.Cache]
	group := op.Heads / c.KVHeads
	most := min(mostQueries, mostValues/c.KeyDim, mostSums/groups(c.ValueDim))
	t := attentionTile{1, 1}
	for t.heads < group && 2*t.heads <= most {
		t.heads *= 2
	}
	t.heads = min(t.heads, group)
	for 2*t.rows*t.heads <= most {
		t.rows *= 2
	}
	return t
}

// checkAttention says what the unit cannot do.
func checkAttention(p *program.Program) error {
	for _, op := range p.Ops {
		if op, ok := op.(program.Attention); ok {
			c := p.Caches[op.Cache]
			if c.KeyDim > mostValues || groups(c.ValueDim) > mostSums {
				return fmt.Errorf("heads of %d and %d values; the unit knows up to %d", c.KeyDim, c.ValueDim, mostValues)
			}
		}
	}
	return nil
}

func (l *lister) attention(op program.Attention) {
	rows := l.class(op.Q)
	t := l.tile(op)
	k := l.tiling(tiling{rows: rows, size: t.rows})
	tiles := l.shape.tiles[k]
	if tiles == 0 {
		return
	}
	c, q, out := l.caches[op.Cache], l.view(op.Q), l.view(op.Out)
	group := op.Heads / c.KVHeads
	l.add(compute.Dispatch{
		Variant: variant("attention", uint32(c.kv), uint32(t.heads), uint32(t.rows), uint32(c.KeyDim), uint32(c.ValueDim)),
		Op:      op.Name(), Rows: rows.String(),
		Bind: []compute.Binding{q.bind, out.bind, c.k, c.v, l.rowTable(rows), l.section(l.up, l.tilings[k].sec).bind},
		Push: push(q.col, q.stride, out.col, out.stride, words(c.kv, c.KeyWidth()), words(c.kv, c.ValueWidth()), c.rows, c.Window, group, op.Scale),
	}, c.KVHeads*((group+t.heads-1)/t.heads), tiles, views(op.Q, wholeCache(c.Layer)), views(op.Out))
}
