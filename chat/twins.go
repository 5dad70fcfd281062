package chat

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// specials are the strings of the special tokens.
//
// Those that begin or end with white space (runs of newlines and spaces, in
// some vocabularies), plain words and single characters are left out: they are
// what templates trim, compare and split at, and where vocabularies have them,
// they are user-defined tokens, which tokenizers find in plain text anyway.
type specials struct {
	set     map[string]bool
	lengths []int         // in bytes, each once, the longest first
	runes   map[rune]bool // all runes; true for those that begin or end a token
}

func newSpecials(lists []string, more ...string) *specials {
	s := &specials{set: map[string]bool{}, runes: map[rune]bool{}}
	for _, text := range append(slices.Clone(lists), more...) {
		word := !strings.ContainsFunc(text, isSign)
		if word || utf8.RuneCountInString(text) < 2 || strings.TrimSpace(text) != text || !utf8.ValidString(text) || s.set[text] {
			continue
		}
		s.set[text] = true
		first, _ := utf8.DecodeRuneInString(text)
		last, _ := utf8.DecodeLastRuneInString(text)
		for _, r := range text {
			s.runes[r] = s.runes[r] || r == first || r == last
		}
		if !slices.Contains(s.lengths, len(text)) {
			s.lengths = append(s.lengths, len(text))
		}
	}
	slices.Sort(s.lengths)
	slices.Reverse(s.lengths)
	return s
}

// isSign reports whether a rune is neither of a word nor white space.
func isSign(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsSpace(r)
}

func (s *specials) has(text string) bool { return s.set[text] }

// at returns the longest special that text begins with and that ok accepts.
func (s *specials) at(text string, ok func(special string) bool) (string, bool) {
	for _, n := range s.lengths {
		if n <= len(text) && s.set[text[:n]] && ok(text[:n]) {
			return text[:n], true
		}
	}
	return "", false
}

// inside reports whether text could be the middle of a special.
func (s *specials) inside(text string) bool {
	if text == "" || len(s.lengths) == 0 || len(text) >= s.lengths[0] {
		return false
	}
	for special := range s.set {
		_, first := utf8.DecodeRuneInString(special)
		_, last := utf8.DecodeLastRuneInString(special)
		if first+last < len(special) && strings.Contains(special[first:len(special)-last], text) {
			return true
		}
	}
	return false
}

// twins tell trusted text from content after rendering. In trusted text (the
// template's own, and the tokens it is given) the runes of special tokens are
// written as private runes, their twins, which occur in no content. So what is
// spelled with twins was written by the template, and content needs no change.
//
// A template may put a token together with a role ("<|" + role + "|>"), which
// stays as it is since templates compare roles. So twins at both ends are
// enough. A content that is the middle of a token could pass for a role then:
// it is broken with one more private rune, the breaker.
type twins struct {
	specials *specials
	of       map[rune]rune // rune to twin
	rune     map[rune]rune // twin to rune
	breaker  rune
}

var errTwins = errors.New("the messages use all private characters of Unicode (U+F0000 to U+10FFFD): remove some")

// newTwins chooses private runes that occur in none of the texts.
func newTwins(s *specials, texts ...string) (*twins, error) {
	used := map[rune]bool{}
	for _, text := range texts {
		for _, r := range text {
			if r >= 0xF0000 {
				used[r] = true
			}
		}
	}
	next := rune(0xF0000)
	choose := func() (rune, error) {
		for used[next] || next&0xFFFF >= 0xFFFE { // the last two of a plane are no characters
			next++
		}
		if next > utf8.MaxRune {
			return 0, errTwins
		}
		next++
		return next - 1, nil
	}
	w := &twins{specials: s, of: map[rune]rune{}, rune: map[rune]rune{}}
	var err error
	if w.breaker, err = choose(); err != nil {
		return nil, err
	}
	for _, r := range slices.Sorted(maps.Keys(s.runes)) {
		if w.of[r], err = choose(); err != nil {
			return nil, err
		}
		w.rune[w.of[r]] = r
	}
	return w, nil
}

// serve reports whether the private runes occur in no message.
func (w *twins) serve(msgs []Message) bool {
	return !slices.ContainsFunc(msgs, func(m Message) bool {
		return strings.ContainsFunc(m.Content, func(r rune) bool { return w.rune[r] != 0 || r == w.breaker })
	})
}

// spell writes trusted text with twins: whole tokens, and signs that begin or
// end tokens wherever they stand, but no words, since templates compare those.
func (w *twins) spell(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return w.of[r] != 0 }) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		token, whole := w.specials.at(text[i:], func(string) bool { return true })
		if !whole {
			_, n := utf8.DecodeRuneInString(text[i:])
			token = text[i : i+n]
		}
		for j := 0; j < len(token); {
			r, n := utf8.DecodeRuneInString(token[j:])
			if whole || w.specials.runes[r] && isSign(r) {
				b.WriteRune(w.of[r])
			} else {
				b.WriteString(token[j : j+n])
			}
			j += n
		}
		i += len(token)
	}
	return b.String()
}

// broken returns the messages with breakers in those contents that could be
// the middle of a special token, and whether there are any.
func (w *twins) broken(msgs []Message) ([]Message, bool) {
	msgs = slices.Clone(msgs)
	found := false
	for i, m := range msgs {
		if core := strings.TrimSpace(m.Content); w.specials.inside(core) {
			_, n := utf8.DecodeRuneInString(core)
			at := strings.Index(m.Content, core) + n
			msgs[i].Content = m.Content[:at] + string(w.breaker) + m.Content[at:]
			found = true
		}
	}
	return msgs, found
}

// plain gives text its usual runes again.
func (w *twins) plain(text string) string {
	return strings.Map(func(r rune) rune {
		if usual := w.rune[r]; usual != 0 {
			return usual
		}
		return r
	}, text)
}

// split finds the special tokens that the template wrote, the longest first
// where several begin, and gives all else its usual runes again. It also
// reports whether any of the tokens has runes inside that are no twins.
func (w *twins) split(rendered string) (parts []Part, mixed bool) {
	var b strings.Builder
	var order []int           // offsets in the plain text of runes that were twins
	written := map[int]bool{} // the same
	breaks := map[int]bool{}  // offsets of runes that follow a breaker
	for i := 0; i < len(rendered); {
		r, n := utf8.DecodeRuneInString(rendered[i:])
		if usual := w.rune[r]; usual != 0 {
			order = append(order, b.Len())
			written[b.Len()] = true
			b.WriteRune(usual)
		} else if r == w.breaker {
			breaks[b.Len()] = true
		} else {
			b.WriteString(rendered[i : i+n])
		}
		i += n
	}
	text := b.String()
	var out writer
	done := 0
	for _, at := range order {
		if at < done {
			continue
		}
		whole := true
		special, ok := w.specials.at(text[at:], func(special string) bool {
			_, last := utf8.DecodeLastRuneInString(special)
			whole = true
			for i := range special {
				if i > 0 && breaks[at+i] {
					return false
				}
				whole = whole && written[at+i]
			}
			return written[at+len(special)-last]
		})
		if ok {
			out.text(text[done:at])
			out.control(special)
			done = at + len(special)
			mixed = mixed || !whole
		}
	}
	out.text(text[done:])
	return out.parts, mixed
}
