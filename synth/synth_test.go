package synth_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tandemrun/tandem/chat"
	"github.com/tandemrun/tandem/engine"
	"github.com/tandemrun/tandem/gguf"
	"github.com/tandemrun/tandem/model/catalog"
	"github.com/tandemrun/tandem/quant"
	"github.com/tandemrun/tandem/synth"
	"github.com/tandemrun/tandem/tokenizer"
	"github.com/tandemrun/tandem/unit"
	"github.com/tandemrun/tandem/unit/cpu"
	"github.com/tandemrun/tandem/unit/cpu/kernel"
)

// architectures are shapes of each.
var architectures = []string{"gemma4-e2b", "gemma4-e4b", "gemma3-270m", "gemma3-4b", "llama-1b", "qwen2-0.5b", "qwen3-0.6b"}

// small returns a shape made so narrow that a test can run it; it keeps its layers' kinds.
func small(t testing.TB, name string) synth.Shape {
	t.Helper()
	s, err := synth.ShapeNamed(name)
	if err != nil {
		t.Fatal(err)
	}
	layers := 4
	if s.Period > 0 {
		layers = 2*s.Period + 1
	}
	if s, err = s.Cut(layers); err != nil {
		t.Fatal(err)
	}
	s.Vocab, s.Hidden, s.FFN, s.HeadDim, s.Context = 3000, 256, 512, 64, 512
	if s.SlidingDim > 0 {
		s.SlidingDim, s.PLE, s.Window = 32, 64, 32
	}
	return s
}

