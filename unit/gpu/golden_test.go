package gpu

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/tandemrun/tandem/engine"
	"github.com/tandemrun/tandem/gguf"
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

// goldens are recorded answers; see testdata/tiny.
type golden struct {
	Name      string
	PromptIDs []int32 `json:"prompt_ids"`
	F32       []int32 `json:"greedy_f32"`
	Q8_0      []int32 `json:"greedy_q8_0"`
	Q4_0      []int32 `json:"greedy_q4_0"`
	End       *int    `json:"first_end_of_turn"`
	Margin    float64 `json:"min_margin_before_end"`
	Steps     []struct {
		Step, Position int
		Top10          [][2]float64 `json:"top10_pytorch"`
	}
}

func goldens(t testing.TB) []golden {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(testdata, "tiny", "golden", "[0-9][0-9]-*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d golden files (%v)", len(files), err)
	}
	if testing.Short() {
		files = files[:3]
	}
	var out []golden
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var g golden
		if err := json.Unmarshal(data, &g); err != nil {
			t.Fatal(err)
		}
		out = append(out, g)
	}
	return out
}

// follow feeds a golden answer and returns the best token of each step and the
// largest difference from the golden logits.
func follow(t *testing.T, e *engine.Engine, g golden, answer []int32) (ids []int32, worst float64) {
	t.Helper()
	s, err := e.Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	at := map[int]int{}
	for i, x := range g.Steps {
		at[x.Position] = i
	}
	next := g.PromptIDs
	for step := range answer {
		err := s.Forward(t.Context(), next, engine.Last, func(pos int, logits []float32) error {
			if i, ok := at[pos]; ok {
				for _, x := range g.Steps[i].Top10 {
					worst = max(worst, math.Abs(x[1]-float64(logits[int(x[0])])))
				}
			}
			ids = append(ids, sampler.Best(logits))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		next = answer[step : step+1]
	}
	return ids, worst
}

// On F32 weights the golden logits are met within the tolerance of the files,
// and the tokens are the golden ones, with all chunks on the device and with the
// model split across CPU and device.
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
			for _, g := range goldens(t) {
				end := len(g.F32)
				if g.End != nil {
					end = *g.End + 1
				}
				ids, worst := follow(t, e, g, g.F32[:end])
				if worst > tolerance {
					t.Errorf("%s: largest difference %.2g, more than %g", g.Name, worst, tolerance)
				}
				if g.Margin > 2*tolerance && fmt.Sprint(ids) != fmt.Sprint(g.F32[:end]) {
					t.Errorf("%s: %v\nnot\n%v", g.Name, ids, g.F32[:end])
				}
			}
		})
	}
}

// On quantised weights the answers are the golden ones where the margin between
// the best two tokens is above 0.5: the device does not round activations to
// eight bits, as the recorded runs did.
func TestGoldensQuantised(t *testing.T) {
	for _, typ := range []string{"q8_0", "q4_0"} {
		t.Run(typ, func(t *testing.T) {
			u := openOwned(t, Config{})
			e := start(t, loadModel(t, "tiny/tiny-"+typ+".gguf"), []unit.Unit{u, u}, func(*engine.Config) {})
			defer closeEngine(t, e)
			for _, g := range goldens(t) {
				want := g.Q8_0
				if typ == "q4_0" {
					want = g.Q4_0
				}
				if g.End == nil || g.Margin <= 0.5 {
					continue // not a chat, or too close to call
				}
				end := 0
				for end < len(want) && want[end] != 106 {
					end++
				}
				end = min(end+1, len(want))
				if ids, _ := follow(t, e, g, want[:end]); fmt.Sprint(ids) != fmt.Sprint(want[:end]) {
					t.Errorf("%s: %v\nnot\n%v", g.Name, ids, want[:end])
				}
			}
		})
	}
}

// The other architectures meet their golden logits on F32 weights, and the plain
// evaluator's on Q8_0.
func TestArchitectures(t *testing.T) {
	for arch, tolerance := range map[string]float64{"llama": 2e-3, "qwen2": 2e-3, "qwen3": 2e-3, "gemma3": 1e-2} {
		t.Run(arch, func(t *testing.T) {
			var g struct{ Tokens []int32 }
			text, err := os.ReadFile(filepath.Join(testdata, "archs", "random-"+arch+".json"))
			if err == nil {
				err = json.Unmarshal(text, &g)
			}
			if err != nil {
				t.Fatal(err)
			}
			data, err := os.ReadFile(filepath.Join(testdata, "archs", "random-"+arch+".logits.f32"))
			if err != nil {
				t.Fatal(err)
			}
			want := make([]float32, len(data)/4)
			if _, err := binary.Decode(data, binary.LittleEndian, want); err != nil {
				t.Fatal(err)
			}
			for _, typ := range []string{"f32", "q8_0"} {
				m := loadModel(t, "archs/random-"+arch+"-"+typ+".gguf")
				if typ == "q8_0" {
					want = evaluate(t, m, g.Tokens)
				}
				u := openOwned(t, Config{})
				e := start(t, m, []unit.Unit{u, u}, func(c *engine.Config) { c.Block = 32 })
				s, err := e.Stream(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				worst, n := 0.0, 0
				err = s.Forward(t.Context(), g.Tokens, engine.Every, func(pos int, logits []float32) error {
					for i, x := range logits {
						worst = max(worst, math.Abs(float64(x)-float64(want[pos*len(logits)+i])))
					}
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
