package tokenizer_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tandemrun/tandem/tokenizer"
)

// FuzzEncode checks that any text is encoded without an error, that valid UTF-8
// comes back, and that decoding token by token gives whole characters and the
// same text.
func FuzzEncode(f *testing.F) {
	for _, text := range []string{
		"", " ", "hello hey 12", " a\n\n\nb  ab", "\u2581a", "<tool><|im_end|><b><s>", "it's 'S don't", "1½٣ \t\r\n x", "😀e\u0301", "a\xff\xe2\x82",
	} {
		f.Add(text)
	}
	toks := []*tokenizer.Tokenizer{tiny(f), build(f, lines()), build(f, sentencePiece())}
	for _, pre := range []string{"gpt-2", "smollm", "qwen2", "llama-bpe"} {
		toks = append(toks, build(f, byteLevel(pre).with("bos_token_id", uint64(0))))
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, tok := range toks {
			ids, err := tok.EncodeText(text, false, true)
			if err != nil {
				t.Fatalf("%s: %q: %v", tok.Kind(), text, err)
			}
			got := tok.Decode(ids, false)
			want := text
			if tok.Kind() != "gpt2" {
				want = plainSpaces(text)
			}
			if utf8.ValidString(text) && got != want {
				t.Errorf("%s: %q comes back as %q", tok.Kind(), text, got)
			}
			var stream strings.Builder
			d := tok.Decoder(false)
			for _, id := range ids {
				s := d.Write(id)
				if !utf8.ValidString(s) {
					t.Errorf("%s: %q: part of a character: %q", tok.Kind(), text, s)
				}
				stream.WriteString(s)
			}
			stream.WriteString(d.Flush())
			if stream.String() != got {
				t.Errorf("%s: %q: streamed %q, decoded %q", tok.Kind(), text, stream.String(), got)
			}
			var whole strings.Builder
			for _, f := range tok.Split(text) {
				if f.Text == "" {
					t.Errorf("%s: %q: Split gives an empty fragment", tok.Kind(), text)
				}
				whole.WriteString(f.Text)
			}
			if whole.String() != text {
				t.Errorf("%s: Split makes %q of %q", tok.Kind(), whole.String(), text)
			}
			if _, err := tok.EncodeText(text, true, false); err != nil {
				t.Errorf("%s: %q as trusted text: %v", tok.Kind(), text, err)
			}
		}
	})
}
