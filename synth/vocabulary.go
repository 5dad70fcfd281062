package synth

import (
	"fmt"
	"strings"
)

// smallestVocabulary is the fewest tokens that leave room for the special tokens, the bytes and some words.
const smallestVocabulary = 1024

// The types of tokens, as tokenizer.ggml.token_type has them.
const (
	normal  int32 = 1
	unknown int32 = 2
	control int32 = 3
	unused  int32 = 5
	byteTok int32 = 6
)

// A vocabulary is the tokens of a model. It encodes any text: what no word or character covers is made of bytes.
type vocabulary struct {
	shape  Shape
	tokens []string
	types  []int32
	scores []float32 // nil for kinds without
	merges []string  // nil for kinds without
}

// newVocabulary returns the vocabulary that goes with a shape. It depends on the architecture and the number of tokens
// alone.
func newVocabulary(s Shape) *vocabulary {
	v := &vocabulary{shape: s}
	switch s.Arch {
	case "gemma4", "gemma3":
		v.sentencePieces()
	default:
		v.byteLevel()
	}
	return v
}

func (v *vocabulary) add(token string, typ int32) {
	v.tokens = append(v.tokens, token)
	v.types = append(v.types, typ)
}

// control adds control tokens.
func (v *vocabulary) control(tokens ...string) {
	for _, t := range tokens {
		v.add(t, control)
	}
}

// unusedUpTo fills the vocabulary with tokens that no text gives, up to n.
func (v *vocabulary) unusedUpTo(n int) {
	for len(v.tokens) < n {
		v.add(fmt.Sprintf("<unused%d>", len(v.tokens)), unused)
	}
}

// Where the tokens of Gemma's vocabularies are.
const (
	gemmaTurn     = 105 // start of a turn, then its end
	gemmaNewlines = 107 // 1 to 31 newlines
	gemmaSpaces   = 138 // 2 to 31 spaces
	gemmaBytes    = 238
	gemmaWords    = 262144 // the rest are unused
	longestRun    = 31
)

// sentencePieces makes Gemma's vocabulary: a space is spelt U+2581, and text falls back to 256 byte tokens. Words are
// made by merges (gemma4) or by scores (gemma3).
func (v *vocabulary) sentencePieces() {
	start, end := "<start_of_turn>", "<end_of_turn>"
	if v.shape.Arch == "gemma4" {
		start, end = "<|turn>", "<turn|>"
	}
	v.control("<pad>", "<eos>", "<bos>")
	v.add("<unk>", unknown)
	v.unusedUpTo(gemmaTurn)
	v.control(start, end)
	for n := range longestRun {
		v.add(strings.Repeat("\n", n+1), normal)
	}
	for n := 2; n <= longestRun; n++ {
		v.add(spellSpaces(strings.Repeat(" ", n)), normal)
	}
	v.unusedUpTo(gemmaBytes)
	for b := range 256 {
		v.add(fmt.Sprintf("<0x%02X>", b), byteTok)
	}
	words := min(v.shape.Vocab, gemmaWords)
	l := newLexicon()
	l.symbol("\n")
	for _, r := range characters((words - len(v.tokens)) / 4) {
		l.symbol(string(r))
		v.add(spellSpaces(string(r)), normal)
	}
	runs := l.runs(" ", longestRun) + l.runs("\n", longestRun)
	l.fill(runs + words - len(v.tokens))
	for _, w := range l.words[runs:] {
		v.add(spellSpaces(w.left+w.right), normal)
	}
	v.unusedUpTo(v.shape.Vocab)
	if v.shape.Arch == "gemma4" {
		v.merge(l, spellSpaces)
	}
	v.score(l)
}

// score gives tokens scores: in gemma3, words are merged in order of them; in gemma4 they have no meaning.
func (v *vocabulary) score(l *lexicon) {
	ranks := make(map[string]int, len(l.words))
	if v.shape.Arch == "gemma3" {
		for i, w := range l.words {
			ranks[spellSpaces(w.left+w.right)] = i + 1
		}
	}
	for _, t := range v.tokens {
		score := float32(-1000)
		if v.shape.Arch == "gemma3" {
			score = 0
		}
		if rank := ranks[t]; rank > 0 {
			score = -float32(rank)
		}
		v.scores = append(v.scores, score)
	}
}

func spellSpaces(s string) string { return strings.ReplaceAll(s, " ", "\u2581") }

