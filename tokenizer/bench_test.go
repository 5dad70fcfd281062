package tokenizer_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/tandemrun/tandem/tokenizer"
)

const megabyte = 1 << 20

// longTexts are texts of 1 MB of the shapes that are hard in different ways.
func longTexts(tb testing.TB) map[string]string {
	tb.Helper()
	story, err := os.ReadFile("../testdata/tiny/golden/13-long-story.json")
	if err != nil {
		tb.Fatal(err)
	}
	fill := func(s string) string { return strings.Repeat(s, megabyte/len(s)+1)[:megabyte] }
	rng := rand.New(rand.NewPCG(1, 2))
	var letters strings.Builder
	for letters.Len() < megabyte {
		letters.WriteByte("eeettaaooinnsshrdlucmwfgypbvk"[rng.IntN(29)])
	}
	words := fill(strings.ReplaceAll(string(story), "\\n", "\n"))
	return map[string]string{
		"prose": words, "nospace": strings.NewReplacer(" ", "", "\n", "").Replace(words + words)[:megabyte],
		"letters": letters.String(), "same": fill("a"), "spaces": fill(" "), "newlines": fill("\n"), "digits": fill("0123456789"),
	}
}

func BenchmarkEncode(b *testing.B) {
	texts := longTexts(b)
	for _, v := range []struct{ name, path string }{
		{"gemma4", "../model/tiny/tiny-q8_0.gguf"},
		{"gpt2", "../../shared/golden/vocab/ggml-vocab-gpt-2.gguf"},
		{"llama", "../../shared/golden/vocab/ggml-vocab-llama-spm.gguf"},
	} {
		if _, err := os.Stat(v.path); err != nil {
			continue
		}
		tok := open(b, v.path)
		for _, name := range []string{"prose", "nospace", "letters", "same", "spaces", "newlines", "digits"} {
			b.Run(v.name+"/"+name, func(b *testing.B) {
				b.SetBytes(megabyte)
				b.ReportAllocs()
				for b.Loop() {
					if _, err := tok.EncodeText(texts[name], false, false); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	tok := open(b, "../model/tiny/tiny-q8_0.gguf")
	ids, err := tok.EncodeText(longTexts(b)["prose"], false, false)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(megabyte)
	for b.Loop() {
		tok.Decode(ids, false)
	}
}

// large makes a vocabulary of 262,144 tokens and 500,000 merges.
func large() meta {
	rng := rand.New(rand.NewPCG(3, 4))
	tokens, types, merges := []string{"<pad>", "<eos>", "<bos>"}, []int64{3, 3, 3}, []string{}
	for c := range 256 {
		tokens, types = append(tokens, fmt.Sprintf("<0x%02X>", c)), append(types, 6)
	}
	for c := 'a'; c <= 'z'; c++ {
		tokens, types = append(tokens, string(c)), append(types, 1)
	}
	first, have := len(tokens)-26, make(map[string]bool)
	for len(tokens) < 262144 {
		l, r := tokens[first+rng.IntN(len(tokens)-first)], tokens[first+rng.IntN(min(5000, len(tokens)-first))]
		if s := l + r; len(s) < 24 && !have[s] {
			have[s] = true
			tokens, types, merges = append(tokens, s), append(types, 1), append(merges, l+" "+r)
		}
	}
	for i := 0; len(merges) < 500000; i++ {
		if s := tokens[first+26+i%(len(tokens)-first-26)]; len(s) > 2 {
			merges = append(merges, s[:1]+" "+s[1:])
		}
	}
	return meta{"tokenizer.ggml.model": "gemma4", "tokenizer.ggml.tokens": tokens, "tokenizer.ggml.token_type": types,
		"tokenizer.ggml.merges": merges, "tokenizer.ggml.bos_token_id": uint64(2), "tokenizer.ggml.eos_token_id": uint64(1)}
}

func BenchmarkNew(b *testing.B) {
	m := large()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := tokenizer.New(m); err != nil {
			b.Fatal(err)
		}
	}
}
