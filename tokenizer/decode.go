package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// Decode returns the text of ids, as a [Decoder] gives it piece by piece.
func (t *Tokenizer) Decode(ids []int32, special bool) string {
	d := t.Decoder(special)
	var b strings.Builder
	for _, id := range ids {
		b.WriteString(d.Write(id))
	}
	b.WriteString(d.Flush())
	return b.String()
}

// A Decoder turns a stream of ids into text, whole UTF-8 characters only.
// Bytes that cannot become a character any more are given as U+FFFD, one for
// each maximal part of one, as Unicode recommends; so is an id outside the
// vocabulary. It must not be used by two goroutines at once.
type Decoder struct {
	t       *Tokenizer
	special bool
	started bool   // some token gave text
	pending []byte // the beginning of a character
}

// Decoder returns a decoder at the start of a text. With special, control and
// unknown tokens are written as their strings; without, they give no text.
func (t *Tokenizer) Decoder(special bool) *Decoder { return &Decoder{t: t, special: special} }

// Write takes the next id and returns the text that is complete now; it may be empty.
func (d *Decoder) Write(id int32) string {
	piece := "\uFFFD"
	if t := d.t; t.valid(id) {
		if t.types[id].hidden() && !d.special {
			return ""
		}
		piece = t.pieces[id]
		if t.spacePrefix && !d.started && !t.types[id].special() {
			piece = strings.TrimPrefix(piece, " ")
		}
	}
	d.started = true
	if len(d.pending) == 0 && utf8.ValidString(piece) {
		return piece
	}
	d.pending = append(d.pending, piece...)
	return d.take(false)
}

// Flush ends the text: the beginning of a character that is left is given as
// U+FFFD. The decoder is then at the start of a text again.
func (d *Decoder) Flush() string {
	d.started = false
	return d.take(true)
}

// take takes the whole characters out of the pending bytes, or with all everything.
func (d *Decoder) take(all bool) string {
	var out []byte
	p := d.pending
	for len(p) > 0 {
		r, n := utf8.DecodeRune(p)
		if r == utf8.RuneError && n == 1 {
			for n = 0; n < len(p) && !utf8.FullRune(p[:n+1]); n++ {
			}
			if n == len(p) && !all {
				break // may still become a character
			}
			n = max(n, 1)
		}
		out = utf8.AppendRune(out, r)
		p = p[n:]
	}
	d.pending = append(d.pending[:0], p...)
	return string(out)
}
