package synth

import (
	"fmt"
	"slices"
	"strings"
)

// A Shape is what a model looks like from outside: all that a file says of it but the weights. The shapes of real models
// are from their public configurations.
type Shape struct {
	Name   string // as on the command line
	Title  string // as in general.name
	Arch   string // gemma4, gemma3, llama, qwen2 or qwen3
	Vocab  int    // tokens
	Layers int
	Hidden int // width of the state between layers
	FFN    int // width of the feed-forward part
	Heads  int // query heads
	// KVHeads is the number of key and value heads, HeadDim the width of a head.
	KVHeads, HeadDim int
	Context          int     // positions the model was trained for
	Epsilon          float32 // of RMSNorm
	Theta            float32 // base of RoPE's frequencies
	// Stretch is a linear scaling of RoPE; 0 for none.
	Stretch float32
	// Factors, if not nil, are llama 3's scaling of RoPE's frequencies.
	Factors *Factors
	// Window is the positions that a sliding layer sees. Every Period-th layer is a full one, the others are sliding.
	// Both are 0 if all layers are full.
	Window, Period int

	// What only gemma4 has: heads of another width and another base in sliding layers, the last Shared layers without a
	// KV cache of their own and, if Double, with a feed-forward part of twice the width; PLE columns of the per-layer
	// embeddings for each layer, and the cap of the logits.
	SlidingDim   int
	SlidingTheta float32
	Shared       int
	Double       bool
	PLE          int
	Softcap      float32
}

// Factors are the numbers of llama 3's RoPE scaling: wavelengths longer than Original/Low are stretched by Factor, those
// shorter than Original/High are not, and between them the stretch goes from the one to the other.
type Factors struct {
	Factor, Low, High float64
	Original          int // positions
}

// shapes returns the known shapes in the order people see them.
func shapes() []Shape {
	gemma4 := Shape{
		Arch: "gemma4", Vocab: 262144, Heads: 8, HeadDim: 512, Context: 131072, Epsilon: 1e-6, Theta: 1e6, Window: 512,
		SlidingDim: 256, SlidingTheta: 1e4, PLE: 256, Softcap: 30,
	}
	e2b, e4b := gemma4, gemma4
	e2b.Name, e2b.Title, e2b.Layers, e2b.Hidden, e2b.FFN, e2b.KVHeads = "gemma4-e2b", "Gemma 4 E2B", 35, 1536, 6144, 1
	e2b.Period, e2b.Shared, e2b.Double = 5, 20, true
	e4b.Name, e4b.Title, e4b.Layers, e4b.Hidden, e4b.FFN, e4b.KVHeads = "gemma4-e4b", "Gemma 4 E4B", 42, 2560, 10240, 2
	e4b.Period, e4b.Shared = 6, 18

	gemma3 := Shape{
		Arch: "gemma3", Vocab: 262144, HeadDim: 256, Context: 32768, Epsilon: 1e-6, Theta: 1e6, Window: 512, Period: 6,
	}
	m270, b1, b4 := gemma3, gemma3, gemma3
	m270.Name, m270.Title, m270.Layers, m270.Hidden, m270.FFN = "gemma3-270m", "Gemma 3 270M", 18, 640, 2048
	m270.Heads, m270.KVHeads = 4, 1
	b1.Name, b1.Title, b1.Layers, b1.Hidden, b1.FFN = "gemma3-1b", "Gemma 3 1B", 26, 1152, 6912
	b1.Heads, b1.KVHeads = 4, 1
	b4.Name, b4.Title, b4.Layers, b4.Hidden, b4.FFN = "gemma3-4b", "Gemma 3 4B", 34, 2560, 10240
	b4.Heads, b4.KVHeads, b4.Vocab, b4.Context, b4.Window, b4.Stretch = 8, 4, 262208, 131072, 1024, 8

	llama := Shape{
		Arch: "llama", Vocab: 128256, KVHeads: 8, FFN: 8192, Context: 131072, Epsilon: 1e-5, Theta: 5e5,
		Factors: &Factors{Factor: 32, Low: 1, High: 4, Original: 8192},
	}
	l1, l3 := llama, llama
	l1.Name, l1.Title, l1.Layers, l1.Hidden, l1.Heads, l1.HeadDim = "llama-1b", "Llama 3.2 1B", 16, 2048, 32, 64
	l3.Name, l3.Title, l3.Layers, l3.Hidden, l3.Heads, l3.HeadDim = "llama-3b", "Llama 3.2 3B", 28, 3072, 24, 128

	return []Shape{e2b, e4b, m270, b1, b4, l1, l3, {
		Name: "qwen2-0.5b", Title: "Qwen2.5 0.5B", Arch: "qwen2", Vocab: 151936, Layers: 24, Hidden: 896, FFN: 4864, Heads: 14,
		KVHeads: 2, HeadDim: 64, Context: 32768, Epsilon: 1e-6, Theta: 1e6,
	}, {
		Name: "qwen3-0.6b", Title: "Qwen3 0.6B", Arch: "qwen3", Vocab: 151936, Layers: 28, Hidden: 1024, FFN: 3072, Heads: 16,
		KVHeads: 8, HeadDim: 128, Context: 40960, Epsilon: 1e-6, Theta: 1e6,
	}}
}

