package tokenizer_test

import (
	"errors"
	"fmt"
	"maps"
	"testing"

	"github.com/tandemrun/tandem/tokenizer"
)

// meta is metadata in memory.
type meta map[string]any

var errNoValue = errors.New("missing or of another type")

func value[T any](m meta, key string) (T, error) {
	v, ok := m[key].(T)
	if !ok {
		return v, fmt.Errorf("%s: %w", key, errNoValue)
	}
	return v, nil
}

func (m meta) Has(key string) bool                  { _, ok := m[key]; return ok }
func (m meta) String(key string) (string, error)    { return value[string](m, key) }
func (m meta) Strings(key string) ([]string, error) { return value[[]string](m, key) }
func (m meta) Uint(key string) (uint64, error)      { return value[uint64](m, key) }
func (m meta) Ints(key string) ([]int64, error)     { return value[[]int64](m, key) }
func (m meta) Floats(key string) ([]float32, error) { return value[[]float32](m, key) }
func (m meta) Bool(key string) (bool, error)        { return value[bool](m, key) }

// with returns a copy with keys under tokenizer.ggml set, or removed if nil.
func (m meta) with(pairs ...any) meta {
	m = maps.Clone(m)
	for i := 0; i < len(pairs); i += 2 {
		key := "tokenizer.ggml." + pairs[i].(string)
		if m[key] = pairs[i+1]; pairs[i+1] == nil {
			delete(m, key)
		}
	}
	return m
}

func build(t testing.TB, m meta) *tokenizer.Tokenizer {
	t.Helper()
	tok, err := tokenizer.New(m)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// vocab collects tokens.
type vocab struct {
	tokens []string
	types  []int64
	scores []float32
}

func (v *vocab) add(typ int64, score float32, tokens ...string) {
	for _, token := range tokens {
		v.tokens, v.types, v.scores = append(v.tokens, token), append(v.types, typ), append(v.scores, score)
	}
}

func (v *vocab) addBytes() {
	for c := range 256 {
		v.add(6, 0, fmt.Sprintf("<0x%02X>", c))
	}
}

// byteLevel is a small vocabulary of kind gpt2: <|im_start|> 0, <|im_end|> 1,
// <tool> 2 (user-defined), the bytes from 3 on, then merges.
func byteLevel(pre string) meta {
	var v vocab
	v.add(3, 0, "<|im_start|>", "<|im_end|>")
	v.add(4, 0, "<tool>")
	next := 0x100
	for c := range 256 {
		r := rune(c)
		if c <= ' ' || (c >= 0x7f && c <= 0xa0) || c == 0xad {
			r = rune(next)
			next++
		}
		v.add(1, 0, string(r))
	}
	v.add(1, 0, "he", "ll", "hell", "hello", "Ġhello", "12", "Ġ1", "hey")
	return meta{"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": pre,
		"tokenizer.ggml.tokens": v.tokens, "tokenizer.ggml.token_type": v.types,
		"tokenizer.ggml.merges":       []string{"h e", "l l", "he ll", "hell o", "Ġ hello", "1 2", "Ġ 1"},
		"tokenizer.ggml.eos_token_id": uint64(1)}
}

// sentencePiece is a small vocabulary of kind llama: <unk> 0, <s> 1, </s> 2,
// the bytes from 3 on, then 259: ▁ a b c ab bc abc ▁a <s s>.
func sentencePiece() meta {
	var v vocab
	v.add(2, 0, "<unk>")
	v.add(3, 0, "<s>", "</s>")
	v.addBytes()
	v.add(1, -10, "▁", "a", "b", "c")
	v.add(1, -2, "ab", "bc")
	v.add(1, -3, "abc")
	v.add(1, -1, "▁a")
	v.add(1, 5, "<s", "s>", "<", ">", "s")
	return meta{"tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": v.tokens,
		"tokenizer.ggml.token_type": v.types, "tokenizer.ggml.scores": v.scores}
}

// lines is a small vocabulary of kind gemma4: <eos> 0, <bos> 1, the bytes from 2
// on, then 258: ▁ a b ab ▁a \n \n\n\n and the user-defined <b>.
func lines() meta {
	var v vocab
	v.add(3, 0, "<eos>", "<bos>")
	v.addBytes()
	v.add(1, 0, "▁", "a", "b", "ab", "▁a", "\n", "\n\n\n")
	v.add(4, 0, "<b>")
	return meta{"tokenizer.ggml.model": "gemma4", "tokenizer.ggml.tokens": v.tokens, "tokenizer.ggml.token_type": v.types,
		"tokenizer.ggml.merges":       []string{"a b", "▁ a", "é é"},
		"tokenizer.ggml.bos_token_id": uint64(1), "tokenizer.ggml.eos_token_id": uint64(0)}
}
