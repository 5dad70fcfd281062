// Package program describes the computation of a run of a model's layers as a
// list of operations on named buffers, and evaluates it plainly.
//
// An architecture (package model/...) writes its layers as a [Program]; a unit
// (package unit/...) compiles a Program into a chunk. Neither knows the other:
// a new architecture touches no unit and a new unit touches no architecture.
//
// # Rows
//
// A program runs on a block: consecutive positions of one sequence, one row a
// position. Buffers are matrices with one row a position, float32, row-major.
// Rows come in two classes. [All] rows are every position of the block.
// [Wanted] rows are the positions whose logits are wanted, in ascending order;
// in the prefill of a prompt that is the last one, or none. Everything behind
// the keys and values of the last layer that owns a cache is computed for the
// wanted rows only, because nothing else can see the other rows. This changes
// no logit.
//
// # Handoff
//
// The model's layers may be split over several programs. [Port] names what one
// program hands to later ones: "hidden@L" is the state before layer L, other
// names are the architecture's own (such as the per-layer embeddings). A cache
// that a program reads but does not own (see [Cache]) is filled by the program
// that owns the layer.
//
// # The evaluator
//
// [Evaluator] runs programs in float32 with sums in float64, one row after the
// other, with nothing clever: it is the reference that every unit is compared
// with. It is not meant to be fast.
//
// Programs are immutable once built and may be shared between goroutines.
package program

import (
	"fmt"

	"github.com/tandemrun/tandem/quant"
)

// Rows is the class of rows a buffer holds.
type Rows uint8

const (
	// All is one row for each position of the block.
	All Rows = iota
	// Wanted is one row for each position whose logits are wanted.
	Wanted
)

func (r Rows) String() string {
	if r == Wanted {
		return "wanted"
	}
	return "all"
}

// A Buffer is a float32 matrix of Width columns that lives for one run.
type Buffer struct {
	Name  string
	Width int
	Rows  Rows
}

// A View is Width columns of a buffer, beginning at Col, for all of its rows.
type View struct {
	Buf, Col, Width int
}

// Cols returns the n columns of v that begin at its column lo.
func (v View) Cols(lo, n int) View { return View{v.Buf, v.Col + lo, n} }

// A Weight is a matrix as the model file stores it: Rows outputs of Cols
// inputs, row after row. Data is a view into the file and is valid as long as
// the file is open.
type Weight struct {
	Name       string
	Type       quant.Type
	Rows, Cols int
	Data       []byte
}

// Slice returns output rows [lo, hi) of w, sharing its data.
func (w Weight) Slice(lo, hi int) Weight {
	n := len(w.Data) / w.Rows
	return Weight{fmt.Sprintf("%s[%d:%d]", w.Name, lo, hi), w.Type, hi - lo, w.Cols, w.Data[lo*n : hi*n]}
}

// A Cache is the keys and values of one layer, one row a position. A row of
// keys is KVHeads × KeyDim values, a row of values KVHeads × ValueDim.
type Cache struct {
	Layer            int // the layer that writes it
	KVHeads          int
	KeyDim, ValueDim int
	Window           int  // positions a query sees, its own included; 0 means all
	Own              bool // this program writes it; otherwise another one does
}

// KeyWidth is the number of values in a row of keys.
func (c Cache) KeyWidth() int { return c.KVHeads * c.KeyDim }

// ValueWidth is the number of values in a row of values.
func (c Cache) ValueWidth() int { return c.KVHeads * c.ValueDim }

// A Port is a part of a handoff: columns [Col, Col+View.Width) of the rows
// called Name, held by View inside this program.
type Port struct {
	Name string
	Col  int
	View View
	Rows Rows
}

// A Program computes layers [First, Last) of a model.
type Program struct {
	First, Last int // First == 0 reads tokens
	Buffers     []Buffer
	Caches      []Cache
	Ops         []Op
	Inputs      []Port
	Outputs     []Port
	Logits      int // buffer of Wanted rows with the logits; -1 without a head
}

// Hidden is the port name of the state before layer l.
func Hidden(l int) string { return fmt.Sprintf("hidden@%d", l) }

// Weights returns every weight matrix the program uses, each once, in the
// order of first use. Embedding tables, of which only single rows are read,
// are included if tables is true.
func (p *Program) Weights(tables bool) []Weight {
	var out []Weight
	seen := map[string]bool{}
	add := func(w Weight) {
		if !seen[w.Name] {
			seen[w.Name] = true
			out = append(out, w)
		}
	}
	for _, op := range p.Ops {
		switch op := op.(type) {
		case Embed:
			if tables {
				add(op.Table)
			}
		case MatMul:
			add(op.W)
		}
	}
	return out
}

// Bytes returns the size of the weights as the file stores them, matrices and
// vectors; tables, which are read a row at a time, are counted apart.
func (p *Program) Bytes() (weights, tables int64) {
	for _, w := range p.Weights(false) {
		weights += int64(len(w.Data))
	}
	seen := map[string]bool{}
	for _, op := range p.Ops {
		switch op := op.(type) {
		case Embed:
			if !seen[op.Table.Name] {
				seen[op.Table.Name] = true
				tables += int64(len(op.Table.Data))
			}
		case MatMul:
			weights += int64(4 * len(op.Bias))
		case RMSNorm:
			weights += int64(4 * len(op.Weight))
		}
	}
	return weights, tables
}