// Shapes lists the names of the known shapes.
func Shapes() []string {
	var out []string
	for _, s := range shapes() {
		out = append(out, s.Name)
	}
	return out
}

// ShapeNamed returns a known shape, by its name in any case.
func ShapeNamed(name string) (Shape, error) {
	for _, s := range shapes() {
		if strings.EqualFold(s.Name, name) {
			return s, nil
		}
	}
	return Shape{}, fmt.Errorf("synth: no shape is named %q; known are %s", name, strings.Join(Shapes(), ", "))
}

// Cut returns the shape with its first n layers only. Layers that share a KV cache become fewer in the same proportion,
// and none if a producer of either kind would be missing.
func (s Shape) Cut(n int) (Shape, error) {
	if n < 1 || n > s.Layers {
		return s, fmt.Errorf("synth: %d layers of %s: it has 1 to %d", n, s.Name, s.Layers)
	}
	if s.Shared > 0 {
		s.Shared = max(0, min(s.Shared*n/s.Layers, n-s.Period))
	}
	s.Layers = n
	return s, nil
}

// check finds what cannot be written.
func (s Shape) check() error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("synth: shape %s: %s", s.Name, fmt.Sprintf(format, args...))
	}
	if !slices.Contains([]string{"gemma4", "gemma3", "llama", "qwen2", "qwen3"}, s.Arch) {
		return fail("the architecture %q is not known", s.Arch)
	}
	for _, n := range []int{s.Layers, s.Hidden, s.FFN, s.Heads, s.KVHeads, s.HeadDim, s.Context} {
		if n < 1 {
			return fail("a dimension is %d; all must be at least 1", n)
		}
	}
	if s.Heads%s.KVHeads != 0 {
		return fail("%d query heads over %d KV heads", s.Heads, s.KVHeads)
	}
	if s.Arch == "gemma4" && (s.PLE < 1 || s.SlidingDim < 1 || s.Window < 1 || s.Period < 1 || s.Shared < 0 || s.Shared >= s.Layers) {
		return fail("a dimension of gemma4 is missing")
	}
	if s.Vocab < smallestVocabulary {
		return fail("%d tokens; at least %d are needed", s.Vocab, smallestVocabulary)
	}
	return nil
}

// sliding reports whether a layer sees a window only.
func (s Shape) sliding(layer int) bool { return s.Period > 0 && (layer+1)%s.Period != 0 }

// headDim is the width of a layer's heads.
func (s Shape) headDim(layer int) int {
	if s.SlidingDim > 0 && s.sliding(layer) {
		return s.SlidingDim
	}
	return s.HeadDim
}

// shared reports whether a layer has no KV cache of its own.
func (s Shape) shared(layer int) bool { return layer >= s.Layers-s.Shared }

// ffn is the width of a layer's feed-forward part.
func (s Shape) ffn(layer int) int {
	if s.Double && s.shared(layer) {
		return 2 * s.FFN
	}
	return s.FFN
}
