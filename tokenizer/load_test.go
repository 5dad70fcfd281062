package tokenizer_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tandemrun/tandem/tokenizer"
)

func TestMalformedMetadata(t *testing.T) {
	gpt2, llama, gemma := byteLevel("gpt-2"), sentencePiece(), lines()
	types := func(m meta, id int, typ int64) []int64 {
		s := slices.Clone(m["tokenizer.ggml.token_type"].([]int64))
		s[id] = typ
		return s
	}
	tokens := func(m meta, id int, token string) []string {
		s := slices.Clone(m["tokenizer.ggml.tokens"].([]string))
		s[id] = token
		return s
	}
	for _, c := range []struct {
		name string
		m    meta
		want []string // what the error must name
	}{
		{"no kind", gpt2.with("model", nil), []string{"tokenizer.ggml.model"}},
		{"other kind", gpt2.with("model", "t5"), []string{"tokenizer.ggml.model", `"t5"`}},
		{"pre of another type", gpt2.with("pre", uint64(1)), []string{"tokenizer.ggml.pre"}},
		{"other pre", gpt2.with("pre", "viking"), []string{"tokenizer.ggml.pre", `"viking"`}},
		{"pre against kind", gemma.with("pre", "qwen2"), []string{"tokenizer.ggml.pre", `"qwen2"`}},
		{"no tokens", llama.with("tokens", nil), []string{"tokenizer.ggml.tokens"}},
		{"empty tokens", llama.with("tokens", []string{}), []string{"tokenizer.ggml.tokens"}},
		{"twins", llama.with("tokens", tokens(llama, 260, "b")), []string{"tokenizer.ggml.tokens", `"b"`, "260", "261"}},
		{"twins of two types", llama.with("tokens", tokens(llama, 260, "<s>")), []string{"tokenizer.ggml.tokens", `"<s>"`}},
		{"types too short", llama.with("token_type", []int64{1}), []string{"tokenizer.ggml.token_type", "tokenizer.ggml.tokens"}},
		{"type out of range", llama.with("token_type", types(llama, 5, 9)), []string{"tokenizer.ggml.token_type", "entry 5"}},
		{"a byte that is none", llama.with("token_type", types(llama, 260, 6)), []string{"tokenizer.ggml.tokens", "260"}},
		{"no scores", llama.with("scores", nil), []string{"tokenizer.ggml.scores"}},
		{"scores too short", llama.with("scores", []float32{1}), []string{"tokenizer.ggml.scores"}},
		{"scores too short for gemma4", gemma.with("scores", []float32{1}), []string{"tokenizer.ggml.scores"}},
		{"score not a number", llama.with("scores", slices.Repeat([]float32{float32(math.NaN())}, 271)), []string{"tokenizer.ggml.scores"}},
		{"no merges", gpt2.with("merges", nil), []string{"tokenizer.ggml.merges"}},
		{"merge without a space", gpt2.with("merges", []string{"h e", "ll"}), []string{"tokenizer.ggml.merges", "entry 1"}},
		{"merge without a right", gemma.with("merges", []string{"a "}), []string{"tokenizer.ggml.merges", "entry 0"}},
		{"merge of three", gemma.with("merges", []string{"a b c"}), []string{"tokenizer.ggml.merges", "entry 0"}},
		{"bos out of range", gpt2.with("bos_token_id", uint64(9999)), []string{"tokenizer.ggml.bos_token_id", "9999"}},
		{"eos out of range", gpt2.with("eos_token_id", uint64(math.MaxUint64)), []string{"tokenizer.ggml.eos_token_id"}},
		{"eot out of range", gpt2.with("eot_token_id", uint64(1<<32)), []string{"tokenizer.ggml.eot_token_id"}},
		{"eom of another type", gpt2.with("eom_token_id", "x"), []string{"tokenizer.ggml.eom_token_id"}},
		{"unknown out of range", llama.with("unknown_token_id", uint64(9999)), []string{"tokenizer.ggml.unknown_token_id"}},
		{"padding out of range", llama.with("padding_token_id", uint64(9999)), []string{"tokenizer.ggml.padding_token_id"}},
		{"bos wanted and missing", gpt2.with("add_bos_token", true), []string{"tokenizer.ggml.bos_token_id"}},
		{"eos wanted and missing", gpt2.with("add_eos_token", true, "eos_token_id", nil), []string{"tokenizer.ggml.eos_token_id"}},
		{"add_bos of another type", llama.with("add_bos_token", "yes"), []string{"tokenizer.ggml.add_bos_token"}},
		{"a byte token missing, gemma4", gemma.with("tokens", tokens(gemma, 2+0x41, "<x>"), "token_type", types(gemma, 2+0x41, 1)), []string{"tokenizer.ggml.tokens", "<0x41>"}},
		{"a byte token missing, llama", llama.with("tokens", tokens(llama, 3+0x41, "<x>"), "token_type", types(llama, 3+0x41, 1)), []string{"tokenizer.ggml.tokens", "<0x41>"}},
		{"no bytes and no unknown", meta{"tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": []string{"a", "<s>"},
			"tokenizer.ggml.token_type": []int64{1, 3}, "tokenizer.ggml.scores": []float32{0, 0}}, []string{"tokenizer.ggml.tokens", "tokenizer.ggml.unknown_token_id"}},
		{"no bytes at all", meta{"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.tokens": []string{"xyz"},
			"tokenizer.ggml.merges": []string{}}, []string{"tokenizer.ggml.tokens"}},
	} {
		_, err := tokenizer.New(c.m)
		if err == nil {
			t.Errorf("%s: no error", c.name)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: the error %q does not name %s", c.name, err, want)
			}
		}
	}
}