func write(t testing.TB, o synth.Options) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.gguf")
	size, err := synth.WriteFile(context.Background(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() != size {
		t.Fatalf("%d bytes written, the file is %v (%v)", size, info, err)
	}
	return path
}

func open(t testing.TB, path string) *gguf.File {
	t.Helper()
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// TestRuns runs every architecture in every type and looks at the logits.
func TestRuns(t *testing.T) {
	for _, name := range architectures {
		for _, typ := range []string{"f32", "q4_0", "q4_k_m"} {
			t.Run(name+"/"+typ, func(t *testing.T) {
				f := open(t, write(t, synth.Options{Shape: small(t, name), Type: typ, Seed: 1}))
				m, err := catalog.Read(f)
				if err != nil {
					t.Fatal(err)
				}
				tok, err := tokenizer.New(f)
				if err != nil {
					t.Fatal(err)
				}
				ids, err := tok.EncodeText("The quick brown fox; 1, 2, 3 ... \u00e4\u00f6\u00fc", false, true)
				if err != nil {
					t.Fatal(err)
				}
				u, err := cpu.New(cpu.Config{Name: "cpu:0", Threads: 1, ISA: kernel.Best()})
				if err != nil {
					t.Fatal(err)
				}
				ranges, err := m.Balanced(1)
				if err != nil {
					t.Fatal(err)
				}
				e, err := engine.New(t.Context(), m, engine.Config{Ranges: ranges, Units: []unit.Unit{u}, Slots: 1, Context: 256, Block: 64})
				if err != nil {
					t.Fatal(err)
				}
				defer e.Close()
				s, err := e.Stream(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				var squares float64
				n := 0
				err = s.Forward(t.Context(), ids, engine.Every, func(_ int, logits []float32) error {
					for _, x := range logits {
						if math.IsNaN(float64(x)) || math.Abs(float64(x)) > 30 {
							t.Fatalf("a logit is %g", x)
						}
						squares += float64(x) * float64(x)
						n++
					}
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				if rms := math.Sqrt(squares / float64(n)); n != len(ids)*m.Vocab || rms < 0.5 || rms > 3 {
					t.Errorf("%d logits with a root mean square of %g, want %d near 1", n, rms, len(ids)*m.Vocab)
				}
			})
		}
	}
}

// TestBytes checks that the bytes depend on the seed, and not on the number of workers.
func TestBytes(t *testing.T) {
	s := small(t, "gemma4-e2b")
	read := func(seed uint64, workers int) []byte {
		data, err := os.ReadFile(write(t, synth.Options{Shape: s, Type: "q4_k_m", Seed: seed, Workers: workers}))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	one := read(1, 1)
	for _, workers := range []int{2, 3, 7} {
		if !bytes.Equal(one, read(1, workers)) {
			t.Errorf("%d workers write another file than one", workers)
		}
	}
	if bytes.Equal(one, read(2, 1)) {
		t.Error("two seeds give the same file")
	}
}

// TestValues looks at the values of every block type: mean 0 and the deviation that the rows' length asks for.
func TestValues(t *testing.T) {
	seen := map[quant.Type]bool{}
	for _, hidden := range []int{256, 288} { // 288 is no multiple of 256
		for _, typ := range synth.Types() {
			s := small(t, "gemma3-270m")
			s.Hidden, s.Layers = hidden, 8
			f := open(t, write(t, synth.Options{Shape: s, Type: typ, Seed: 3}))
			for _, x := range f.Tensors() {
				if len(x.Dims) != 2 {
					continue
				}
				cols, n := int(x.Dims[0]), int(x.Dims[0]*x.Dims[1])
				if n < 100_000 {
					continue // too few to have the mean and the deviation they are drawn for
				}
				seen[x.Type] = true
				if x.Name == "token_embd.weight" {
					cols = hidden
				}
				values := make([]float32, n)
				if err := x.Type.Dequantize(values, x.Data); err != nil {
					t.Fatal(err)
				}
				var sum, squares float64
				largest := 0.0
				for _, v := range values {
					sum += float64(v)
					squares += float64(v) * float64(v)
					largest = max(largest, math.Abs(float64(v)))
				}
				sigma := 1 / math.Sqrt(float64(cols))
				mean, deviation := sum/float64(n)/sigma, math.Sqrt(squares/float64(n))/sigma
				if math.Abs(mean) > 0.015 || math.Abs(deviation-1) > 0.03 || largest > 6*sigma {
					t.Errorf("%s, %s, %s: mean %.3f, deviation %.3f, largest %.2f, in units of the deviation wanted", typ, x.Name, x.Type, mean, deviation, largest/sigma)
				}
			}
		}
	}
	for _, typ := range []quant.Type{
		quant.F32, quant.F16, quant.BF16, quant.Q8_0, quant.Q4_0, quant.Q4_1, quant.Q5_0, quant.Q5_1, quant.Q2_K, quant.Q3_K,
		quant.Q4_K, quant.Q5_K, quant.Q6_K,
	} {
		if !seen[typ] {
			t.Errorf("no tensor is of type %s", typ)
		}
	}
}

// TestMix checks the types that llama-quantize would give to a model of this shape.
func TestMix(t *testing.T) {
	tensors := func(name, typ string) func(string) quant.Type {
		f := open(t, write(t, synth.Options{Shape: small(t, name), Type: typ}))
		return func(name string) quant.Type {
			x, ok := f.Tensor(name + ".weight")
			if !ok {
				t.Fatalf("no tensor %s", name)
			}
			return x.Type
		}
	}
	expect := func(typeOf func(string) quant.Type, want quant.Type, names ...string) {
		t.Helper()
		for _, name := range names {
			if got := typeOf(name); got != want {
				t.Errorf("%s is %s, want %s", name, got, want)
			}
		}
	}
	x := tensors("gemma4-e2b", "q4_k_m") // 11 layers, of which 5 have a cache
	expect(x, quant.Q6_K, "token_embd", "blk.0.ffn_down", "blk.9.ffn_down", "blk.10.ffn_down", "blk.3.ffn_down", "blk.2.attn_v")
	expect(x, quant.Q4_K, "blk.1.ffn_down", "blk.4.ffn_down", "blk.0.attn_v", "blk.0.attn_q", "blk.0.ffn_up")
	expect(x, quant.BF16, "per_layer_model_proj")
	expect(x, quant.Q5_0, "blk.0.proj")           // 64 columns
	expect(x, quant.Q8_0, "per_layer_token_embd") // 704 columns
	x = tensors("gemma4-e2b", "q4_0")
	expect(x, quant.Q6_K, "token_embd")
	expect(x, quant.Q8_0, "per_layer_token_embd")
	expect(x, quant.Q4_0, "blk.0.attn_v", "blk.0.proj", "blk.10.ffn_down")
	s := small(t, "gemma4-e2b")
	if s.PLE = 256; s.Layers != 11 || s.Shared != 6 {
		t.Fatalf("%d layers, %d of them shared", s.Layers, s.Shared)
	}
	f := open(t, write(t, synth.Options{Shape: s, Type: "q3_k_m"}))
	if x, _ := f.Tensor("per_layer_token_embd.weight"); x.Type != quant.Q6_K {
		t.Errorf("per_layer_token_embd is %s, want Q6_K", x.Type)
	}
	x = tensors("llama-1b", "q8_0")
	expect(x, quant.Q8_0, "token_embd", "blk.0.attn_v")
	x = tensors("llama-1b", "f16")
	expect(x, quant.F16, "token_embd", "blk.0.attn_v")
}

// TestVocabulary encodes texts and reads them back, and looks at the special tokens and the chat template.
func TestVocabulary(t *testing.T) {
	texts := []string{
		"", " ", "Hello, world!", "  two  spaces\n\n\nand lines\t\ttabs\r\n", "na\u00efve caf\u00e9 \u2014 \u20ac 12,50",
		"\u0416\u0443\u043a \u03b1\u03b2\u03b3 \u4f60\u597d \u3053\u3093\u306b\u3061\u306f \ud55c\uad6d\uc5b4 \u0627\u0644", "\U0001f600\U0001f9ff \U000e0041 \u0000\u0001",
		strings.Repeat("a", 200) + strings.Repeat(" ", 70) + strings.Repeat("\n", 40),
		"for (int i = 0; i < n; i++) { x[i] += 0x1F; }", "<unused5> <0x41> <eos> <|im_end|> <end_of_turn>",
	}
	ends := map[string]string{"gemma4": "<turn|>", "gemma3": "<end_of_turn>", "llama": "<|eot_id|>", "qwen2": "<|im_end|>", "qwen3": "<|im_end|>"}
	for _, name := range architectures {
		t.Run(name, func(t *testing.T) {
			s := small(t, name)
			f := open(t, write(t, synth.Options{Shape: s, Type: "q4_0"}))
			tok, err := tokenizer.New(f)
			if err != nil {
				t.Fatal(err)
			}
			if tok.Size() != s.Vocab {
				t.Errorf("%d tokens, want %d", tok.Size(), s.Vocab)
			}
			for _, text := range texts {
				ids, err := tok.EncodeText(text, false, false)
				if err != nil {
					t.Fatal(err)
				}
				if got := tok.Decode(ids, false); got != text {
					t.Errorf("%q comes back as %q", text, got)
				}
			}
			end, ok := tok.EOT()
			if want := ends[s.Arch]; !ok || tok.Token(end) != want || !tok.EndOfGeneration(end) {
				t.Errorf("the end of a turn is %q (%v), want %q", tok.Token(end), ok, want)
			}
			source, err := f.String("tokenizer.chat_template")
			if err != nil {
				t.Fatal(err)
			}
			bos, _ := tok.BOS()
			tpl, err := chat.New(chat.Options{Source: source, Arch: s.Arch, BOS: tok.Token(bos), Specials: tok.Specials()})
			if err != nil {
				t.Fatal(err)
			}
			messages := []chat.Message{{Role: "system", Content: "Be brief."}, {Role: "user", Content: "Hi"}, {Role: "assistant", Content: "Hello"}, {Role: "user", Content: "Bye"}}
			parts, err := tpl.Render(messages, true)
			if err != nil {
				t.Fatal(err)
			}
			turnEnds, text := 0, ""
			for _, p := range parts {
				if p.Control {
					if p.Text == ends[s.Arch] {
						turnEnds++
					}
				} else {
					text += p.Text
				}
			}
			want := 4
			if s.Arch == "gemma3" {
				want = 3 // the system's words are part of the user's turn
			}
			if turnEnds != want {
				t.Errorf("%d turns end, want %d: %v", turnEnds, want, parts)
			}
			at := 0
			for _, m := range messages {
				i := strings.Index(text[at:], m.Content)
				if i < 0 {
					t.Fatalf("%q is not in %q after byte %d", m.Content, text, at)
				}
				at += i + len(m.Content)
			}
		})
	}
}

// TestFullVocabulary checks the real sizes, and that words make text shorter.
func TestFullVocabulary(t *testing.T) {
	for name, tokens := range map[string]map[string]int32{
		"gemma4-e2b": {"<pad>": 0, "<eos>": 1, "<bos>": 2, "<unk>": 3, "<|turn>": 105, "<turn|>": 106},
		"gemma3-4b":  {"<bos>": 2, "<start_of_turn>": 105, "<end_of_turn>": 106},
		"llama-1b":   {"<|begin_of_text|>": 128000, "<|start_header_id|>": 128006, "<|eot_id|>": 128009},
		"qwen3-0.6b": {"<|endoftext|>": 151643, "<|im_start|>": 151644, "<|im_end|>": 151645},
	} {
		t.Run(name, func(t *testing.T) {
			real, err := synth.ShapeNamed(name)
			if err != nil {
				t.Fatal(err)
			}
			s := small(t, name)
			s.Vocab, s.Hidden = real.Vocab, 32
			if s, err = s.Cut(1); err != nil {
				t.Fatal(err)
			}
			if s.PLE > 0 {
				s.PLE = 32
			}
			tok, err := tokenizer.New(open(t, write(t, synth.Options{Shape: s, Type: "q4_0"})))
			if err != nil {
				t.Fatal(err)
			}
			if tok.Size() != real.Vocab {
				t.Errorf("%d tokens, want %d", tok.Size(), real.Vocab)
			}
			for token, want := range tokens {
				if id, ok := tok.ID(token); !ok || id != want {
					t.Errorf("%s has id %d, want %d", token, id, want)
				}
			}
			text := "It was a bright cold day in April, and the clocks were striking thirteen. \u4f60\u597d"
			ids, err := tok.EncodeText(text, false, false)
			if err != nil {
				t.Fatal(err)
			}
			if len(ids) > len(text)*2/5 {
				t.Errorf("%d tokens for %d bytes of text", len(ids), len(text))
			}
			if got := tok.Decode(ids, false); got != text {
				t.Errorf("%q comes back as %q", text, got)
			}
		})
	}
}

func TestCut(t *testing.T) {
	for _, x := range []struct {
		name           string
		layers, shared int
	}{{"gemma4-e2b", 35, 20}, {"gemma4-e2b", 10, 5}, {"gemma4-e2b", 6, 1}, {"gemma4-e2b", 2, 0}, {"gemma4-e4b", 42, 18}, {"gemma4-e4b", 14, 6}, {"llama-1b", 3, 0}} {
		s, err := synth.ShapeNamed(x.name)
		if err != nil {
			t.Fatal(err)
		}
		if s, err = s.Cut(x.layers); err != nil || s.Layers != x.layers || s.Shared != x.shared {
			t.Errorf("%s cut to %d layers: %d layers, %d shared (%v), want %d shared", x.name, x.layers, s.Layers, s.Shared, err, x.shared)
		}
	}
	s, err := synth.ShapeNamed("llama-1b")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{-1, 0, 17} {
		if _, err := s.Cut(n); err == nil {
			t.Errorf("%d layers of llama-1b are accepted", n)
		}
	}
}

func TestErrors(t *testing.T) {
	if _, err := synth.ShapeNamed("gpt-5"); err == nil || !strings.Contains(err.Error(), "gemma4-e2b") {
		t.Errorf("an unknown shape: %v, want an error that lists the known ones", err)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "x.gguf")
	s := small(t, "llama-1b")
	if _, err := synth.WriteFile(t.Context(), path, synth.Options{Shape: s, Type: "q9"}); err == nil || !strings.Contains(err.Error(), "q4_k_m") {
		t.Errorf("an unknown type: %v, want an error that lists the known ones", err)
	}
	tiny := s
	tiny.Vocab = 10
	heads := s
	heads.Heads = 3
	huge, err := synth.ShapeNamed("llama-3b")
	if err != nil {
		t.Fatal(err)
	}
	huge.FFN *= 1 << 25
	for _, bad := range []synth.Shape{{}, tiny, heads, huge} {
		_, err := synth.WriteFile(t.Context(), path, synth.Options{Shape: bad, Type: "q4_0"})
		if err == nil {
			t.Errorf("the shape %+v is accepted", bad)
		}
		if bad.FFN == huge.FFN && !errors.Is(err, synth.ErrSpace) {
			t.Errorf("a file of petabytes: %v", err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var steps []int64
	_, err = synth.WriteFile(ctx, path, synth.Options{Shape: s, Type: "q4_0", Progress: func(done, total int64) {
		if steps = append(steps, done); len(steps) == 3 {
			cancel()
		}
		if done > total {
			t.Errorf("%d of %d bytes are done", done, total)
		}
	}})
	if !errors.Is(err, context.Canceled) || !slices.IsSorted(steps) {
		t.Errorf("cancelled: %v, progress %v", err, steps)
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) > 0 {
		t.Errorf("failed writes leave %v behind (%v)", list, err)
	}
}
