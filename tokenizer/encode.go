package tokenizer

import (
	"fmt"
	"math"
	"strings"
)

// maxText is the longest stretch of plain text in one prompt, in bytes: a
// quarter of what the 32-bit offsets inside hold.
const maxText = math.MaxInt32 / 4

// Encode returns the ids of a prompt. Neighbouring plain fragments are one
// text. With addBOS the file's rule is followed: a BOS token before the rest and
// an EOS token behind it, if the file wants them and they are not there
// already. It is an error if a Control fragment is no special token.
func (t *Tokenizer) Encode(frags []Fragment, addBOS bool) ([]int32, error) {
	var (
		out   []int32
		m     merger
		plain strings.Builder
		first = true // nothing, or a special token, is before: a space prefix is due
	)
	flush := func() error {
		text := plain.String()
		plain.Reset()
		if len(text) > maxText {
			return fmt.Errorf("tokenizing %d bytes of text: more than %d at once", len(text), maxText)
		}
		for text != "" {
			start, found := t.userDefined.find(text)
			if start > 0 {
				out = t.model.append(out, t.normalize(text[:start], first), &m)
				first = false
			}
			if found.text != "" {
				out = append(out, found.id)
				first = true
			}
			text = text[start+len(found.text):]
		}
		return nil
	}
	for i, f := range frags {
		if !f.Control {
			plain.WriteString(f.Text)
			continue
		}
		id, ok := t.special[f.Text]
		if !ok {
			return nil, fmt.Errorf("prompt fragment %d: %q is marked as a special token, and the vocabulary has none of that name", i, f.Text)
		}
		if err := flush(); err != nil {
			return nil, err
		}
		out = append(out, id)
		first = true
	}
	if err := flush(); err != nil {
		return nil, err
	}
	if addBOS {
		out = t.frame(out)
	}
	return out, nil
}

// frame puts BOS before and EOS behind a prompt, as the file wants it.
func (t *Tokenizer) frame(ids []int32) []int32 {
	if t.addBOS && (len(ids) == 0 || ids[0] != t.bos) {
		ids = append([]int32{t.bos}, ids...)
	}
	if t.addEOS && (len(ids) == 0 || ids[len(ids)-1] != t.eos) {
		ids = append(ids, t.eos)
	}
	return ids
}

// EncodeText returns the ids of one text: of trusted text, in which special
// tokens are found, or of plain text. For addBOS see [Tokenizer.Encode].
func (t *Tokenizer) EncodeText(text string, parseSpecial, addBOS bool) ([]int32, error) {
	if parseSpecial {
		return t.Encode(t.Split(text), addBOS)
	}
	return t.Encode([]Fragment{{Text: text}}, addBOS)
}

// normalize makes a stretch of plain text ready for the model.
func (t *Tokenizer) normalize(text string, first bool) string {
	if t.kind == "gpt2" {
		return text
	}
	text = strings.ReplaceAll(text, space, " ")
	if t.trimSpaces {
		text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == ' ' }), " ")
	}
	if first && t.spacePrefix && text != "" {
		text = " " + text
	}
	return text
}
