package gpu

import (
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tandemrun/tandem/agreement"
	"github.com/tandemrun/tandem/engine"
	"github.com/tandemrun/tandem/gguf"
	"github.com/tandemrun/tandem/internal/golden"
	"github.com/tandemrun/tandem/model"
	"github.com/tandemrun/tandem/model/catalog"
	"github.com/tandemrun/tandem/model/tiny"
	"github.com/tandemrun/tandem/program"
	"github.com/tandemrun/tandem/sampler"
	"github.com/tandemrun/tandem/unit"
	"github.com/tandemrun/tandem/unit/cpu"
	"github.com/tandemrun/tandem/unit/cpu/kernel"
)

const testdata = "../../testdata"

func loadModel(t testing.TB, file string) *model.Model {
	t.Helper()
	f, err := gguf.Open(filepath.Join(testdata, file))
	if filepath.Base(file) == "tiny-q8_0.gguf" {
		f, err = gguf.Read(tiny.Name, tiny.File()) // the one in the binary
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

// start lays a model out over the units of its chunks. The engine closes them.
func start(t testing.TB, m *model.Model, units []unit.Unit, change func(*engine.Config)) *engine.Engine {
	t.Helper()
	ranges, err := m.Balanced(len(units))
	if err != nil {
		t.Fatal(err)
	}
	c := engine.Config{Ranges: ranges, Units: units, Slots: 2, Context: min(640, m.Context), Block: 64}
	change(&c)
	e, err := engine.New(t.Context(), m, c)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// openOwned opens a unit that an engine will close, with the validation layer
// on, which must be silent also after that.
func openOwned(t testing.TB, cfg Config) *Unit {
	t.Helper()
	if cfg.Name == "" {
		cfg.Name = "gpu"
	}
	cfg.Vulkan.Validate = true
	u, err := New(cfg)
	if err != nil {
		missing(t, err)
	}
	t.Cleanup(func() {
		if u.dev != nil {
			t.Error("the unit was not closed")
		}
		for _, m := range u.Messages() {
			t.Error("the validation layer says: ", m)
		}
	})
	return u
}

func openCPU(t testing.TB, name string) unit.Unit {
	t.Helper()
	u, err := cpu.New(cpu.Config{Name: name, Threads: 1, ISA: kernel.Best()})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func closeEngine(t testing.TB, e *engine.Engine) {
	t.Helper()
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// answers are the recorded ones, or in short mode three of them.
func answers(t testing.TB) []golden.Answer {
	t.Helper()
	out := golden.Answers(t, testdata)
	if testing.Short() {
		out = out[:3]
	}
	return out
}

// follow evaluates a prompt and an answer, token by token or in blocks, and calls
// each with the logits that the answer's tokens were chosen from.
func follow(t *testing.T, e *engine.Engine, prompt, answer []int32, blocks bool, each func(i int, logits []float32)) {
	t.Helper()
	s, err := e.Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	n := len(prompt)
	see := func(pos int, logits []float32) error {
		if pos >= n-1 {
			each(pos-n+1, logits)
		}
		return nil
	}
	if blocks {
		tokens := slices.Concat(prompt, answer[:len(answer)-1])
		if err := s.Forward(t.Context(), tokens[:n-1], engine.None, nil); err != nil {
			t.Fatal(err)
		}
		if err := s.Forward(t.Context(), tokens[n-1:], engine.Every, see); err != nil {
			t.Fatal(err)
		}
		return
	}
	next := prompt
	for i := range answer {
		if err := s.Forward(t.Context(), next, engine.Last, see); err != nil {
			t.Fatal(err)
		}
		next = answer[i : i+1]
	}
}

// On F32 weights the recorded logits are met within their tolerance, and the
// tokens are the recorded ones: with all chunks on the device, which evaluates
// whole answers at once, and with the model split across CPU and device, token by
// token.
func TestGoldensF32(t *testing.T) {
	const tolerance = 2e-3
	m := loadModel(t, "tiny/tiny-f32.gguf")
	for name, place := range map[string]func() []unit.Unit{
		"gpu": func() []unit.Unit { u := openOwned(t, Config{}); return []unit.Unit{u, u, u} },
		"split": func() []unit.Unit {
			u, c := openOwned(t, Config{}), openCPU(t, "cpu:0")
			return []unit.Unit{c, c, u, c}
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := start(t, m, place(), func(*engine.Config) {})
			defer closeEngine(t, e)
			for _, g := range answers(t) {
				var ids []int32
				worst, compared := 0.0, 0
				follow(t, e, g.Prompt, g.Turn(), name == "gpu", func(i int, logits []float32) {
					ids = append(ids, sampler.Best(logits))
					for _, x := range g.Steps {
						if x.Position != len(g.Prompt)-1+i {
							continue
						}
						compared++
						for _, x := range x.Top10 {
							worst = max(worst, math.Abs(x[1]-float64(logits[int(x[0])])))
						}
					}
				})
				if compared == 0 || worst > tolerance {
					t.Errorf("%s: largest difference of %d positions %.2g, more than %g", g.Name, compared, worst, tolerance)
				}
				if g.Margin > 2*tolerance && !slices.Equal(ids, g.Turn()) {
					t.Errorf("%s: %v\nnot\n%v", g.Name, ids, g.Turn())
				}
			}
		})
	}
}

// On quantised weights logits are those of the float32 evaluator within a
// tolerance, for all recorded answers, and the tokens are the recorded ones where
// the margin between the best two is above 0.5: the device does not round
// activations to eight bits, as the recorded runs did.
func TestGoldensQuantised(t *testing.T) {
	const tolerance = 5e-5
	for _, typ := range []string{"q8_0", "q4_0"} {
		t.Run(typ, func(t *testing.T) {
			m := loadModel(t, "tiny/tiny-"+typ+".gguf")
			u := openOwned(t, Config{})
			e := start(t, m, []unit.Unit{u, u}, func(*engine.Config) {})
			defer closeEngine(t, e)
			most := 0.0
			for _, g := range answers(t) {
				want := g.Q8_0
				if typ == "q4_0" {
					want = g.Q4_0
				}
				if end := slices.Index(want, golden.EndOfTurn); end >= 0 {
					want = want[:end+1]
				}
				n := len(g.Prompt)
				plain := evaluate(t, m, slices.Concat(g.Prompt, want[:len(want)-1]), n-1)
				var ids []int32
				worst := 0.0
				follow(t, e, g.Prompt, want, true, func(i int, logits []float32) {
					ids = append(ids, sampler.Best(logits))
					worst = max(worst, agreement.Compare(plain.Row(i), logits).Difference)
				})
				most = max(most, worst)
				if !(worst <= tolerance) {
					t.Errorf("%s: %.2g from the float32 evaluator, more than %g", g.Name, worst, tolerance)
				}
				if g.Margin > 0.5 && !slices.Equal(ids, want) {
					t.Errorf("%s: %v\nnot\n%v", g.Name, ids, want)
				}
			}
			t.Logf("at most %.2g from the float32 evaluator", most)
		})
	}
}

// The other architectures meet their recorded logits on F32 weights, and the
// float32 evaluator's on Q8_0.
func TestArchitectures(t *testing.T) {
	for arch, tolerance := range map[string]float64{"llama": 2e-3, "qwen2": 2e-3, "qwen3": 2e-3, "gemma3": 1e-2} {
		t.Run(arch, func(t *testing.T) {
			g := golden.Random(t, testdata, arch)
			want := program.Matrix{Width: g.Width, Data: g.Data}
			for _, typ := range []string{"f32", "q8_0"} {
				m := loadModel(t, "archs/random-"+arch+"-"+typ+".gguf")
				if typ == "q8_0" {
					want, tolerance = evaluate(t, m, g.Tokens, 0), 5e-5
				}
				u := openOwned(t, Config{})
				e := start(t, m, []unit.Unit{u, u}, func(c *engine.Config) { c.Block = 32 })
				s, err := e.Stream(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				worst, n := 0.0, 0
				err = s.Forward(t.Context(), g.Tokens, engine.Every, func(pos int, logits []float32) error {
					worst = max(worst, agreement.Compare(want.Row(pos), logits).Difference)
					n++
					return nil
				})
				s.Close()
				closeEngine(t, e)
				if err != nil || n != len(g.Tokens) {
					t.Fatalf("%d rows: %v", n, err)
				}
				t.Logf("%s: largest difference %.2g", typ, worst)
				if !(worst <= tolerance) {
					t.Errorf("%s: largest difference %.2g, more than %g", typ, worst, tolerance)
				}
			}
		})
	}
}

// evaluate is the float32 evaluator's logits of all tokens from one on.
func evaluate(t testing.TB, m *model.Model, tokens []int32, from int) program.Matrix {
	t.Helper()
	p, err := m.Program(0, len(m.Layers))
	if err != nil {
		t.Fatal(err)
	}
	b := program.Block{Tokens: tokens}
	for i := from; i < len(tokens); i++ {
		b.Wanted = append(b.Wanted, i)
	}
	x, err := new(program.Evaluator).Run(b, p)
	if err != nil {
		t.Fatal(err)
	}
	return x
}
