package engine_test

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"github.com/tandemrun/tandem/engine"
	"github.com/tandemrun/tandem/gguf"
	"github.com/tandemrun/tandem/internal/golden"
	"github.com/tandemrun/tandem/model"
	"github.com/tandemrun/tandem/model/catalog"
	"github.com/tandemrun/tandem/model/tiny"
	"github.com/tandemrun/tandem/sampler"
	"github.com/tandemrun/tandem/unit"
	"github.com/tandemrun/tandem/unit/cpu"
	"github.com/tandemrun/tandem/unit/cpu/kernel"
)

const testdata = "../testdata"

func load(t testing.TB, typ string) *model.Model {
	t.Helper()
	var f *gguf.File
	var err error
	if typ == "q8_0" {
		f, err = gguf.Read(tiny.Name, tiny.File())
	} else {
		f, err = gguf.Open(filepath.Join(testdata, "tiny", "tiny-"+typ+".gguf"))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	m, err := catalog.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// layout is how a test lays a model out.
type layout struct {
	chunks  int // 0 is the default split
	threads int
	block   int
	slots   int
	units   int // CPU units, which the chunks take turns on
	// Units of the chunks for decode, in place of turns, and for prefill.
	place, prefill []int
	beside         int // BlockBeside
	kv             unit.KV
	context        int
}

func (l layout) String() string {
	name := fmt.Sprintf("chunks=%d,threads=%d,block=%d,streams=%d,units=%d,kv=%s", l.chunks, l.threads, l.block, l.slots, l.units, l.kv)
	if l.prefill != nil {
		name += fmt.Sprintf(",place=%d,prefill=%d", l.place, l.prefill)
	}
	return name
}

func open(t testing.TB, m *model.Model, l layout) *engine.Engine {
	t.Helper()
	return openWith(t, m, l, func(*engine.Config) {})
}

// openWith lets a test change the configuration.
func openWith(t testing.TB, m *model.Model, l layout, change func(*engine.Config)) *engine.Engine {
	t.Helper()
	ranges, err := m.DefaultSplit()
	if l.chunks > 0 {
		ranges, err = m.Balanced(l.chunks)
	}
	if err != nil {
		t.Fatal(err)
	}
	var units []unit.Unit
	for i := range max(l.units, 1) {
		u, err := cpu.New(cpu.Config{Name: fmt.Sprintf("cpu:%d", i), Threads: max(l.threads, 1), ISA: kernel.Best()})
		if err != nil {
			t.Fatal(err)
		}
		units = append(units, u)
	}
	c := engine.Config{Ranges: ranges, Slots: max(l.slots, 1), Context: l.context, Block: l.block, BlockBeside: l.beside, KV: l.kv}
	if c.Context == 0 {
		c.Context = 640
	}
	for i := range ranges {
		c.Units = append(c.Units, units[at(l.place, i)%len(units)])
		if l.prefill != nil {
			c.PrefillUnits = append(c.PrefillUnits, units[at(l.prefill, i)%len(units)])
		}
	}
	change(&c)
	e, err := engine.New(context.Background(), m, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// at is item i of a list, or i without one.
func at(list []int, i int) int {
	if list == nil {
		return i
	}
	return list[i]
}

func stream(t testing.TB, e *engine.Engine) *engine.Stream {
	t.Helper()
	s, err := e.Stream(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// On the F32 file every golden logit is met within the stated tolerance, and
// the greedy tokens are the golden ones up to the end of the turn, as long as
// the margin between the best two tokens is above twice the tolerance.
func TestGoldensF32(t *testing.T) {
	const tolerance = 2e-3
	m := load(t, "f32")
	e := open(t, m, layout{threads: 2, block: 64, units: 2})
	for _, g := range golden.Answers(t, testdata) {
		t.Run(g.Name, func(t *testing.T) {
			s := stream(t, e)
			at := map[int]int{}
			for i, x := range g.Steps {
				at[x.Position] = i
			}
			next, ids := g.Prompt, []int32(nil)
			worst, compared := 0.0, 0
			// The golden tokens are fed, so that a step whose margin is too small to
			// compare does not lead the rest astray.
			for step := range g.F32 {
				err := s.Forward(t.Context(), next, engine.Last, func(pos int, logits []float32) error {
					if i, ok := at[pos]; ok {
						for _, x := range g.Steps[i].Top10 {
							worst = max(worst, math.Abs(x[1]-float64(logits[int(x[0])])))
							compared++
						}
					}
					ids = append(ids, sampler.Best(logits))
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				next = g.F32[step : step+1]
			}
			if compared != 10*len(g.Steps) {
				t.Fatalf("compared %d logits of %d", compared, 10*len(g.Steps))
			}
			if worst > tolerance {
				t.Errorf("largest difference %.2g, more than %g", worst, tolerance)
			}
			if g.Margin <= 2*tolerance {
				t.Logf("the margin %g is too small to compare all tokens", g.Margin)
				return
			}
			for i, want := range g.Turn() {
				if ids[i] != want {
					t.Fatalf("token %d is %d, not %d", i, ids[i], want)
				}
			}
		})
	}
}

// On quantised files the answers up to the end of the turn are the golden ones.
func TestAnswersQuantised(t *testing.T) {
	for _, typ := range []string{"q8_0", "q4_0"} {
		m := load(t, typ)
		e := open(t, m, layout{threads: 2, block: 64})
		for _, g := range golden.Answers(t, testdata) {
			want := g.Q8_0
			if typ == "q4_0" {
				want = g.Q4_0
			}
			if g.End == nil || g.Margin <= 0.5 {
				continue // not a chat, or too close to call
			}
			t.Run(typ+"/"+g.Name, func(t *testing.T) {
				s := stream(t, e)
				r, err := s.Generate(t.Context(), engine.Generation{
					Prompt: g.Prompt, Max: len(want), Picker: sampler.New(sampler.Options{}),
					End: func(id int32) bool { return id == golden.EndOfTurn },
				}, func(engine.Token) bool { return true })
				if err != nil {
					t.Fatal(err)
				}
				if fmt.Sprint(r.Tokens) != fmt.Sprint(want[:len(r.Tokens)]) || want[len(r.Tokens)] != golden.EndOfTurn {
					t.Errorf("%v\nnot\n%v", r.Tokens, want)
				}
			})
		}
	}
}
