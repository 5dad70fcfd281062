package gpu

import (
	"testing"

	"github.com/tandemrun/tandem/agreement"
	"github.com/tandemrun/tandem/engine"
	"github.com/tandemrun/tandem/gguf"
	"github.com/tandemrun/tandem/model"
	"github.com/tandemrun/tandem/model/catalog"
	"github.com/tandemrun/tandem/synth"
	"github.com/tandemrun/tandem/unit"
)

// On weights of each type the device gives what the plain float32 evaluator gives,
// but for the order of additions. A CPU unit rounds activations to eight bits
// beside quantised weights and is further away, by far the most of what there is
// between the two units; docs/gpu.md states these tolerances.
//
// The weights are random, so the best two tokens are often close, and every
// position counts.
func TestAgreement(t *testing.T) {
	types := []string{"f32", "f16", "q8_0", "q4_0", "q4_k_m", "q6_k"}
	if testing.Short() {
		types = types[3:4]
	}
	const (
		difference = 5e-5  // of two logits
		divergence = 1e-10 // mean KL
	)
	shape, err := synth.ShapeNamed("gemma4-e2b")
	if err != nil {
		t.Fatal(err)
	}
	shape.Name, shape.Layers, shape.Shared, shape.Hidden, shape.FFN, shape.Heads, shape.Vocab = "small", 4, 2, 256, 512, 2, 2048
	var tokens []int32
	for i := range int32(40) {
		tokens = append(tokens, 300+i*37%1500)
	}
	for _, typ := range types {
		t.Run(typ, func(t *testing.T) {
			data, err := synth.Bytes(t.Context(), synth.Options{Shape: shape, Type: typ, Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			f, err := gguf.Read(typ, data)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { f.Close() })
			m, err := catalog.Read(f)
			if err != nil {
				t.Fatal(err)
			}
			plain := evaluate(t, m, tokens, 0)
			u := openOwned(t, Config{})
			device, host := every(t, m, []unit.Unit{u, u}, tokens), every(t, m, []unit.Unit{openCPU(t, "cpu:0")}, tokens)
			var ours, cpus, apart agreement.Tally
			for i := range tokens {
				want := plain.Row(i)
				ours.Add(agreement.Compare(want, device[i]))
				cpus.Add(agreement.Compare(want, host[i]))
				apart.Add(agreement.Compare(host[i], device[i]))
			}
			t.Logf("from float32: the device %.2g (mean KL %.2g), the CPU %.2g (%.2g, top-1 %.1f %%)", ours.Difference, ours.MeanKL(), cpus.Difference, cpus.MeanKL(), 100*cpus.TopShare())
			if !(ours.Difference <= difference) || !(ours.MeanKL() <= divergence) || ours.TopShare() < 1 {
				t.Errorf("from float32 the device is %.3g away, mean KL %.3g, top-1 %.3f; the tolerances are %g, %g and 1", ours.Difference, ours.MeanKL(), ours.TopShare(), difference, divergence)
			}
			if kl := apart.MeanKL(); !(kl <= 0.01) {
				t.Errorf("mean KL of the device from the CPU %.3g: tandem verify-unit refuses more than 0.01", kl)
			}
		})
	}
}

// every is the logits of every position.
func every(t testing.TB, m *model.Model, units []unit.Unit, tokens []int32) [][]float32 {
	t.Helper()
	e := start(t, m, units, func(*engine.Config) {})
	defer closeEngine(t, e)
	s, err := e.Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var out [][]float32
	err = s.Forward(t.Context(), tokens, engine.Every, func(_ int, logits []float32) error {
		out = append(out, append([]float32(nil), logits...))
		return nil
	})
	if err != nil || len(out) != len(tokens) {
		t.Fatalf("%d rows of %d: %v", len(out), len(tokens), err)
	}
	return out
}
