package decoder_test

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tandemrun/tandem/gguf"
	"github.com/tandemrun/tandem/internal/golden"
	"github.com/tandemrun/tandem/model"
	"github.com/tandemrun/tandem/model/gemma3"
	"github.com/tandemrun/tandem/model/llama"
	"github.com/tandemrun/tandem/model/qwen"
	"github.com/tandemrun/tandem/program"
)

const testdata = "../../testdata"

// family is an architecture that is described to package decoder.
type family struct {
	arch      string
	read      func(*gguf.File) (*model.Model, error)
	tolerance float64 // of the goldens' own arithmetic; see testdata/README.md
}

func families() []family {
	return []family{
		{llama.Arch, llama.Read, 2e-3},
		{qwen.Arch2, qwen.Read2, 2e-3},
		{qwen.Arch3, qwen.Read3, 2e-3},
		{gemma3.Arch, gemma3.Read, 1e-2},
	}
}

func openFile(t testing.TB, arch string) *gguf.File {
	t.Helper()
	f, err := gguf.Open(filepath.Join(testdata, "archs", "random-"+arch+"-f32.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func load(t testing.TB, c family) *model.Model {
	t.Helper()
	m, err := c.read(openFile(t, c.arch))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func programs(t testing.TB, m *model.Model, ranges ...model.Range) []*program.Program {
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

func whole(t testing.TB, m *model.Model) []*program.Program {
	t.Helper()
	return programs(t, m, model.Range{First: 0, Last: len(m.Layers)})
}

func upTo(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

func best(logits []float32) int32 {
	return int32(slices.Index(logits, slices.Max(logits)))
}

// Every logit of every position is the golden one within the tolerance, and
// the greedy tokens that follow are the same.
func TestEvaluatorAgainstGoldens(t *testing.T) {
	for _, c := range families() {
		t.Run(c.arch, func(t *testing.T) {
			t.Parallel()
			m, g := load(t, c), golden.Random(t, testdata, c.arch)
			ps := whole(t, m)
			var e program.Evaluator
			logits, err := e.Run(program.Block{Tokens: g.Tokens, Wanted: upTo(len(g.Tokens))}, ps...)
			if err != nil {
				t.Fatal(err)
			}
			if len(logits.Data) != len(g.Data) {
				t.Fatalf("%d logits, not %d", len(logits.Data), len(g.Data))
			}
			worst := 0.0
			for i, x := range logits.Data {
				worst = max(worst, math.Abs(float64(x-g.Data[i])))
			}
			t.Logf("largest difference %.2g", worst)
			if !(worst <= c.tolerance) {
				t.Errorf("largest difference %.2g, more than %g", worst, c.tolerance)
			}
			next := best(logits.Row(len(g.Tokens) - 1))
			for i, want := range g.Greedy {
				if next != want {
					t.Fatalf("greedy token %d is %d, not %d", i, next, want)
				}
				logits, err := e.Run(program.Block{Tokens: []int32{next}, Pos: len(g.Tokens) + i, Wanted: []int{0}}, ps...)
				if err != nil {
					t.Fatal(err)
				}
				next = best(logits.Row(0))
			}
		})
	}
}

// However the layers are cut, in whatever blocks the prompt comes and whether
// or not other rows are wanted, a logit is the same.
func TestCutsChangeNothing(t *testing.T) {
	const block = 20
	for _, c := range families() {
		t.Run(c.arch, func(t *testing.T) {
			t.Parallel()
			m, g := load(t, c), golden.Random(t, testdata, c.arch)
			n := len(g.Tokens)
			all, err := new(program.Evaluator).Run(program.Block{Tokens: g.Tokens, Wanted: upTo(n)}, whole(t, m)...)
			if err != nil {
				t.Fatal(err)
			}
			for chunks := 1; chunks <= len(m.Layers); chunks++ {
				ranges, err := m.Balanced(chunks)
				if err != nil {
					t.Fatal(err)
				}
				ps := programs(t, m, ranges...)
				var e program.Evaluator
				var got program.Matrix
				for at := 0; at < n; at += block {
					b := program.Block{Tokens: g.Tokens[at:min(at+block, n)], Pos: at}
					if at+block >= n {
						b.Wanted = []int{len(b.Tokens) - 1}
					}
					if got, err = e.Run(b, ps...); err != nil {
						t.Fatal(err)
					}
				}
				if !slices.Equal(got.Row(0), all.Row(n-1)) {
					t.Errorf("%d chunks give other logits", chunks)
				}
			}
		})
	}
}

// Behind the keys and values of the last layer no operation works on rows that
// nobody wants: not the last layer's queries, and nothing after them.
func TestLastLayerIsForWantedRows(t *testing.T) {
	for _, c := range families() {
		t.Run(c.arch, func(t *testing.T) {
			m := load(t, c)
			last := len(m.Layers) - 1
			p := programs(t, m, model.Range{First: last, Last: last + 1})[0]
			var all []string
			for _, op := range p.Ops {
				if op, ok := op.(program.MatMul); ok && p.Buffers[op.Out.Buf].Rows == program.All {
					all = append(all, op.W.Name)
				}
			}
			want := []string{fmt.Sprintf("blk.%d.attn_k.weight", last), fmt.Sprintf("blk.%d.attn_v.weight", last)}
			if !slices.Equal(all, want) {
				t.Errorf("all rows go through %v; only %v need them", all, want)
			}
		})
	}
}
