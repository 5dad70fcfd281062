package tokenizer

import (
	"cmp"
	"slices"
	"sort"
	"strings"
)

// tokenType is what tokenizer.ggml.token_type says of a token.
type tokenType uint8

const (
	undefined tokenType = iota
	normal
	unknown
	control
	userDefined
	unused
	byteValue
)

// special reports whether tokens of the type are found in trusted text.
func (t tokenType) special() bool { return t == unknown || t == control || t == userDefined }

// hidden reports whether tokens of the type are no text.
func (t tokenType) hidden() bool { return t == unknown || t == control }

// plain reports whether tokens of the type are made from plain text by the
// rules of the vocabulary. User-defined ones usually are matched before.
func (t tokenType) plain() bool { return !t.hidden() && t != byteValue }

// A matcher finds the strings of tokens in text.
type matcher struct {
	tokens []match    // sorted by text
	first  [257]int32 // tokens[first[b]:first[b+1]] begin with byte b
}

type match struct {
	text string
	id   int32
}

func newMatcher(tokens []match) matcher {
	m := matcher{tokens: tokens}
	slices.SortFunc(tokens, func(a, b match) int { return cmp.Compare(a.text, b.text) })
	for _, t := range tokens {
		m.first[int(t.text[0])+1]++
	}
	for b := range 256 {
		m.first[b+1] += m.first[b]
	}
	return m
}

// find returns the place and the token of the leftmost match in text, the
// longest if several begin there; start is len(text) if there is none.
func (m *matcher) find(text string) (start int, found match) {
	if len(m.tokens) == 0 {
		return len(text), match{}
	}
	for i := range len(text) {
		if b := text[i]; m.first[b] == m.first[int(b)+1] {
			continue
		}
		if found, ok := m.longest(text[i:]); ok {
			return i, found
		}
	}
	return len(text), match{}
}

// longest returns the longest token that text begins with. It narrows the
// sorted list byte by byte, so its cost does not depend on how many tokens
// begin alike.
func (m *matcher) longest(text string) (found match, ok bool) {
	lo, hi := int(m.first[text[0]]), int(m.first[int(text[0])+1])
	for n := 1; lo < hi; n++ {
		if len(m.tokens[lo].text) == n { // shorter sorts first, and no two are equal
			found, ok = m.tokens[lo], true
			lo++
		}
		if n == len(text) {
			break
		}
		list, b := m.tokens[lo:hi], text[n]
		hi = lo + sort.Search(len(list), func(i int) bool { return list[i].text[n] > b })
		lo += sort.Search(len(list), func(i int) bool { return list[i].text[n] >= b })
	}
	return found, ok
}

// Split finds the special tokens in trusted text, such as a rendered chat
// template: the longest at the leftmost place, again and again. It returns
// the text whole, in order, without empty fragments.
func (t *Tokenizer) Split(text string) []Fragment {
	var frags []Fragment
	for text != "" {
		start, found := t.trusted.find(text)
		if start > 0 {
			frags = append(frags, Fragment{Text: text[:start]})
		}
		if found.text != "" {
			frags = append(frags, Fragment{Text: found.text, Control: true})
		}
		text = text[start+len(found.text):]
	}
	return frags
}

// turnEnds are strings of tokens that end a turn, the surest first, and
// otherEnds more that end a generation; as llama.cpp knows them.
var (
	turnEnds = strings.Fields(`<|eot_id|> <|im_end|> <|end|> <end_of_turn> <turn|> <EOT> _<EOT> [EOT]
		<end_of_utterance> <|end_of_text|> <|endoftext|> <｜end▁of▁sentence｜>`)
	otherEnds = strings.Fields(`<|eom_id|> <|return|> <|call|> <|tool_response> <eos> </s> [EOS]
		<|fim_pad|> <|repo_name|> <|file_sep|>`)
)

// findEnds fills in what ends a generation, given the ids that the file names
// (-1 where it names none).
func (t *Tokenizer) findEnds(eom int32) {
	add := func(id int32) {
		if id >= 0 && !slices.Contains(t.ends, id) {
			t.ends = append(t.ends, id)
		}
	}
	add(t.eos)
	add(t.eot)
	add(eom)
	for _, s := range turnEnds {
		if id, ok := t.special[s]; ok && t.types[id] == control {
			if t.eot < 0 {
				t.eot = id
			}
			add(id)
		}
	}
	for _, s := range otherEnds {
		if id, ok := t.special[s]; ok && t.types[id] == control {
			add(id)
		}
	}
}