func TestNoVocab(t *testing.T) {
	if _, err := tokenizer.New(meta{"tokenizer.ggml.model": "no_vocab"}); !errors.Is(err, tokenizer.ErrNoVocab) {
		t.Errorf("got %v, want ErrNoVocab", err)
	}
	if _, err := tokenizer.New(byteLevel("gpt-2").with("model", "t5")); errors.Is(err, tokenizer.ErrNoVocab) {
		t.Errorf("an unknown kind gives ErrNoVocab: %v", err)
	}
}

func TestRules(t *testing.T) {
	bos := byteLevel("gpt-2").with("bos_token_id", uint64(0))
	for _, c := range []struct {
		name string
		m    meta
		text string
		want string // decoded with special tokens
	}{
		{"gpt2 adds nothing", bos, "hello", "hello"},
		{"gpt2 adds BOS if told", bos.with("add_bos_token", true), "hello", "<|im_start|>hello"},
		{"llama-bpe adds BOS", bos.with("pre", "llama-bpe"), "hello", "<|im_start|>hello"},
		{"llama-bpe does not if told", bos.with("pre", "llama-bpe", "add_bos_token", false), "hello", "hello"},
		{"EOS if told", bos.with("add_eos_token", true), "hello", "hello<|im_end|>"},
		{"no EOS twice", bos.with("add_eos_token", true), "hello<|im_end|>", "hello<|im_end|>"},
		{"gpt2 takes no space prefix", bos.with("add_space_prefix", true), "hello", "hello"},
		{"llama adds BOS and a space", sentencePiece(), "ab", "<s> ab"},
		{"llama without", sentencePiece().with("add_bos_token", false, "add_space_prefix", false), "ab", "ab"},
		{"llama trims spaces if told", sentencePiece().with("remove_extra_whitespaces", true), "  a   b ", "<s> a b"},
		{"gemma4 adds BOS", lines(), "ab", "<bos>ab"},
		{"gemma4 adds BOS against the file", lines().with("add_bos_token", false), "ab", "<bos>ab"},
		{"gemma4 adds a space if told", lines().with("add_space_prefix", true), "ab", "<bos> ab"},
		{"no BOS twice", lines(), "<bos>ab", "<bos>ab"},
		{"BOS alone", lines(), "", "<bos>"},
	} {
		tok := build(t, c.m)
		ids, err := tok.EncodeText(c.text, true, true)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if got := tok.Decode(ids, true); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestNotes(t *testing.T) {
	for _, c := range []struct {
		m    meta
		want string
	}{
		{byteLevel("gpt-2").with("pre", nil), "tokenizer.ggml.pre"},
		{byteLevel("default"), "tokenizer.ggml.pre"},
		{byteLevel("gpt-2").with("add_space_prefix", true), "tokenizer.ggml.add_space_prefix"},
		{byteLevel("gpt-2").with("eos_token_id", uint64(2)), "tokenizer.ggml.eos_token_id"},
		{lines().with("add_bos_token", false), "tokenizer.ggml.add_bos_token"},
		{byteLevel("gpt-2"), ""}, {sentencePiece(), ""}, {lines(), ""},
	} {
		notes := build(t, c.m).Notes()
		if c.want == "" && len(notes) != 0 || c.want != "" && (len(notes) != 1 || !strings.Contains(notes[0], c.want)) {
			t.Errorf("got notes %q, want one on %q", notes, c.want)
		}
	}
}

// Old files have no token types: special tokens are then those that the ids name.
func TestWithoutTokenTypes(t *testing.T) {
	tok := build(t, sentencePiece().with("token_type", nil))
	ids, err := tok.EncodeText("<s>abé", true, false)
	if want := []int32{1, 266, 261, 3 + 0xc3, 3 + 0xa9}; err != nil || !slices.Equal(ids, want) {
		t.Errorf("got %v, %v, want %v", ids, err, want)
	}
	if got := tok.Decode(ids, false); got != "abé" {
		t.Errorf("decoded to %q", got)
	}
}

func TestLookups(t *testing.T) {
	for _, m := range []meta{byteLevel("gpt-2"), sentencePiece(), lines()} {
		tok := build(t, m)
		tokens := m["tokenizer.ggml.tokens"].([]string)
		if tok.Size() != len(tokens) || tok.Kind() != m["tokenizer.ggml.model"] {
			t.Errorf("%s: %d tokens, want %d", tok.Kind(), tok.Size(), len(tokens))
		}
		for i, want := range tokens {
			if got := tok.Token(int32(i)); got != want {
				t.Errorf("%s: token %d is %q, want %q", tok.Kind(), i, got, want)
			}
			if id, ok := tok.ID(want); !ok || id != int32(i) {
				t.Errorf("%s: %q has id %d, %v, want %d", tok.Kind(), want, id, ok, i)
			}
		}
		for _, id := range []int32{-1, int32(len(tokens)), math.MaxInt32} {
			if got := tok.Token(id); got != "" {
				t.Errorf("%s: token %d is %q", tok.Kind(), id, got)
			}
		}
		for _, token := range []string{"", "no such token", "éé"} { // éé is a merge and no token
			if id, ok := tok.ID(token); ok {
				t.Errorf("%s: %q has id %d", tok.Kind(), token, id)
			}
		}
	}
}
