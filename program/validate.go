package program

import (
	"fmt"

	"github.com/tandemrun/tandem/quant"
)

// Validate checks that the program is well formed: views lie inside their
// buffers, shapes and row classes fit each other, every weight's type can be
// converted and its data has the size its shape says. Units rely on it and do
// not check again.
func (p *Program) Validate() error {
	v := validator{p: p}
	for i, op := range p.Ops {
		v.where = fmt.Sprintf("layers %d..%d, operation %d (%s)", p.First, p.Last-1, i, op.Name())
		v.op(op)
	}
	for _, port := range append(append([]Port(nil), p.Inputs...), p.Outputs...) {
		v.where = fmt.Sprintf("layers %d..%d, port %s", p.First, p.Last-1, port.Name)
		v.rows(port.Rows, port.View)
	}
	if p.Logits >= 0 {
		v.where = "logits"
		v.check(p.Logits < len(p.Buffers) && p.Buffers[p.Logits].Rows == Wanted, "not a buffer of wanted rows")
	}
	return v.err
}

type validator struct {
	p     *Program
	where string
	err   error
}

func (v *validator) check(ok bool, format string, args ...any) {
	if !ok && v.err == nil {
		v.err = fmt.Errorf("program: %s: %s", v.where, fmt.Sprintf(format, args...))
	}
}

// view checks that x lies inside its buffer and returns the buffer's rows.
func (v *validator) view(x View) Rows {
	if x.Buf < 0 || x.Buf >= len(v.p.Buffers) {
		v.check(false, "no buffer %d", x.Buf)
		return All
	}
	b := v.p.Buffers[x.Buf]
	v.check(x.Col >= 0 && x.Width > 0 && x.Col+x.Width <= b.Width,
		"columns %d..%d of buffer %s, which has %d", x.Col, x.Col+x.Width, b.Name, b.Width)
	return b.Rows
}

// same checks that the views have equal widths and equal classes of rows.
func (v *validator) same(a View, others ...View) {
	r := v.view(a)
	for _, o := range others {
		v.rows(r, o)
		v.check(o.Width == a.Width, "widths %d and %d differ", a.Width, o.Width)
	}
}

func (v *validator) rows(r Rows, views ...View) {
	for _, x := range views {
		got := v.view(x)
		v.check(got == r, "buffer %d has %s rows, wanted are %s rows", x.Buf, got, r)
	}
}

func (v *validator) weight(w Weight) {
	v.check(w.Type.Supported(), "tensor %s has type %s, which tandem cannot read", w.Name, w.Type)
	if v.err != nil {
		return
	}
	v.check(w.Rows > 0 && w.Cols > 0, "tensor %s is %d × %d", w.Name, w.Rows, w.Cols)
	n, err := w.Type.RowBytes(w.Cols)
	v.check(err == nil, "tensor %s: %v", w.Name, err)
	v.check(int64(len(w.Data)) == n*int64(w.Rows), "tensor %s (%s, %d × %d) has %d bytes", w.Name, w.Type, w.Rows, w.Cols, len(w.Data))
}

func (v *validator) cache(i int) Cache {
	if i < 0 || i >= len(v.p.Caches) {
		v.check(false, "no cache %d", i)
		return Cache{KVHeads: 1, KeyDim: 1, ValueDim: 1}
	}
	c := v.p.Caches[i]
	v.check(c.KVHeads > 0 && c.KeyDim > 0 && c.ValueDim > 0 && c.Window >= 0, "cache of layer %d has no size", c.Layer)
	return c
}

func (v *validator) op(op Op) {
	switch op := op.(type) {
	case Embed:
		v.weight(op.Table)
		v.rows(v.view(op.Out), op.Out)
		v.check(op.Col >= 0 && op.Col+op.Out.Width <= op.Table.Cols, "columns %d..%d of a table with %d", op.Col, op.Col+op.Out.Width, op.Table.Cols)
		if b := op.Table.Type.BlockSize(); b > 0 {
			v.check(op.Col%b == 0 && op.Out.Width%b == 0, "columns %d..%d cut a block of %s", op.Col, op.Col+op.Out.Width, op.Table.Type)
		}
	case MatMul:
		v.weight(op.W)
		v.rows(v.view(op.In), op.Out)
		v.check(op.In.Width == op.W.Cols, "tensor %s takes %d values, not %d", op.W.Name, op.W.Cols, op.In.Width)
		v.check(op.Out.Width == op.W.Rows, "tensor %s gives %d values, not %d", op.W.Name, op.W.Rows, op.Out.Width)
		v.check(op.Bias == nil || len(op.Bias) == op.W.Rows, "a bias of %d values for %d", len(op.Bias), op.W.Rows)
	case RMSNorm:
		v.same(op.In, op.Out)
		v.check(op.Group > 0 && op.In.Width%op.Group == 0, "groups of %d in %d columns", op.Group, op.In.Width)
		v.check(op.Weight == nil || len(op.Weight) == op.Group, "a weight of %d values for groups of %d", len(op.Weight), op.Group)
	case Rope:
		v.view(op.X)
		v.check(op.HeadDim > 0 && op.X.Width%op.HeadDim == 0, "heads of %d in %d columns", op.HeadDim, op.X.Width)
		v.check(len(op.Freqs) <= op.HeadDim/2, "%d pairs in heads of %d", len(op.Freqs), op.HeadDim)
	case Store:
		c := v.cache(op.Cache)
		v.rows(All, op.K, op.V)
		v.check(c.Own, "the cache of layer %d belongs to another program", c.Layer)
		v.check(op.K.Width == c.KeyWidth() && op.V.Width == c.ValueWidth(), "rows of %d and %d for a cache of %d and %d", op.K.Width, op.V.Width, c.KeyWidth(), c.ValueWidth())
	case Attention:
		c := v.cache(op.Cache)
		v.rows(v.view(op.Q), op.Out)
		v.check(op.Heads > 0 && op.Heads%c.KVHeads == 0, "%d query heads over %d KV heads", op.Heads, c.KVHeads)
		v.check(op.Q.Width == op.Heads*c.KeyDim && op.Out.Width == op.Heads*c.ValueDim, "%d and %d columns for %d heads of %d and %d", op.Q.Width, op.Out.Width, op.Heads, c.KeyDim, c.ValueDim)
	case Gated:
		v.same(op.Gate, op.Up, op.Out)
	case Add:
		v.same(op.A, op.B, op.Out)
	case Scale:
		v.view(op.X)
	case Softcap:
		v.view(op.X)
		v.check(op.Cap > 0, "a cap of %g", op.Cap)
	case Narrow:
		v.rows(All, op.In)
		v.rows(Wanted, op.Out)
		v.check(op.In.Width == op.Out.Width, "widths %d and %d differ", op.In.Width, op.Out.Width)
	default:
		v.check(false, "unknown operation %T", op)
	}
}

// Vector reads a weight of one row or column as float32 values.
func (w Weight) Vector() ([]float32, error) {
	out := make([]float32, w.Rows*w.Cols)
	if err := quant.Type.Dequantize(w.Type, out, w.Data); err != nil {
		return nil, fmt.Errorf("reading tensor %s: %w", w.Name, err)
	}
	return out, nil
}
