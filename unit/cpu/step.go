package cpu

import (
	"slices"

	"github.com/tandemrun/tandem/program"
)

// A step is one operation as the workers run it. All workers run all steps in
// order, each on its share, and meet at a barrier where a step needs what
// another worker did.
type step struct {
	name   string
	do     func(r *run, w int)
	split  split
	rows   program.Rows // the class of rows it works on
	reads  []program.View
	writes []program.View
	// cost tells what the step reads and computes in a task; nil for little.
	cost func(r *run) (bytes, ops int64)
	// barrier: workers wait for each other before this step.
	barrier bool
	// heads are what each worker of a product reads first; product is the index
	// of the first product from this step on, or -1.
	heads   [][]byte
	product int
}

// split is how a step is divided over the workers.
type split uint8

const (
	byRow  split = iota // each worker has rows of its own, the same in every such step
	byItem              // anything else
)

// Buffers that are not the program's: quantised activations, caches and tables
// of rotations. Their columns are their indices.
const (
	inputBuf = -1
	cacheBuf = -2
	ropeBuf  = -3
)

// place decides where barriers are needed: before a step that touches what an
// earlier one since the last barrier wrote, or writes what it read, unless
// both divide the same rows in the same way.
func place(steps []step) {
	since := 0
	for i := range steps {
		for j := since; j < i; j++ {
			a, b := &steps[j], &steps[i]
			if a.split == byRow && b.split == byRow && a.rows == b.rows {
				continue
			}
			if overlap(a.writes, b.reads) || overlap(a.writes, b.writes) || overlap(a.reads, b.writes) {
				b.barrier = true
				since = i
				break
			}
		}
	}
}

// aim tells each step which product comes next.
func aim(steps []step) {
	next := -1
	for i := range slices.Backward(steps) {
		if steps[i].heads != nil {
			next = i
		}
		steps[i].product = next
	}
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

// wholeCache is the view that stands for the cache of a layer in hazards.
func wholeCache(layer int) program.View {
	return program.View{Buf: cacheBuf, Col: layer, Width: 1}
}