// byteLevel makes the vocabularies of llama 3 and of Qwen: bytes, words made from them by merges, then the special
// tokens. Each byte is spelt as a printable character.
func (v *vocabulary) byteLevel() {
	special := []string{"<|endoftext|>", "<|im_start|>", "<|im_end|>"}
	tail := 293 // tokens that are no words
	if v.shape.Arch == "llama" {
		special = nil
		for i := range 256 {
			special = append(special, fmt.Sprintf("<|reserved_special_token_%d|>", i))
		}
		for id, name := range map[int]string{
			llamaBOS: "begin_of_text", llamaEndOfText: "end_of_text", llamaHeader: "start_header_id", llamaHeaderEnd: "end_header_id",
			llamaEOM: "eom_id", llamaEOT: "eot_id",
		} {
			special[id] = "<|" + name + "|>"
		}
		tail = len(special)
	}
	words := v.shape.Vocab - tail
	spell := byteSpelling()
	l := newLexicon()
	// Those that stand for themselves come first.
	for _, printable := range []bool{true, false} {
		for b := range 256 {
			if s := string([]byte{byte(b)}); (spell(s) == string(rune(b))) == printable {
				l.symbol(s)
				v.add(spell(s), normal)
			}
		}
	}
	l.runs(" ", longestRun)
	l.runs("\n", longestRun)
	for _, r := range characters((words - len(v.tokens)) / 5) {
		l.spelling(string(r))
	}
	l.fill(words - len(v.tokens))
	for _, w := range l.words {
		v.add(spell(w.left+w.right), normal)
	}
	v.control(special...)
	v.unusedUpTo(v.shape.Vocab)
	v.merge(l, spell)
}

// Places of llama 3's special tokens after the words.
const (
	llamaBOS       = 0
	llamaEndOfText = 1
	llamaHeader    = 6
	llamaHeaderEnd = 7
	llamaEOM       = 8
	llamaEOT       = 9
)

// merge lists the lexicon's merges.
func (v *vocabulary) merge(l *lexicon, spell func(string) string) {
	for _, w := range l.words {
		v.merges = append(v.merges, spell(w.left)+" "+spell(w.right))
	}
}

// byteSpelling returns the function that spells bytes as GPT-2 does: the printable ones of Latin-1 as themselves, the
// others as the characters from U+0100 on.
func byteSpelling() func(string) string {
	var alphabet [256]string
	next := rune(0x100)
	for b := range rune(256) {
		if b <= ' ' || b >= 0x7f && b <= 0xa0 || b == 0xad {
			alphabet[b] = string(next)
			next++
		} else {
			alphabet[b] = string(b)
		}
	}
	return func(s string) string {
		var out strings.Builder
		for i := range len(s) {
			out.WriteString(alphabet[s[i]])
		}
		return out.String()
	}
}

// keys returns the vocabulary's keys.
func (v *vocabulary) keys() []keyValue {
	var list []keyValue
	set := func(key string, value any) { list = append(list, keyValue{"tokenizer." + key, value}) }
	id := func(n int) uint32 { return uint32(n) }
	base := v.shape.Vocab - 293
	switch v.shape.Arch {
	case "gemma4", "gemma3":
		if v.shape.Arch == "gemma4" {
			set("ggml.model", "gemma4")
		} else {
			set("ggml.model", "llama")
			set("ggml.pre", "default")
		}
		set("ggml.padding_token_id", id(0))
		set("ggml.eos_token_id", id(1))
		set("ggml.bos_token_id", id(2))
		set("ggml.unknown_token_id", id(3))
		set("ggml.eot_token_id", id(gemmaTurn+1))
		set("ggml.add_bos_token", true)
		set("ggml.add_space_prefix", false)
	case "llama":
		base := v.shape.Vocab - 256
		set("ggml.model", "gpt2")
		set("ggml.pre", "llama-bpe")
		set("ggml.bos_token_id", id(base+llamaBOS))
		set("ggml.eos_token_id", id(base+llamaEOT))
		set("ggml.eot_token_id", id(base+llamaEOT))
		set("ggml.eom_token_id", id(base+llamaEOM))
		set("ggml.add_bos_token", true)
	default:
		set("ggml.model", "gpt2")
		set("ggml.pre", "qwen2")
		set("ggml.bos_token_id", id(base))
		set("ggml.padding_token_id", id(base))
		set("ggml.eos_token_id", id(base+2))
		set("ggml.add_bos_token", false)
	}
	set("ggml.tokens", v.tokens)
	set("ggml.token_type", v.types)
	if v.scores != nil {
		set("ggml.scores", v.scores)
	}
	if v.merges != nil {
		set("ggml.merges", v.merges)
	}
	set("chat_template", template(v.shape.Arch))
	return list
}

// bytes is about how much the vocabulary takes in the file.
func (v *vocabulary) bytes() int64 {
	n := 4 * (len(v.types) + len(v.scores))
	for _, s := range v.tokens {
		n += 8 + len(s)
	}
	for _, s := range v.merges {
		n += 8 + len(s)
	}
	return int64(n)
}
