package tokenizer

import "strings"

// An alphabet is the way a file spells pieces of text as tokens.
type alphabet interface {
	// piece returns the text that a token stands for.
	piece(token string) string
	// reachable reports whether text can become the token at all: whether it
	// is spelt with the alphabet only.
	reachable(token string) bool
}

// space is how SentencePiece vocabularies spell a space.
const space = "\u2581"

// escaped spells a space as U+2581 and everything else as it is.
type escaped struct{}

func (escaped) piece(token string) string   { return strings.ReplaceAll(token, space, " ") }
func (escaped) reachable(token string) bool { return strings.IndexByte(token, ' ') < 0 }

// byteLevel spells each byte as one printable character: GPT-2's alphabet. The
// printable bytes of Latin-1 stand for themselves, the others for U+0100 and
// up, in order.
type byteLevel struct{}

var (
	byteRunes [256]rune     // byte to character
	runeBytes [0x144]uint16 // character to 1 + byte, 0 for none
)

func init() {
	next := rune(0x100)
	for b := range byteRunes {
		r := rune(b)
		if b <= ' ' || (b >= 0x7f && b <= 0xa0) || b == 0xad {
			r = next
			next++
		}
		byteRunes[b], runeBytes[r] = r, uint16(b)+1
	}
}

// piece takes a token that is not in the alphabet literally: files hold some
// added tokens so.
func (byteLevel) piece(token string) string {
	b := make([]byte, 0, 64)
	for _, r := range token {
		if int(r) >= len(runeBytes) || runeBytes[r] == 0 {
			return token
		}
		b = append(b, byte(runeBytes[r]-1))
	}
	if string(b) == token {
		return token
	}
	return string(b)
}

func (byteLevel) reachable(token string) bool {
	for _, r := range token {
		if int(r) >= len(runeBytes) || runeBytes[r] == 0 {
			return false
		}
	}
	return true
}

// byteToken reads a token of the form <0xHH>.
func byteToken(token string) (byte, bool) {
	if len(token) != 6 || token[:3] != "<0x" || token[5] != '>' {
		return 0, false
	}
	hi, lo := strings.IndexByte(hexDigits, token[3]), strings.IndexByte(hexDigits, token[4])
	return byte(hi<<4 | lo), hi >= 0 && lo >= 0
}

const hexDigits = "0123456789ABCDEF"
