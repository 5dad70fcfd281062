package model

import (
	"slices"

	"github.com/tandemrun/tandem/program"
)

// A Builder writes a program operation by operation.
type Builder struct {
	P *program.Program
}

// NewBuilder begins the program of layers [first, last).
func NewBuilder(first, last int) *Builder {
	return &Builder{&program.Program{First: first, Last: last, Logits: -1}}
}

// Buffer adds a buffer and returns the view of all its columns. A buffer of
// the same name and rows that is there already is used again if it is wide
// enough, and widened if not: its earlier views stay as they were.
func (b *Builder) Buffer(name string, width int, rows program.Rows) program.View {
	for i := range b.P.Buffers {
		if x := &b.P.Buffers[i]; x.Name == name && x.Rows == rows {
			x.Width = max(x.Width, width)
			return program.View{Buf: i, Width: width}
		}
	}
	b.P.Buffers = append(b.P.Buffers, program.Buffer{Name: name, Width: width, Rows: rows})
	return program.View{Buf: len(b.P.Buffers) - 1, Width: width}
}

// Do appends operations.
func (b *Builder) Do(ops ...program.Op) { b.P.Ops = append(b.P.Ops, ops...) }

// Cache returns the index of the cache of a layer, adding it at first use.
func (b *Builder) Cache(layers []Layer, layer int) int {
	if i := slices.IndexFunc(b.P.Caches, func(c program.Cache) bool { return c.Layer == layer }); i >= 0 {
		return i
	}
	l := layers[layer]
	b.P.Caches = append(b.P.Caches, program.Cache{
		Layer: layer, KVHeads: l.KVHeads, KeyDim: l.KeyDim, ValueDim: l.ValueDim, Window: l.Window,
		Own: layer >= b.P.First && layer < b.P.Last,
	})
	return len(b.P.Caches) - 1
}

// Input adds a part of a handoff that the program takes.
func (b *Builder) Input(name string, col int, v program.View) {
	b.P.Inputs = append(b.P.Inputs, program.Port{Name: name, Col: col, View: v, Rows: b.P.Buffers[v.Buf].Rows})
}

// Output adds a part of a handoff that the program gives.
func (b *Builder) Output(name string, col int, v program.View) {
	b.P.Outputs = append(b.P.Outputs, program.Port{Name: name, Col: col, View: v, Rows: b.P.Buffers[v.Buf].Rows})
}
