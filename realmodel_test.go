package tandem_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tandemrun/tandem"
)

// peerFile is what bench/models/peer.mjs writes: greedy texts of another
// program and how far that program is from itself in other settings.
type peerFile struct {
	Model string
	Peer  string
	Form  string  // chat: Input is a user's message; raw: the beginning of a text
	Bound float64 // how far another program's best token may lead before the peer's
	Noise []struct {
		RMS float64
	}
	Texts []struct {
		Kind    string
		Input   string
		Prompt  []int32      // the peer's tokens of Input
		Greedy  []int32      // what it went on with
		Second  []int32      // the token it found second best at each position
		Logprob [][2]float64 // log-probabilities of both
	}
}

// A trained model that another program has answered prompts with: fed with
// those answers, our best token at each position is that program's, or leads
// before it by no more than that program moves when its own settings change.
// The prompts' tokens, from text or a chat template, are equal.
func TestRealModelsAgreeWithPeer(t *testing.T) {
	folder := os.Getenv("TANDEM_MODELS")
	if folder == "" {
		t.Skip("TANDEM_MODELS is not set: run bench/models/fetch.sh and set it to the folder of the files")
	}
	for _, c := range []struct {
		peer     string
		required bool
	}{
		{"smollm2.peer.json", true},
		{"gemma3-270m.peer.json", false},
	} {
		t.Run(c.peer, func(t *testing.T) {
			want := readPeer(t, filepath.Join("bench", "models", c.peer))
			path := filepath.Join(folder, want.Model)
			if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) && !c.required {
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
	noisiest := slices.MaxFunc(want.Noise, func(a, b struct{ RMS float64 }) int { return cmp.Compare(a.RMS, b.RMS) })
	t.Logf("%s and %s: %d of %d best tokens equal (%.1f %%); the largest lead of another token is %.3f, bound %.3f",
		want.Model, want.Peer, equal, positions, 100*share, lead, want.Bound)
	rms := math.Sqrt(squares / float64(max(positions, 1)))
	t.Logf("the margin of the best two tokens differs from the peer's by %.3f (root mean square), at most %.3f; the peer's own moves by %.3f",
		rms, moved, noisiest.RMS)
	if share < 0.95 {
		t.Errorf("%.1f %% of the best tokens are the peer's, want at least 95", 100*share)
	}
	// A small error in all positions changes few best tokens; it shows here.
	if rms > 1.5*noisiest.RMS {
		t.Errorf("margins differ by %.3f (root mean square), more than 1.5 times as much as the peer's own", rms)
	}
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
