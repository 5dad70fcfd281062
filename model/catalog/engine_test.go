package catalog_test

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tandemrun/tandem/engine"
	"github.com/tandemrun/tandem/gguf"
	"github.com/tandemrun/tandem/internal/golden"
	"github.com/tandemrun/tandem/model"
	"github.com/tandemrun/tandem/model/catalog"
	"github.com/tandemrun/tandem/program"
	"github.com/tandemrun/tandem/unit"
	"github.com/tandemrun/tandem/unit/cpu"
	"github.com/tandemrun/tandem/unit/cpu/kernel"
)

const testdata = "../../testdata"

func load(t testing.TB, name string) *model.Model {
	t.Helper()
	f, err := gguf.Open(filepath.Join(testdata, "archs", name+".gguf"))
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

// run evaluates tokens on CPU units, chunks in turn on each, and returns the
// logits of every position.
func run(t testing.TB, m *model.Model, tokens []int32, chunks, units, block int) []float32 {
	t.Helper()
	ranges, err := m.Balanced(chunks)
	if err != nil {
		t.Fatal(err)
	}
	c := engine.Config{Ranges: ranges, Slots: 1, Context: len(tokens), Block: block}
	var us []unit.Unit
	for i := range units {
		u, err := cpu.New(cpu.Config{Name: fmt.Sprintf("cpu:%d", i), Threads: 2, ISA: kernel.Best()})
		if err != nil {
			t.Fatal(err)
		}
		us = append(us, u)
	}
	for i := range ranges {
		c.Units = append(c.Units, us[i%units])
	}
	e, err := engine.New(context.Background(), m, c)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	s, err := e.Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var out []float32
	if err := s.Forward(t.Context(), tokens, engine.Every, func(_ int, logits []float32) error {
		out = append(out, logits...)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

func worst(t testing.TB, got, want []float32) float64 {
	t.Helper()
	if len(got) != len(want) || len(got) == 0 {
		t.Fatalf("%d logits, not %d", len(got), len(want))
	}
	d := 0.0
	for i, x := range got {
		d = max(d, math.Abs(float64(x)-float64(want[i])))
	}
	return d
}

// On CPU units the F32 files meet the golden logits. On the Q8_0 files,
// whose products round activations to eight bits, logits stay within a bound
// around those of the plain evaluator. Neither depends on the layout.
func TestEngine(t *testing.T) {
	for _, c := range []struct {
		arch string
		f32  float64 // tolerance of the goldens, from testdata/README.md
		q8_0 float64 // twice the largest difference measured
	}{
		{"llama", 2e-3, 0.05},
		{"qwen2", 2e-3, 0.2},
		{"qwen3", 2e-3, 0.06},
		{"gemma3", 1e-2, 0.25},
	} {
		t.Run(c.arch, func(t *testing.T) {
			g := golden.Random(t, testdata, c.arch)
			for _, typ := range []string{"f32", "q8_0"} {
				m := load(t, "random-"+c.arch+"-"+typ)
				got := run(t, m, g.Tokens, 1, 1, 512)
				want, tolerance := g.Data, c.f32
				if typ == "q8_0" {
					want, tolerance = evaluate(t, m, g.Tokens), c.q8_0
				}
				d := worst(t, got, want)
				t.Logf("%s: largest difference %.2g", typ, d)
				if !(d <= tolerance) {
					t.Errorf("%s: largest difference %.2g, more than %g", typ, d, tolerance)
				}
				for _, chunks := range []int{2, len(m.Layers)} {
					if !slices.Equal(run(t, m, g.Tokens, chunks, 2, 17), got) {
						t.Errorf("%s: %d chunks on two units and blocks of 17 give other bits", typ, chunks)
					}
				}
			}
		})
	}
}

func evaluate(t testing.TB, m *model.Model, tokens []int32) []float32 {
	t.Helper()
	p, err := m.Program(0, len(m.Layers))
	if err != nil {
		t.Fatal(err)
	}
	b := program.Block{Tokens: tokens}
	for i := range tokens {
		b.Wanted = append(b.Wanted, i)
	}
	x, err := new(program.Evaluator).Run(b, p)
	if err != nil {
		t.Fatal(err)
	}
	return x.Data
}

func TestUnknownArchitecture(t *testing.T) {
	w := gguf.NewWriter()
	if err := w.Set("general.architecture", "mamba"); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "mamba.gguf")
	if err := w.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	_, err = catalog.Read(f)
	for _, word := range append(catalog.Names(), "mamba.gguf", "general.architecture") {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("error %v does not say %s", err, word)
		}
	}
}
