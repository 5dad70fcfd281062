package tokenizer_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tandemrun/tandem/gguf"
	"github.com/tandemrun/tandem/tokenizer"
)

// open reads the vocabulary of a GGUF file.
func open(t testing.TB, path string) *tokenizer.Tokenizer {
	t.Helper()
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tok, err := tokenizer.New(f)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func tiny(t testing.TB) *tokenizer.Tokenizer { return open(t, "../model/tiny/tiny-q8_0.gguf") }

// vocabulary opens one of the vocabulary-only files that are not in the
// repository, or skips the test.
func vocabulary(t testing.TB, name string) (tok *tokenizer.Tokenizer, path string) {
	t.Helper()
	path = filepath.Join("../../shared/golden/vocab", name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("no vocabulary file: %v (see docs/tokenizer.md)", err)
	}
	return open(t, path), path
}

func readJSON(t *testing.T, path string, v any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, v); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// plainSpaces is what becomes of a text in vocabularies where U+2581 is a space.
func plainSpaces(text string) string { return strings.ReplaceAll(text, "\u2581", " ") }

func TestTinyVectors(t *testing.T) {
	tok := tiny(t)
	var vectors []struct {
		Text         string  `json:"text"`
		ParseSpecial bool    `json:"parse_special"`
		AddBOS       bool    `json:"add_bos"`
		IDs          []int32 `json:"ids"`
	}
	readJSON(t, "../testdata/tiny/golden/tokenizer.json", &vectors)
	if len(vectors) == 0 {
		t.Fatal("no vectors")
	}
	for _, v := range vectors {
		ids, err := tok.EncodeText(v.Text, v.ParseSpecial, v.AddBOS)
		if err != nil {
			t.Errorf("%q: %v", v.Text, err)
		}
		if !slices.Equal(ids, v.IDs) {
			t.Errorf("%q special=%v bos=%v: got %v, want %v", v.Text, v.ParseSpecial, v.AddBOS, ids, v.IDs)
		}
		want := plainSpaces(v.Text)
		if v.AddBOS {
			want = "<bos>" + want
		}
		if got := tok.Decode(v.IDs, true); got != want {
			t.Errorf("decoding %v: got %q, want %q", v.IDs, got, want)
		}
	}
}

func TestTinyPrompts(t *testing.T) {
	tok := tiny(t)
	paths, _ := filepath.Glob("../testdata/tiny/golden/[0-9][0-9]-*.json")
	if len(paths) == 0 {
		t.Fatal("no goldens")
	}
	for _, path := range paths {
		var g struct {
			Prompt    string  `json:"prompt"`
			PromptIDs []int32 `json:"prompt_ids"`
		}
		readJSON(t, path, &g)
		for _, addBOS := range []bool{false, true} { // the prompts begin with BOS: no second one
			ids, err := tok.EncodeText(g.Prompt, true, addBOS)
			if err != nil || !slices.Equal(ids, g.PromptIDs) {
				t.Errorf("%s: got %v, %v, want %v", path, ids, err, g.PromptIDs)
			}
		}
		if got := tok.Decode(g.PromptIDs, true); got != g.Prompt {
			t.Errorf("%s: decoded to %q, want %q", path, got, g.Prompt)
		}
	}
}

func TestVocabularyFiles(t *testing.T) {
	for _, name := range []string{"ggml-vocab-gpt-2.gguf", "ggml-vocab-llama-spm.gguf"} {
		t.Run(name, func(t *testing.T) {
			tok, path := vocabulary(t, name)
			in, err := os.ReadFile(path + ".inp")
			if err != nil {
				t.Fatal(err)
			}
			out, err := os.ReadFile(path + ".out")
			if err != nil {
				t.Fatal(err)
			}
			const end = "\n__ggml_vocab_test__\n"
			texts := strings.Split(strings.TrimSuffix(string(in), end), end)
			lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
			if len(texts) != len(lines) {
				t.Fatalf("%d texts and %d lines of ids", len(texts), len(lines))
			}
			for i, text := range texts {
				var want []int32
				for _, s := range strings.Fields(lines[i]) {
					id, err := strconv.Atoi(s)
					if err != nil {
						t.Fatal(err)
					}
					want = append(want, int32(id))
				}
				ids, err := tok.EncodeText(text, false, false)
				if err != nil || !slices.Equal(ids, want) {
					t.Errorf("%q: got %v, %v, want %v", text, ids, err, want)
				}
				if got := tok.Decode(ids, false); got != text {
					t.Errorf("%v decodes to %q, want %q", ids, got, text)
				}
			}
		})
	}
}
