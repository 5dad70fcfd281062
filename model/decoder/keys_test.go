package decoder_test

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tandemrun/tandem/gguf"
	"github.com/tandemrun/tandem/model"
	"github.com/tandemrun/tandem/model/gemma3"
	"github.com/tandemrun/tandem/model/llama"
	"github.com/tandemrun/tandem/model/qwen"
	"github.com/tandemrun/tandem/program"
	"github.com/tandemrun/tandem/quant"
)

// drop as the value of a key or tensor leaves it out.
type drop struct{}

// floats is a tensor of F32 values.
type floats struct {
	dims   []uint64
	values []float32
}

// edits are changes to a file: keys without their prefix, and tensors.
type edits struct {
	keys    map[string]any
	tensors map[string]any // floats, *gguf.Tensor or drop
}

// alter reads an architecture's F32 file with changes.
func alter(t testing.TB, c family, e edits) (*model.Model, error) {
	t.Helper()
	f, w := openFile(t, c.arch), gguf.NewWriter()
	set := func(key string, v any) {
		if err := w.Set(key, v); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range f.Keys() {
		if _, changed := e.keys[strings.TrimPrefix(key, c.arch+".")]; !changed {
			v, _ := f.Value(key)
			set(key, v.Any())
		}
	}
	for key, v := range e.keys {
		if v != (drop{}) {
			set(c.arch+"."+key, v)
		}
	}
	add := func(name string, v any) {
		var err error
		switch v := v.(type) {
		case floats:
			err = w.AddFloats(name, quant.F32, v.dims, v.values)
		case *gguf.Tensor:
			err = w.AddBytes(name, v.Type, v.Dims, v.Data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range f.Tensors() {
		if _, changed := e.tensors[x.Name]; !changed {
			add(x.Name, x)
		}
	}
	for name, v := range e.tensors {
		add(name, v)
	}
	return c.read(inMemory(t, w))
}

func inMemory(t testing.TB, w *gguf.Writer) *gguf.File {
	t.Helper()
	var b bytes.Buffer
	if _, err := w.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Read("altered.gguf", b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func mustAlter(t testing.TB, c family, e edits) *model.Model {
	t.Helper()
	m, err := alter(t, c, e)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func key(name string, v any) edits    { return edits{keys: map[string]any{name: v}} }
func tensor(name string, v any) edits { return edits{tensors: map[string]any{name: v}} }

func byArch(t testing.TB, arch string) family {
	t.Helper()
	i := slices.IndexFunc(families(), func(c family) bool { return c.arch == arch })
	if i < 0 {
		t.Fatalf("no family %s", arch)
	}
	return families()[i]
}

// expectError checks that reading fails with an error that has all the words.
func expectError(t testing.TB, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, want one with %q", words)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q does not say %q", err, w)
		}
	}
}

func TestMissingKeys(t *testing.T) {
	for _, c := range families() {
		keys := []string{"context_length", "embedding_length", "block_count", "feed_forward_length",
			"attention.head_count", "attention.layer_norm_rms_epsilon"}
		if c.arch != llama.Arch {
			keys = append(keys, "rope.freq_base")
		}
		if c.arch == gemma3.Arch {
			keys = append(keys, "attention.sliding_window")
		}
		for _, k := range keys {
			_, err := alter(t, c, key(k, drop{}))
			expectError(t, err, "altered.gguf", c.arch+"."+k)
		}
	}
}

func TestContradictoryKeys(t *testing.T) {
	huge := uint32(math.MaxInt32)
	for _, x := range []struct {
		arch, key string
		value     any
		says      string // beside the key, if not empty
	}{
		{llama.Arch, "context_length", uint32(0), "out of range"},
		{llama.Arch, "context_length", "many", ""},
		{llama.Arch, "block_count", uint32(5000), "at most"},
		{llama.Arch, "attention.head_count_kv", uint32(3), "3 KV heads"},
		{llama.Arch, "attention.head_count", []uint32{4, 4}, "2 values for 4 layers"},
		{llama.Arch, "attention.layer_norm_rms_epsilon", float32(-1), "positive"},
		{llama.Arch, "attention.sliding_window", uint32(64), "no sliding layers"},
		{llama.Arch, "expert_count", uint32(8), "experts"},
		{llama.Arch, "rope.dimension_count", uint32(33), "heads of 32"},
		{llama.Arch, "rope.dimension_count", uint32(64), "heads of 32"},
		{llama.Arch, "rope.scaling.type", "yarn", "none and linear"},
		{llama.Arch, "rope.scaling.type", "longrope", "none and linear"},
		{llama.Arch, "rope.scaling.factor", float32(0), "positive"},
		{llama.Arch, "rope.scaling.attn_factor", float32(1.2), "only 1"},
		{llama.Arch, "vocab_size", uint32(500), "512 rows"},
		{qwen.Arch2, "rope.dimension_count", uint32(16), "heads of 32"},
		{qwen.Arch3, "rope.dimension_count", uint32(16), "heads of 32"},
		{qwen.Arch3, "attention.sliding_window", uint32(64), "no sliding layers"},
		{gemma3.Arch, "attention.sliding_window_pattern", []bool{true, false}, "2 values for 7 layers"},
		{gemma3.Arch, "attention.sliding_window_pattern", uint32(0), "out of range"},
		{gemma3.Arch, "final_logit_softcapping", float32(0), "positive"},
	} {
		_, err := alter(t, byArch(t, x.arch), key(x.key, x.value))
		expectError(t, err, x.arch+"."+x.key, x.says)
	}
	// Pairs of keys of which one is wrong.
	for _, x := range []struct {
		keys map[string]any
		says []string
	}{
		{map[string]any{"rope.scaling.type": "none", "rope.scaling.factor": float32(4)}, []string{"rope.scaling.factor", "rope.scaling.type is none"}},
		{map[string]any{"rope.scaling.type": "linear"}, []string{"rope.scaling.factor"}},
		{map[string]any{"attention.key_length": drop{}, "attention.head_count": uint32(3)}, []string{"attention.key_length", "embedding_length 128"}},
	} {
		_, err := alter(t, byArch(t, llama.Arch), edits{keys: x.keys})
		expectError(t, err, x.says...)
	}
	// Sizes that no tensor has are found by the tensors, and take no memory.
	for _, k := range []string{"embedding_length", "feed_forward_length", "attention.key_length", "attention.value_length"} {
		for _, c := range families() {
			_, err := alter(t, c, key(k, huge-1))
			expectError(t, err, "altered.gguf")
		}
	}
}

func TestTensorsThatDoNotFit(t *testing.T) {
	row := floats{[]uint64{128}, make([]float32, 128)}
	for _, x := range []struct {
		arch, name string
		value      any
		says       string
	}{
		{llama.Arch, "blk.2.ffn_up.weight", drop{}, "is missing"},
		{llama.Arch, "output_norm.weight", floats{[]uint64{64}, make([]float32, 64)}, "shape"},
		{llama.Arch, "blk.0.attn_q_norm.weight", row, "not one that the architecture llama has"},
		{llama.Arch, "rope_freqs.weight", floats{[]uint64{16}, make([]float32, 16)}, "not a positive number"},
		{llama.Arch, "blk.0.attn_q.bias", floats{[]uint64{64}, make([]float32, 64)}, "shape"},
		{qwen.Arch2, "blk.3.attn_k.bias", drop{}, "is missing"},
		{qwen.Arch3, "blk.1.attn_k_norm.weight", drop{}, "is missing"},
		{gemma3.Arch, "blk.6.post_ffw_norm.weight", drop{}, "is missing"},
	} {
		_, err := alter(t, byArch(t, x.arch), tensor(x.name, x.value))
		expectError(t, err, x.name, x.says)
	}
}

// ropes returns the frequencies of each layer's keys.
func ropes(t testing.TB, m *model.Model) [][]float64 {
	t.Helper()
	var out [][]float64
	for i := range m.Layers {
		p := programs(t, m, model.Range{First: i, Last: i + 1})[0]
		j := slices.IndexFunc(p.Ops, func(op program.Op) bool { _, ok := op.(program.Rope); return ok })
		out = append(out, p.Ops[j].(program.Rope).Freqs)
	}
	return out
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-12*math.Abs(b) }

// A linear factor slows down every pair of full layers, and none of sliding
// ones, which have a base of their own.
func TestRopeScaling(t *testing.T) {
	for _, x := range []map[string]any{
		{"rope.scaling.type": "linear", "rope.scaling.factor": float32(8)},
		{"rope.scaling.factor": float32(8)},
		{"rope.scale_linear": float32(8)},
	} {
		for _, c := range families() {
			plain, scaled := mustAlter(t, c, edits{}), mustAlter(t, c, edits{keys: x})
			before, after := ropes(t, plain), ropes(t, scaled)
			for i, l := range plain.Layers {
				factor := 8.0
				if l.Kind == model.Sliding {
					factor = 1
				}
				for j := range before[i] {
					if !near(after[i][j]*factor, before[i][j]) {
						t.Fatalf("%s, layer %d, pair %d: %g, not %g/%g", c.arch, i, j, after[i][j], before[i][j], factor)
					}
				}
			}
		}
	}
}

func TestRopeBases(t *testing.T) {
	c := byArch(t, gemma3.Arch)
	for i, f := range ropes(t, load(t, c)) {
		base := 1e4
		if i == 5 { // the sixth of seven layers is the full one
			base = 1e6
		}
		if len(f) != 16 || f[0] != 1 || !near(f[1], math.Pow(base, -1./16)) {
			t.Errorf("layer %d: %d pairs, the second turns by %g", i, len(f), f[1])
		}
	}
	f := ropes(t, mustAlter(t, c, key("rope.freq_base_swa", float32(500))))
	if !near(f[0][1], math.Pow(500, -1./16)) {
		t.Errorf("rope.freq_base_swa is not followed: %g", f[0][1])
	}
	// Llama 2 files have no base; and only a part of a head may rotate.
	e := edits{map[string]any{"rope.freq_base": drop{}, "rope.dimension_count": uint32(16)}, map[string]any{"rope_freqs.weight": drop{}}}
	m := mustAlter(t, byArch(t, llama.Arch), e)
	if f := ropes(t, m)[0]; len(f) != 8 || !near(f[1], math.Pow(1e4, -1./8)) {
		t.Errorf("%d pairs, the second turns by %g", len(f), f[1])
	}
	expectNote(t, m, "llama.rope.freq_base")
}

func expectNote(t testing.TB, m *model.Model, word string) {
	t.Helper()
	if !slices.ContainsFunc(m.Notes, func(s string) bool { return strings.Contains(s, word) }) {
		t.Errorf("no note says %q: %q", word, m.Notes)
	}
}

func TestSlidingPattern(t *testing.T) {
	c := byArch(t, gemma3.Arch)
	kinds := func(m *model.Model) string {
		s := ""
		for _, l := range m.Layers {
			if want := map[model.Kind]int{model.Sliding: 16}[l.Kind]; l.Window != want {
				t.Errorf("a %s layer has window %d", l.Kind, l.Window)
			}
			s += l.Kind.String()[:1]
		}
		return s
	}
	m := load(t, c)
	if s := kinds(m); s != "sssssfs" {
		t.Errorf("by default layers are %s", s)
	}
	expectNote(t, m, "gemma3.attention.sliding_window_pattern")
	if s := kinds(mustAlter(t, c, key("attention.sliding_window_pattern", uint32(3)))); s != "ssfssfs" {
		t.Errorf("with a period of 3 layers are %s", s)
	}
	array := []bool{true, false, true, true, false, false, true}
	if s := kinds(mustAlter(t, c, key("attention.sliding_window_pattern", array))); s != "sfssffs" {
		t.Errorf("by an array layers are %s", s)
	}
}

func logits(t testing.TB, m *model.Model, tokens []int32) []float32 {
	t.Helper()
	x, err := new(program.Evaluator).Run(program.Block{Tokens: tokens, Wanted: upTo(len(tokens))}, whole(t, m)...)
	if err != nil {
		t.Fatal(err)
	}
	return x.Data
}

// What the format lets a file leave out means the same when it is written.
func TestDefaults(t *testing.T) {
	tokens := []int32{5, 300, 17, 17, 511}
	for _, c := range families() {
		m := load(t, c)
		want := logits(t, m, tokens)
		implicit := mustAlter(t, c, edits{keys: map[string]any{
			"attention.key_length": drop{}, "attention.value_length": drop{}, "rope.dimension_count": drop{}, "vocab_size": drop{},
		}})
		var kv []uint32
		for _, l := range m.Layers {
			kv = append(kv, uint32(l.KVHeads))
		}
		explicit := mustAlter(t, c, edits{keys: map[string]any{
			"attention.head_count_kv": kv, "rope.dimension_count": uint64(32), "rope.scaling.type": "none",
			"attention.scale": float32(1 / math.Sqrt(32)), "expert_count": uint32(0),
		}})
		if !slices.Equal(logits(t, implicit, tokens), want) {
			t.Errorf("%s: defaults that are left out change logits", c.arch)
		}
		if !slices.Equal(logits(t, explicit, tokens), want) {
			t.Errorf("%s: defaults that are written change logits", c.arch)
		}
		expectNote(t, implicit, c.arch+".attention.key_length")
	}
}

// A head of its own is used instead of the embedding table, and a bias is
// added wherever there is one.
func TestOptionalTensors(t *testing.T) {
	c, tokens := byArch(t, llama.Arch), []int32{5, 300, 17}
	table, _ := openFile(t, c.arch).Tensor("token_embd.weight")
	want := logits(t, load(t, c), tokens)
	if !slices.Equal(logits(t, mustAlter(t, c, tensor("output.weight", table)), tokens), want) {
		t.Error("a copy of the table as the head changes logits")
	}
	bias := make([]float32, 512)
	bias[7] = 3
	got := logits(t, mustAlter(t, c, tensor("output.bias", floats{[]uint64{512}, bias})), tokens)
	for i := range got {
		if got[i] != want[i]+bias[i%512] {
			t.Fatalf("logit %d is %g with a bias of %g, and %g without", i, got[i], bias[i%512], want[i])
		}
	}
	for _, name := range []string{"attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"} {
		n := map[string]int{"attn_k": 64, "attn_v": 64, "ffn_gate": 256, "ffn_up": 256}[name]
		if n == 0 {
			n = 128
		}
		b := make([]float32, n)
		for i := range b {
			b[i] = 1 / float32(i+1)
		}
		m := mustAlter(t, c, tensor(fmt.Sprintf("blk.1.%s.bias", name), floats{[]uint64{uint64(n)}, b}))
		if slices.Equal(logits(t, m, tokens), want) {
			t.Errorf("the bias of %s changes nothing", name)
		}
	}
}

func TestSoftcap(t *testing.T) {
	c, tokens := byArch(t, gemma3.Arch), []int32{5, 300, 17}
	want := logits(t, load(t, c), tokens)
	got := logits(t, mustAlter(t, c, key("final_logit_softcapping", float32(2))), tokens)
	for i, x := range want {
		if y := 2 * math.Tanh(float64(x)/2); math.Abs(y-float64(got[i])) > 1e-6 {
			t.Fatalf("logit %d is %g, not %g", i, got[i], y)
		}
	}
}

// Scores of the 27B model, known by its 62 layers, are scaled by the state's
// share of a head; attention.scale is above that.
func TestAttentionScale(t *testing.T) {
	const hidden, heads, dim, ffn, vocab = 8, 2, 16, 8, 4
	read := func(layers int, scale any) *model.Model {
		w := gguf.NewWriter()
		keys := map[string]any{
			"general.architecture": "gemma3", "gemma3.context_length": uint32(64), "gemma3.embedding_length": uint32(hidden),
			"gemma3.block_count": uint32(layers), "gemma3.feed_forward_length": uint32(ffn),
			"gemma3.attention.head_count": uint32(heads), "gemma3.attention.head_count_kv": uint32(1),
			"gemma3.attention.key_length": uint32(dim), "gemma3.attention.value_length": uint32(dim),
			"gemma3.attention.layer_norm_rms_epsilon": float32(1e-6), "gemma3.rope.freq_base": float32(1e6),
			"gemma3.attention.sliding_window": uint32(4),
		}
		if scale != nil {
			keys["gemma3.attention.scale"] = scale
		}
		for k, v := range keys {
			if err := w.Set(k, v); err != nil {
				t.Fatal(err)
			}
		}
		add := func(name string, dims ...uint64) {
			n := uint64(1)
			for _, d := range dims {
				n *= d
			}
			if err := w.AddFloats(name+".weight", quant.F32, dims, make([]float32, n)); err != nil {
				t.Fatal(err)
			}
		}
		add("token_embd", hidden, vocab)
		add("output_norm", hidden)
		for i := range layers {
			blk := fmt.Sprintf("blk.%d.", i)
			for _, name := range []string{"attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"} {
				add(blk+name, hidden)
			}
			add(blk+"attn_q_norm", dim)
			add(blk+"attn_k_norm", dim)
			add(blk+"attn_q", hidden, heads*dim)
			add(blk+"attn_k", hidden, dim)
			add(blk+"attn_v", hidden, dim)
			add(blk+"attn_output", heads*dim, hidden)
			add(blk+"ffn_gate", hidden, ffn)
			add(blk+"ffn_up", hidden, ffn)
			add(blk+"ffn_down", ffn, hidden)
		}
		m, err := gemma3.Read(inMemory(t, w))
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	for _, x := range []struct {
		layers int
		scale  any
		want   float32
	}{{26, nil, 0.25}, {62, nil, 0.5}, {62, float32(0.125), 0.125}, {26, float32(0.125), 0.125}} {
		m := read(x.layers, x.scale)
		n := 0
		for _, op := range whole(t, m)[0].Ops {
			if op, ok := op.(program.Attention); ok {
				n++
				if op.Scale != x.want {
					t.Fatalf("%d layers, attention.scale %v: scores are scaled by %g, not %g", x.layers, x.scale, op.Scale, x.want)
				}
			}
		}
		if n != x.layers {
			t.Fatalf("%d attentions in %d layers", n, x.layers)
		}
		if x.layers == 62 && x.scale == nil {
			expectNote(t, m, "gemma3.attention.scale")
		}
	}
}
