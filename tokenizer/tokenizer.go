// Package tokenizer turns text into token ids and back, by the vocabulary that
// a GGUF file holds under tokenizer.ggml.*.
//
// Three kinds are known, named as the file names them: "gemma4" (byte pair
// encoding over whole lines, with a fall-back to bytes), "llama" (SentencePiece
// byte pair encoding by scores; Gemma 3 too) and "gpt2" (byte-level byte pair
// encoding behind a pre-tokenizer). Unigram and WordPiece vocabularies are not
// read, and text is not normalised: callers who want NFC apply it first.
//
// Control tokens never come out of plain text. They come from a [Fragment]
// marked Control, from [Tokenizer.Split], which is for trusted text only, or
// from the file's rule about the beginning and end of a sequence. User-defined
// tokens are matched in plain text too, the longest at the leftmost place.
//
// Decoding gives back the text that was encoded, for valid UTF-8 and a
// vocabulary that covers it; in the kinds "gemma4" and "llama" U+2581 stands
// for a space, so that character comes back as one. What is not valid UTF-8
// is encoded byte by byte and decoded to U+FFFD.
//
// A Tokenizer does not change and may be shared between goroutines. It keeps
// nothing of the [Metadata] it was made from but the strings. A [Decoder]
// belongs to one goroutine.
package tokenizer

import (
	"errors"
	"slices"
)

// ErrNoVocab is the error of [New] for a file that says it has no vocabulary.
var ErrNoVocab = errors.New("the file has no vocabulary")

// Metadata is what a vocabulary is read from: the typed lookups of a GGUF file.
// Their errors name the key.
type Metadata interface {
	Has(key string) bool
	String(key string) (string, error)
	Strings(key string) ([]string, error)
	Uint(key string) (uint64, error)
	Ints(key string) ([]int64, error)
	Floats(key string) ([]float32, error)
	Bool(key string) (bool, error)
}

// A Fragment is a piece of a prompt. If Control is set, Text is exactly the
// string of a special token; if not, strings of control tokens within Text are
// text like any other.
type Fragment struct {
	Text    string
	Control bool
}

// A Tokenizer is a vocabulary and the rules to use it.
type Tokenizer struct {
	kind   string
	tokens []string // as in the file
	pieces []string // the bytes each stands for in text
	types  []tokenType
	ids    map[string]int32 // by piece: what plain text can become; ids from len(tokens) on are parts of merges only
	model  model

	special     map[string]int32 // control, unknown and user-defined tokens, by string
	trusted     matcher          // the same, to find them in text
	userDefined matcher

	bos, eos, eot  int32 // -1: none
	unknown        int32
	ends           []int32
	addBOS, addEOS bool
	spacePrefix    bool // SentencePiece's: a space before text, taken away again at the start of decoded text
	trimSpaces     bool // remove_extra_whitespaces
	notes          []string
}

// A model turns plain text without special tokens into ids.
type model interface {
	// append appends the ids of text, which has spaces for U+2581.
	append(dst []int32, text string, m *merger) []int32
}

// Kind returns the value of tokenizer.ggml.model: "gemma4", "llama" or "gpt2".
func (t *Tokenizer) Kind() string { return t.kind }

// Notes returns what a person should know about how the file was read: where
// it leaves something open or contradicts itself, one sentence each.
func (t *Tokenizer) Notes() []string { return slices.Clone(t.notes) }

// Size returns the number of tokens. Ids are 0 to Size()-1.
func (t *Tokenizer) Size() int { return len(t.tokens) }

// Token returns a token as the file spells it ("▁the", "Ġthe", "<0x0A>"), and
// "" for an id that is not in the vocabulary. Use [Tokenizer.Decode] for text.
func (t *Tokenizer) Token(id int32) string {
	if !t.valid(id) {
		return ""
	}
	return t.tokens[id]
}

// ID returns the id of a token spelt as in the file.
func (t *Tokenizer) ID(token string) (int32, bool) {
	if id, ok := t.special[token]; ok {
		return id, true
	}
	if id, ok := t.ids[t.alphabet().piece(token)]; ok && t.valid(id) && t.tokens[id] == token {
		return id, true
	}
	// Byte tokens and spellings that text cannot reach are in no map.
	if i := slices.Index(t.tokens, token); i >= 0 && token != "" {
		return int32(i), true
	}
	return 0, false
}

// BOS returns the token that begins a sequence, if there is one.
func (t *Tokenizer) BOS() (id int32, ok bool) { return t.bos, t.bos >= 0 }

// EOS returns the token that ends a sequence, if there is one.
func (t *Tokenizer) EOS() (id int32, ok bool) { return t.eos, t.eos >= 0 }

// EOT returns the token that ends a turn of a chat, if there is one.
func (t *Tokenizer) EOT() (id int32, ok bool) { return t.eot, t.eot >= 0 }

// EndOfGeneration reports whether a model that gives this token has finished:
// the ends of sequence, turn and message that the file names, and control
// tokens with a well-known string of that meaning.
func (t *Tokenizer) EndOfGeneration(id int32) bool { return slices.Contains(t.ends, id) }

// Specials returns the strings of the control, unknown and user-defined
// tokens, in the order of their ids: what [Tokenizer.Split] finds and a
// Control fragment may hold.
func (t *Tokenizer) Specials() []string {
	var s []string
	for id, typ := range t.types {
		if typ.special() && t.tokens[id] != "" {
			s = append(s, t.tokens[id])
		}
	}
	return s
}

func (t *Tokenizer) valid(id int32) bool { return uint32(id) < uint32(len(t.tokens)) }

// alphabet returns how the file spells pieces.
func (t *Tokenizer) alphabet() alphabet {
	if t.kind == "gpt2" {
		return byteLevel{}
	}
	return escaped{}
}
