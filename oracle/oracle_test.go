package oracle_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tandemrun/tandem/oracle"
)

func sample() *oracle.File {
	return &oracle.File{
		Header: oracle.Header{
			Format: oracle.Format, Tandem: "tandem v1", Model: oracle.Model{Name: "a <b>.gguf", Description: "llama 1B Q4_0", Fingerprint: "ab"},
			Settings: oracle.Settings{MaxTokens: 3, Units: "cpu", Kernels: "avx2", KV: "f32", Streams: 1},
		},
		Answers: []oracle.Answer{
			{Prompt: "chat-1", Kind: "chat", PromptTokens: []int32{2, 5}, Tokens: []int32{1, 2, 3}},
			{Prompt: "qa-1", Kind: "qa", PromptTokens: []int32{2}, Tokens: []int32{106}},
		},
	}
}

func encode(t testing.TB, f *oracle.File) []byte {
	t.Helper()
	b, err := f.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestHash(t *testing.T) {
	// printf 1,2,3 | sha256sum
	const want = "8a6ae15122001229edb8866f56e342af12ae8187203c3e3b33931743e7c0c48d"
	if got := oracle.Hash([]int32{1, 2, 3}); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "o.jsonl")
	if err := sample().Write(path); err != nil {
		t.Fatal(err)
	}
	got, err := oracle.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	want := sample()
	for i := range want.Answers {
		want.Answers[i].Hash = oracle.Hash(want.Answers[i].Tokens)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	// An oracle may be recorded anew; another file is left alone.
	if err := sample().Write(path); err != nil {
		t.Error(err)
	}
	other := filepath.Join(t.TempDir(), "model.gguf")
	if err := os.WriteFile(other, []byte("GGUF and so on, longer than the mark of an oracle"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := sample().Write(other); err == nil {
		t.Error("a file that is no oracle was replaced")
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".oracle-*")); len(left) > 0 {
		t.Errorf("left behind: %s", left)
	}
}

// Whichever byte is changed or missing, the file is refused.
func TestDamaged(t *testing.T) {
	whole := encode(t, sample())
	for i := range whole {
		b := bytes.Clone(whole)
		b[i] ^= 1
		if _, err := oracle.Parse("f", b); err == nil {
			t.Errorf("byte %d changed from %q to %q was no error", i, whole[i], b[i])
		}
		if _, err := oracle.Parse("f", whole[:i]); err == nil {
			t.Errorf("%d of %d bytes were no error", i, len(whole))
		}
	}
	for _, c := range []struct {
		change func(*oracle.File)
		want   string
	}{
		{func(f *oracle.File) { f.Answers[1].Prompt = "chat-1" }, `line 3: prompt "chat-1" is there twice`},
		{func(f *oracle.File) { f.Answers[1].Prompt = "" }, "line 3: prompt is empty"},
		{func(f *oracle.File) { f.Answers[0].PromptTokens = nil }, "prompt_tokens is empty"},
		{func(f *oracle.File) { f.Answers[0].Tokens = nil }, "tokens has 0 ids"},
		{func(f *oracle.File) { f.Answers[0].Tokens = []int32{1, 2, 3, 4} }, "tokens has 4 ids"},
		{func(f *oracle.File) { f.Answers[0].Tokens[1] = -2 }, "token -2 is negative"},
		{func(f *oracle.File) { f.Settings.MaxTokens = 0 }, "settings.max_tokens is 0"},
		{func(f *oracle.File) { f.Answers = nil }, "there are no answers"},
	} {
		f := sample()
		c.change(f)
		if _, err := oracle.Parse("f", encode(t, f)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	if _, err := oracle.Parse("f", []byte("{}\n")); err == nil || !strings.Contains(err.Error(), "no oracle file") {
		t.Errorf("another file: %v", err)
	}
	newer := bytes.Replace(whole, []byte("oracle/1"), []byte("oracle/2"), 1)
	if _, err := oracle.Parse("f", newer); err == nil || !strings.Contains(err.Error(), "oracle/2") {
		t.Errorf("another format: %v", err)
	}
}

// What Parse takes, Encode writes again and Parse takes again.
func FuzzParse(f *testing.F) {
	whole := encode(f, sample())
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add([]byte(`{"format":"tandem-oracle/1"}` + "\n{}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := oracle.Parse("f", data)
		if err != nil {
			return
		}
		b, err := oracle.Parse("f", encode(t, a))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(a, b); d != "" {
			t.Error(d)
		}
	})
}
