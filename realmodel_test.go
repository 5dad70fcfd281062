package tandem_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tandemrun/tandem"
	"github.com/tandemrun/tandem/gguf"
	"github.com/tandemrun/tandem/quant"
)

// peerFile is what bench/models/peer.mjs writes: greedy texts of another
// program and how far that program is from itself in other settings.
type peerFile struct {
	Model string
	Peer  string
	Form  string  // chat: Input is a user's message; raw: the beginning of a text
	Bound float64 // how far another program's best token may lead before the peer's
	Noise []noise
	Texts []struct {
		Kind    string
		Input   string
		Prompt  []int32      // the peer's tokens of Input
		Greedy  []int32      // what it went on with
		Second  []int32      // the token it found second best at each position
		Logprob [][2]float64 // log-probabilities of both
	}
}

// noise is what the peer's own texts are to it in one other setting.
type noise struct {
	Largest, RMS float64 // how far the margin of the best two tokens moves
	Lead         float64 `json:"largest_lead"` // the most that another token leads by
	Other        int     `json:"other_token"`  // how often one does
}

// A trained model that another program has answered prompts with: fed with
// those answers, our best token at each position is that program's, or leads
// before it by no more than that program moves when its own settings change.
// The prompts' tokens, from text or a chat template, are equal.
//
// Quantised weights hide small errors, since both programs round activations to
// 8 bits, which moves a margin by a tenth and more. With the same weights
// expanded to F32 neither does, and the bound is far sharper.
func TestRealModelsAgreeWithPeer(t *testing.T) {
	folder := os.Getenv("TANDEM_MODELS")
	if folder == "" {
		t.Skip("TANDEM_MODELS is not set: run bench/models/fetch.sh and set it to the folder of the files")
	}
	for _, c := range []struct {
		peer     string
		expanded string // the file that the model is made from; "" if it is fetched
		required bool
	}{
		{"smollm2.peer.json", "", true},
		{"smollm2-f32.peer.json", "SmolLM2-135M-Instruct.Q4_1.gguf", true},
		{"gemma3-270m.peer.json", "", false},
	} {
		t.Run(c.peer, func(t *testing.T) {
			want := readPeer(t, filepath.Join("bench", "models", c.peer))
			path := filepath.Join(folder, want.Model)
			_, err := os.Stat(path)
			switch missing := errors.Is(err, fs.ErrNotExist); {
			case missing && c.expanded != "":
				if err := expand(path, filepath.Join(folder, c.expanded)); err != nil {
					t.Fatal(err)
				}
			case missing && !c.required:
				t.Skipf("%s is missing: bench/models/fetch.sh --all fetches it", path)
			}
			m, err := tandem.Load(path)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			comparePeer(t, m, want)
		})
	}
}

func readPeer(t *testing.T, path string) peerFile {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var p peerFile
	if err := json.Unmarshal(data, &p); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	if len(p.Texts) != 20 || p.Bound <= 0 {
		t.Fatalf("%s: %d texts and bound %g, want 20 texts and a positive bound", path, len(p.Texts), p.Bound)
	}
	return p
}

