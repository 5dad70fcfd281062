package tokenizer

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A preTokenizer cuts text into the pieces within which merges happen. Its
// scan functions do by hand what regular expressions say elsewhere; classes of
// characters are those of the unicode package.
type preTokenizer struct {
	scan   func(text string) int // length of the first piece of text, which is not empty
	digits bool                  // each number is a piece by itself; scan sees what is between
	whole  bool                  // a piece that is a token is not merged up from bytes
	addBOS bool                  // the default of tokenizer.ggml.add_bos_token
}

var (
	preGPT2   = preTokenizer{scan: scanGPT2}
	preDigits = preTokenizer{scan: scanGPT2, digits: true}
	preLlama3 = preTokenizer{scan: scanLlama3, whole: true, addBOS: true}
	preThree  = preTokenizer{scan: scanLlama3}
	preQwen2  = preTokenizer{scan: scanQwen2}
)

// preTokenizers are the pre-tokenizers by the names that files give them.
var preTokenizers = map[string]preTokenizer{
	"default": preGPT2, "gpt-2": preGPT2, "phi-2": preGPT2, "mpt": preGPT2, "olmo": preGPT2, "jais": preGPT2,
	"gigachat": preGPT2, "a.x-4.0": preGPT2, "mellum": preGPT2, "exaone4": preGPT2, "trillion": preGPT2,
	"granite-docling": preGPT2, "modern-bert": preGPT2,

	"smollm": preDigits, "starcoder": preDigits, "refact": preDigits, "command-r": preDigits,
	"codeshell": preDigits, "exaone": preDigits, "minerva-7b": preDigits, "mellum2": preDigits,

	"llama-bpe": preLlama3, "llama3": preLlama3, "llama-v3": preLlama3, "falcon3": preLlama3, "falcon-h1": preLlama3,
	"pixtral": preLlama3, "midm-2.0": preLlama3, "lfm2": preLlama3,

	"dbrx": preThree, "smaug-bpe": preThree, "glm4": preThree, "chatglm-bpe": preThree,

	"qwen2": preQwen2, "qwen3": preQwen2, "deepseek-r1-qwen": preQwen2, "megrez": preQwen2, "stablelm2": preQwen2,
	"hunyuan": preQwen2, "solar-open": preQwen2, "grok-2": preQwen2, "kormo": preQwen2, "f2llmv2": preQwen2,
}

func findPreTokenizer(name string) (preTokenizer, error) {
	p, ok := preTokenizers[name]
	if !ok {
		return p, fmt.Errorf("%s: the pre-tokenizer %q is not known here; known are %s",
			keyPre, name, strings.Join(slices.Sorted(maps.Keys(preTokenizers)), ", "))
	}
	return p, nil
}

// each calls yield with the pieces of text, in order and without gaps.
func (p preTokenizer) each(text string, yield func(piece string)) {
	if !p.digits {
		for text != "" {
			n := p.scan(text)
			yield(text[:n])
			text = text[n:]
		}
		return
	}
	scan := preTokenizer{scan: p.scan}
	for text != "" {
		n := strings.IndexFunc(text, unicode.IsNumber)
		if n < 0 {
			n = len(text)
		}
		scan.each(text[:n], yield)
		if text = text[n:]; text != "" {
			_, size := utf8.DecodeRuneInString(text)
			yield(text[:size])
			text = text[size:]
		}
	}
}

// scanGPT2 is the pattern
//
//	's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
func scanGPT2(s string) int {
	if n := contraction(s, false); n > 0 {
		return n
	}
	start := 0
	if s[0] == ' ' && len(s) > 1 {
		start = 1
	}
	if c, _ := classAt(s, start); c != blank {
		return run(s, start, c)
	}
	return blanks(s, run(s, 0, blank))
}

// scanLlama3 is the pattern
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
func scanLlama3(s string) int { return scanWords(s, 3) }

// scanQwen2 is the same pattern with \p{N} for \p{N}{1,3}.
func scanQwen2(s string) int { return scanWords(s, 1) }

func scanWords(s string, digits int) int {
	if n := contraction(s, true); n > 0 {
		return n
	}
	c, size := classAt(s, 0)
	switch c {
	case letter:
		return run(s, 0, letter)
	case number:
		n := size
		for range digits - 1 {
			if c, size := classAt(s, n); c == number {
				n += size
			}
		}
		return n
	}
	if next, _ := classAt(s, size); next == letter && s[0] != '\r' && s[0] != '\n' {
		return run(s, size, letter)
	}
	start := 0
	if s[0] == ' ' {
		start = 1
	}
	if c, _ := classAt(s, start); c == other {
		n := run(s, start, other)
		for n < len(s) && (s[n] == '\r' || s[n] == '\n') {
			n++
		}
		return n
	}
	n := run(s, 0, blank)
	if i := strings.LastIndexAny(s[:n], "\r\n"); i >= 0 {
		return i + 1
	}
	return blanks(s, n)
}

// contraction returns the length of an English contraction's end, such as 're,
// that s begins with. fold ignores case as Unicode does, which takes the long
// s (U+017F) for an s.
func contraction(s string, fold bool) int {
	if len(s) < 2 || s[0] != '\'' {
		return 0
	}
	if fold && strings.HasPrefix(s[1:], "\u017f") {
		return 3
	}
	var c [2]byte
	for i := range copy(c[:], s[1:]) {
		if fold && 'A' <= c[i] && c[i] <= 'Z' {
			c[i] += 'a' - 'A'
		}
	}
	switch a, b := c[0], c[1]; {
	case a == 's' || a == 't' || a == 'm' || a == 'd':
		return 2
	case a == 'r' && b == 'e', a == 'v' && b == 'e', a == 'l' && b == 'l':
		return 3
	}
	return 0
}

// blanks is \s+(?!\S)|\s+ for text that begins with n bytes of white space:
// all of it at the end, otherwise all but the last character, but at least one.
func blanks(s string, n int) int {
	if n == len(s) {
		return n
	}
	if _, size := utf8.DecodeLastRuneInString(s[:n]); size < n {
		return n - size
	}
	return n
}

// run returns where the run of characters of a class that begins at start ends.
func run(s string, start int, c class) int {
	for start < len(s) {
		got, size := classAt(s, start)
		if got != c {
			break
		}
		start += size
	}
	return start
}

// A class of characters, as the patterns tell them apart.
type class uint8

const (
	none   class = iota // past the end
	letter              // \p{L}
	number              // \p{N}
	blank               // \s: Unicode's White_Space
	other               // the rest, bytes that are not UTF-8 included
)

// classAt returns the class and the length of the character at i.
func classAt(s string, i int) (class, int) {
	if i >= len(s) {
		return none, 0
	}
	if b := s[i]; b < utf8.RuneSelf {
		return asciiClasses[b], 1
	}
	r, size := utf8.DecodeRuneInString(s[i:])
	return classOf(r), size
}

func classOf(r rune) class {
	switch {
	case unicode.IsLetter(r):
		return letter
	case unicode.IsNumber(r):
		return number
	case unicode.IsSpace(r):
		return blank
	}
	return other
}

var asciiClasses = func() (c [utf8.RuneSelf]class) {
	for r := range c {
		c[r] = classOf(rune(r))
	}
	return c
}()
