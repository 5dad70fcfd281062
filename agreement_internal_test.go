package tandem

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tandemrun/tandem/engine"
	"github.com/tandemrun/tandem/program"
	"github.com/tandemrun/tandem/unit"
)

// faulty is a unit whose logits are changed.
type faulty struct {
	unit.Unit
	change func(logits []float32) error
}

// Kind is of its own: its bits are not those of the unit below.
func (f *faulty) Kind() string { return "faulty" }

func (f *faulty) Bind() {
	if b, ok := f.Unit.(unit.Binder); ok {
		b.Bind()
	}
}

func (f *faulty) Compile(ctx context.Context, p *program.Program, o unit.Options) (unit.Chunk, error) {
	own := o.Share
	o.Share = map[int]unit.Chunk{}
	for layer, c := range own {
		o.Share[layer] = c.(*faultyChunk).Chunk
	}
	c, err := f.Unit.Compile(ctx, p, o)
	if err != nil {
		return nil, err
	}
	return &faultyChunk{c, f.change}, nil
}

type faultyChunk struct {
	unit.Chunk
	change func(logits []float32) error
}

func (c *faultyChunk) Run(ctx context.Context, t *unit.Task) error {
	err := c.Chunk.Run(ctx, t)
	for _, p := range t.Parts {
		if len(p.Logits) > 0 {
			err = errors.Join(err, c.change(p.Logits))
		}
	}
	return err
}

// openFaulty opens a model in one chunk on a faulty unit.
func openFaulty(t *testing.T, m *Model, change func([]float32) error) *Engine {
	t.Helper()
	l, err := m.layout(Options{Chunks: 1, Threads: 1, Context: 512})
	if err != nil {
		t.Fatal(err)
	}
	units, _, err := openUnits(l.names, 1, l.qos)
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(t.Context(), m.model, engine.Config{
		Ranges: l.ranges, Units: []unit.Unit{&faulty{units[0], change}}, Slots: 1, Context: l.o.Context, Block: l.o.Block,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return &Engine{m: m, e: e}
}

func TestAgreement(t *testing.T) {
	m, err := Embedded()
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	done := 0
	a, err := m.Agreement(t.Context(), AgreementTest{
		Reference: Options{Chunks: 1, Threads: 1, Context: 512}, Tested: Options{Chunks: 3, Place: "c2=cpu:0", Threads: 2, Context: 512},
		Positions: 12, Progress: func(n, total int) { done = n * 100 / total },
	})
	if err != nil {
		t.Fatal(err)
	}
	f := a.All
	if done != 100 || len(a.Kinds) != 4 || f.Prompts != 20 || f.Positions < 100 || f.Positions > 240 {
		t.Errorf("got %+v, %d %% done", a, done)
	}
	if f.Top != 1 || *f.MeanKL != 0 || *f.MaxKL != 0 || *f.Difference != 0 || f.First != nil {
		t.Errorf("two layouts on units of one kind are apart: %+v", f)
	}
	// Half precision in the cache moves logits, but little.
	a, err = m.Agreement(t.Context(), AgreementTest{
		Reference: Options{Context: 512}, Tested: Options{Context: 512, KV: "f16"}, Positions: 12,
	})
	if err != nil {
		t.Fatal(err)
	}
	if f := a.All; f.Top < 0.95 || *f.MeanKL <= 0 || *f.MeanKL > 1e-3 || *f.Difference > 1 {
		t.Errorf("KV of f16: top %g, mean KL %g, largest difference %g", f.Top, *f.MeanKL, *f.Difference)
	}
}

// A unit that is wrong in one logit, or gives no number, shows.
func TestAgreementFaulty(t *testing.T) {
	m, err := Embedded()
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	right := openFaulty(t, m, func([]float32) error { return nil })
	a, err := m.agreement(t.Context(), right, openFaulty(t, m, func(x []float32) error { x[40] += 12; return nil }), 6, nil)
	if err != nil {
		t.Fatal(err)
	}
	f := a.All
	if *f.Difference < 11.999 || *f.MeanKL < 1e-3 || f.Top == 1 || f.First == nil || f.First.Got.ID != 40 || f.First.Got.Text != m.Token(40) {
		t.Errorf("one logit 12 too high: %+v, first %v", f, f.First)
	}
	a, err = m.agreement(t.Context(), right, openFaulty(t, m, func(x []float32) error { x[3] = float32(math.NaN()); return nil }), 6, nil)
	if err != nil {
		t.Fatal(err)
	}
	if f := a.All; f.NotFinite != f.Positions || f.MeanKL != nil || f.Top != 0 || f.First.Got != nil {
		t.Errorf("a NaN: %+v", f)
	}
	if _, err := m.agreement(t.Context(), openFaulty(t, m, func(x []float32) error { x[3] = float32(math.NaN()); return nil }), right, 6, nil); err == nil {
		t.Error("a reference without numbers was no error")
	}
	if _, err := m.agreement(t.Context(), right, right, 500, nil); err == nil || !strings.Contains(err.Error(), "--ctx") {
		t.Errorf("answers that do not fit: %v", err)
	}
}

// A model without a vocabulary is compared on made-up tokens.
func TestAgreementNoVocab(t *testing.T) {
	m, err := Load(filepath.Join("testdata", "archs", "random-llama-f32.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	a, err := m.Agreement(t.Context(), AgreementTest{Reference: Options{Threads: 1}, Tested: Options{Chunks: 2}, Positions: 4})
	if err != nil {
		t.Fatal(err)
	}
	if a.All.Positions != 32 || a.All.Top != 1 || a.Kinds[0].Kind != "ids" {
		t.Errorf("got %+v", a)
	}
}