func comparePeer(t *testing.T, m *tandem.Model, want peerFile) {
	ctx := context.Background()
	e, err := m.Open(ctx, tandem.Options{Context: 1024})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	s, err := e.NewStream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()

	var positions, equal int
	var lead, moved, squares float64
	for _, text := range want.Texts {
		var prompt []int32
		if want.Form == "chat" {
			prompt, err = m.Prompt([]tandem.Message{{Role: "user", Content: text.Input}})
		} else {
			prompt, err = m.Tokenize(text.Input, false, true)
		}
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(prompt, text.Prompt) {
			t.Errorf("%.40q: prompt\n%d, the peer's is\n%d", text.Input, prompt, text.Prompt)
			continue
		}
		given := append(slices.Clone(prompt), text.Greedy[:len(text.Greedy)-1]...)
		err := s.Logits(ctx, given, true, func(pos int, logits []float32) error {
			i := pos - (len(prompt) - 1)
			if i < 0 {
				return nil
			}
			positions++
			best := argmax(logits)
			gap := float64(logits[best] - logits[text.Greedy[i]])
			if best == text.Greedy[i] {
				equal++
			} else if gap > want.Bound {
				t.Errorf("%.40q, token %d: %q leads by %.3f before the peer's %q, bound %.3f",
					text.Input, i, m.Token(best), gap, m.Token(text.Greedy[i]), want.Bound)
			}
			lead = max(lead, gap)
			d := math.Abs(float64(logits[text.Greedy[i]]-logits[text.Second[i]]) - (text.Logprob[i][0] - text.Logprob[i][1]))
			moved, squares = max(moved, d), squares+d*d
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	share := float64(equal) / float64(max(positions, 1))
	rms := math.Sqrt(squares / float64(max(positions, 1)))
	var own noise
	for _, n := range want.Noise {
		own.Largest, own.RMS = max(own.Largest, n.Largest), max(own.RMS, n.RMS)
		own.Lead, own.Other = max(own.Lead, n.Lead), max(own.Other, n.Other)
	}
	t.Logf("%s and %s, %d positions; in brackets the peer with itself in another setting", want.Model, want.Peer, positions)
	t.Logf("best token equal: %.1f %% (%.1f %%); largest lead of another: %.4f (%.4f), bound %.4f",
		100*share, 100*(1-float64(own.Other)/float64(max(positions, 1))), lead, own.Lead, want.Bound)
	t.Logf("margin of the best two tokens moves by %.4f (%.4f) root mean square, %.4f (%.4f) at most", rms, own.RMS, moved, own.Largest)
	if share < 0.95 {
		t.Errorf("%.1f %% of the best tokens are the peer's, want at least 95", 100*share)
	}
	// A small error in all positions changes few best tokens; it shows here.
	if rms > 1.25*own.RMS {
		t.Errorf("margins differ by %.3f (root mean square), more than 1.25 times as much as the peer's own", rms)
	}
}

// expand writes a GGUF file anew with all weights as F32.
func expand(dst, src string) (err error) {
	raw, err := os.ReadFile(src)
	if err != nil {
		return err
	}
	f, err := gguf.Read(src, raw)
	if err != nil {
		return err
	}
	defer f.Close()
	align := f.Alignment()
	le := binary.LittleEndian
	// The metadata stays as it is; the list of tensors follows it.
	describe := func(t *gguf.Tensor) []byte {
		b := le.AppendUint64(nil, uint64(len(t.Name)))
		b = le.AppendUint32(append(b, t.Name...), uint32(len(t.Dims)))
		for _, d := range t.Dims {
			b = le.AppendUint64(b, d)
		}
		return b
	}
	end := bytes.Index(raw, describe(f.Tensors()[0]))
	if end < 0 {
		return fmt.Errorf("%s: the list of tensors is not found", src)
	}
	head := slices.Clone(raw[:end])
	at := uint64(0)
	for _, t := range f.Tensors() {
		head = le.AppendUint32(append(head, describe(t)...), uint32(quant.F32))
		head = le.AppendUint64(head, at)
		at += (4*t.Elements() + align - 1) / align * align
	}
	pad := func(b []byte) []byte { return append(b, make([]byte, -len(b)&int(align-1))...) }

	// The file gets its name when it is whole.
	out, err := os.CreateTemp(filepath.Dir(dst), ".expand-*")
	if err != nil {
		return err
	}
	defer os.Remove(out.Name())
	defer func() {
		if err = errors.Join(err, out.Close()); err == nil {
			err = os.Rename(out.Name(), dst)
		}
	}()
	if _, err := out.Write(pad(head)); err != nil {
		return err
	}
	for _, t := range f.Tensors() {
		values := make([]float32, t.Elements())
		if err := t.Type.Dequantize(values, t.Data); err != nil {
			return fmt.Errorf("%s: %w", t.Name, err)
		}
		b := make([]byte, 4*len(values))
		if _, err := binary.Encode(b, le, values); err != nil {
			return err
		}
		if _, err := out.Write(pad(b)); err != nil {
			return err
		}
	}
	return nil
}

func argmax(v []float32) int32 {
	best := 0
	for i, x := range v {
		if x > v[best] {
			best = i
		}
	}
	return int32(best)
}
