package speed

import (
	"testing"

	"github.com/tandemrun/tandem/gguf"
	"github.com/tandemrun/tandem/model/catalog"
	"github.com/tandemrun/tandem/model/tiny"
	"github.com/tandemrun/tandem/program"
)

func TestOperations(t *testing.T) {
	p := &program.Program{
		Buffers: []program.Buffer{{Width: 3, Rows: program.All}, {Width: 5, Rows: program.All}, {Width: 5, Rows: program.Wanted}, {Width: 7, Rows: program.Wanted}},
		Ops: []program.Op{
			program.MatMul{W: program.Weight{Rows: 5, Cols: 3}, In: program.View{Buf: 0, Width: 3}, Out: program.View{Buf: 1, Width: 5}},
			program.Add{A: program.View{Buf: 1, Width: 5}, B: program.View{Buf: 1, Width: 5}, Out: program.View{Buf: 1, Width: 5}},
			program.Narrow{In: program.View{Buf: 1, Width: 5}, Out: program.View{Buf: 2, Width: 5}},
			program.MatMul{W: program.Weight{Rows: 7, Cols: 5}, In: program.View{Buf: 2, Width: 5}, Out: program.View{Buf: 3, Width: 7}},
		},
		Logits: 3,
	}
	for _, test := range []struct {
		rows, wanted int
		want         int64
	}{{1, 1, 2 * (15 + 35)}, {100, 1, 2 * (1500 + 35)}, {100, 0, 2 * 1500}, {100, 100, 100 * 2 * (15 + 35)}} {
		if got := Operations(p, test.rows, test.wanted); got != test.want {
			t.Errorf("%d rows, %d of them wanted: %d operations, want %d", test.rows, test.wanted, got, test.want)
		}
	}
}

// The programs of a split model need what the whole does; of a real model, rows
// that are not wanted need less than those that are.
func TestOperationsOfModel(t *testing.T) {
	whole := tinyProgram(t, 0, -1)
	parts := Operations(tinyProgram(t, 0, 4), 50, 1) + Operations(tinyProgram(t, 4, -1), 50, 1)
	if got := Operations(whole, 50, 1); got != parts {
		t.Errorf("%d operations, but %d in two parts", got, parts)
	}
	var all int64
	for _, w := range whole.Weights(false) {
		all += 2 * int64(w.Rows) * int64(w.Cols)
	}
	if got := Operations(whole, 1, 1); got != all {
		t.Errorf("one token: %d operations, the weights have room for %d", got, all)
	}
	if got := Operations(whole, 50, 1); got >= 50*all || got <= all {
		t.Errorf("50 tokens, one wanted: %d operations; one token takes %d", got, all)
	}
}

// tinyProgram is the program of layers [first, last) of the embedded model;
// last is -1 for all that follow.
func tinyProgram(t *testing.T, first, last int) *program.Program {
	t.Helper()
	f, err := gguf.Read(tiny.Name, tiny.File())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	m, err := catalog.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	if last < 0 {
		last = len(m.Layers)
	}
	p, err := m.Program(first, last)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
