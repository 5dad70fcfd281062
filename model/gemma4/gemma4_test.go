package gemma4_test

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tandemrun/tandem/gguf"
	"github.com/tandemrun/tandem/internal/golden"
	"github.com/tandemrun/tandem/model"
	"github.com/tandemrun/tandem/model/gemma4"
	"github.com/tandemrun/tandem/program"
)

const testdata = "../../testdata"

func load(t testing.TB, name string) *model.Model {
	t.Helper()
	f, err := gguf.Open(filepath.Join(testdata, "tiny", name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	m, err := gemma4.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func programs(t testing.TB, m *model.Model, ranges []model.Range) []*program.Program {
	t.Helper()
	var out []*program.Program
	for _, r := range ranges {
		p, err := m.Program(r.First, r.Last)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, p)
	}
	return out
}

func readJSON(t testing.TB, name string, v any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(testdata, "tiny", "golden", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, v); err != nil {
		t.Fatal(err)
	}
}

// The evaluator must agree with an independent implementation to 1e-4 in every
// logit that the golden files hold: it is what everything else is judged by.
func TestEvaluatorAgainstGoldens(t *testing.T) {
	m := load(t, "tiny-f32.gguf")
	ranges, err := m.DefaultSplit()
	if err != nil {
		t.Fatal(err)
	}
	ps := programs(t, m, ranges)
	for _, g := range golden.Answers(t, testdata) {
		t.Run(g.Name, func(t *testing.T) {
			t.Parallel()
			ids := slices.Concat(g.Prompt, g.F32)
			var wanted []int
			for _, s := range g.Steps {
				wanted = append(wanted, s.Position)
			}
			ids = ids[:wanted[len(wanted)-1]+1]
			logits, err := new(program.Evaluator).Run(program.Block{Tokens: ids, Wanted: wanted}, ps...)
			if err != nil {
				t.Fatal(err)
			}
			worst := 0.0
			for i, s := range g.Steps {
				for _, x := range s.Top10 {
					worst = max(worst, math.Abs(x[1]-float64(logits.Row(i)[int(x[0])])))
				}
			}
			if worst > 1e-4 {
				t.Errorf("largest difference %.2g, more than 1e-4", worst)
			}
		})
	}
}

// The state after each layer must agree with the golden one.
func TestHiddenStates(t *testing.T) {
	m := load(t, "tiny-f32.gguf")
	var g struct {
		IDs    []int32
		States []struct {
			Name string
			Norm float64 `json:"frobenius_norm"`
			Rows []struct {
				Position int
				Norm     float64
				First8   []float64
			}
		}
	}
	readJSON(t, "hidden-100.json", &g)
	var ranges []model.Range
	for i := range m.Layers {
		ranges = append(ranges, model.Range{First: i, Last: i + 1})
	}
	var e program.Evaluator
	all := make([]int, len(g.IDs))
	for i := range all {
		all[i] = i
	}
	if _, err := e.Run(program.Block{Tokens: g.IDs, Wanted: all}, programs(t, m, ranges)...); err != nil {
		t.Fatal(err)
	}
	checked := 0
	for i := 1; i < len(m.Layers); i++ {
		h, ok := e.Port(program.Hidden(i))
		if !ok {
			t.Fatalf("no state before layer %d", i)
		}
		want := g.States[i]
		for _, r := range want.Rows {
			for j, x := range r.First8 {
				checked++
				if d := math.Abs(x - float64(h.Row(r.Position)[j])); d > 1e-4 {
					t.Errorf("%s, position %d, value %d: off by %.2g", want.Name, r.Position, j, d)
				}
			}
		}
		var norm float64
		for _, x := range h.Data {
			norm += float64(x) * float64(x)
		}
		if d := math.Abs(math.Sqrt(norm)-want.Norm) / want.Norm; d > 1e-5 {
			t.Errorf("%s: norm off by a share of %.2g", want.Name, d)
		}
	}
	if checked == 0 {
		t.Fatal("nothing was checked")
	}
}

// However the layers are cut, and whether or not other rows are wanted, a
// logit is the same.
func TestCutsChangeNothing(t *testing.T) {
	m := load(t, "tiny-f32.gguf")
	ids := golden.Answers(t, testdata)[9].Prompt // 75 tokens
	all := make([]int, len(ids))
	for i := range all {
		all[i] = i
	}
	whole := programs(t, m, []model.Range{{First: 0, Last: len(m.Layers)}})
	want, err := new(program.Evaluator).Run(program.Block{Tokens: ids, Wanted: all}, whole...)
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= len(m.Layers); n++ {
		ranges, err := m.Balanced(n)
		if err != nil {
			t.Fatal(err)
		}
		ps := programs(t, m, ranges)
		var e program.Evaluator
		var got program.Matrix
		for at := 0; at < len(ids); at += 20 { // in blocks; only the last row is wanted
			b := program.Block{Tokens: ids[at:min(at+20, len(ids))], Pos: at}
			if at+20 >= len(ids) {
				b.Wanted = []int{len(b.Tokens) - 1}
			}
			if got, err = e.Run(b, ps...); err != nil {
				t.Fatal(err)
			}
		}
		for i, x := range got.Row(0) {
			if x != want.Row(len(ids) - 1)[i] {
				t.Fatalf("%d chunks: logit %d is %g, not %g", n, i, x, want.Row(len(ids) - 1)[i])
			}
		}
	}
}

func TestDefaultSplit(t *testing.T) {
	// The splits of the seed documents.
	for _, c := range []struct {
		layers, own int
		want        []model.Range
	}{
		{35, 15, []model.Range{{First: 0, Last: 8}, {First: 8, Last: 15}, {First: 15, Last: 25}, {First: 25, Last: 35}}},
		{42, 24, []model.Range{{First: 0, Last: 12}, {First: 12, Last: 24}, {First: 24, Last: 33}, {First: 33, Last: 42}}},
		{10, 5, []model.Range{{First: 0, Last: 3}, {First: 3, Last: 5}, {First: 5, Last: 8}, {First: 8, Last: 10}}},
	} {
		m := &model.Model{Layers: make([]model.Layer, c.layers), OwnEnd: c.own}
		got, err := m.DefaultSplit()
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != 4 || got[0] != c.want[0] || got[1] != c.want[1] || got[2] != c.want[2] || got[3] != c.want[3] {
			t.Errorf("%d layers: %v, not %v", c.layers, got, c.want)
		}
	}
}
