package tokenizer_test

import (
	"strings"
	"testing"
)

func TestDecoderGivesWholeCharacters(t *testing.T) {
	tok := build(t, lines()) // bytes from id 2 on
	id := func(c int) int32 { return int32(c) + 2 }
	type step struct {
		c    int
		want string
	}
	for _, c := range []struct {
		name  string
		steps []step
		flush string
	}{
		{"four bytes", []step{{0xf0, ""}, {0x9f, ""}, {0x98, ""}, {0x80, "😀"}}, ""},
		{"cut short by text", []step{{0xe2, ""}, {0x82, ""}, {'x', "\uFFFDx"}}, ""},
		{"cut short by the end", []step{{0xe2, ""}, {0x82, ""}}, "\uFFFD"},
		{"cut short by another", []step{{0xe2, ""}, {0xc3, "\uFFFD"}, {0xa9, "é"}}, ""},
		{"never valid", []step{{0xff, "\uFFFD"}, {0x80, "\uFFFD"}, {0xc0, "\uFFFD"}}, ""},
		{"no surrogates", []step{{0xed, ""}, {0xa0, "\uFFFD\uFFFD"}}, ""},
		{"overlong", []step{{0xe0, ""}, {0x80, "\uFFFD\uFFFD"}}, ""},
		{"the character itself", []step{{0xef, ""}, {0xbf, ""}, {0xbd, "\uFFFD"}}, ""},
	} {
		d := tok.Decoder(false)
		for i, s := range c.steps {
			if got := d.Write(id(s.c)); got != s.want {
				t.Errorf("%s: step %d gives %q, want %q", c.name, i, got, s.want)
			}
		}
		if got := d.Flush(); got != c.flush {
			t.Errorf("%s: the end gives %q, want %q", c.name, got, c.flush)
		}
		if got := d.Flush(); got != "" {
			t.Errorf("%s: a second end gives %q", c.name, got)
		}
	}
}

func TestDecodeSpecials(t *testing.T) {
	tok := build(t, byteLevel("gpt-2"))
	hello, _ := tok.ID("Ġhello")
	ids := []int32{0, hello, 2, 1}
	if got, want := tok.Decode(ids, true), "<|im_start|> hello<tool><|im_end|>"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := tok.Decode(ids, false), " hello<tool>"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := tok.Decode([]int32{hello, -1, int32(tok.Size())}, false), " hello\uFFFD\uFFFD"; got != want {
		t.Errorf("ids outside the vocabulary: got %q, want %q", got, want)
	}
}

// The space that encoding put before the text goes away once, at the start.
func TestDecodeSpacePrefix(t *testing.T) {
	tok := build(t, sentencePiece())
	for _, text := range []string{"a", " a", "  a", " ", "abc abc", "\na", "é", ""} {
		for _, addBOS := range []bool{false, true} {
			ids, err := tok.EncodeText(text, false, addBOS)
			if err != nil {
				t.Fatal(err)
			}
			if got := tok.Decode(ids, false); got != text {
				t.Errorf("%q comes back as %q", text, got)
			}
		}
	}
	d := tok.Decoder(false)
	id, _ := tok.ID("▁a")
	var got []string
	for range 2 {
		got = append(got, d.Write(id), d.Write(id))
		d.Flush()
	}
	if s := strings.Join(got, "|"); s != "a| a|a| a" {
		t.Errorf("got %s, want a| a|a| a", s)
	}
}
