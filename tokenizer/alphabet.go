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

// runeBytes maps a character of the alphabet to 1 + its byte, others to 0.
var runeBytes = func() (bytes [0x144]uint16) {
	next := rune(0x100)
	for b := range uint16(256) {
		r := rune(b)
		if b <= ' ' || (b >= 0x7f && b <= 0xa0) || b == 0xad {
			r = next
			next++
		}
		bytes[r] = b + 1
	}
	return bytes
}()

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
