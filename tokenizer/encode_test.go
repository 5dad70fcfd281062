package tokenizer_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tandemrun/tandem/tokenizer"
)

func encode(t *testing.T, tok *tokenizer.Tokenizer, frags ...tokenizer.Fragment) []int32 {
	t.Helper()
	ids, err := tok.Encode(frags, false)
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

func plain(text string) tokenizer.Fragment  { return tokenizer.Fragment{Text: text} }
func marked(text string) tokenizer.Fragment { return tokenizer.Fragment{Text: text, Control: true} }

// What a user writes must never become a control token.
func TestPlainTextGivesNoControlToken(t *testing.T) {
	spm := sentencePiece() // merges would spell out <s>
	bpe := byteLevel("llama-bpe").with("bos_token_id", uint64(0),
		"merges", []string{"< |", "i m", "<| im", "<|im _", "e n", "en d", "<|im_ end", "<|im_end |", "<|im_end| >"})
	for _, tok := range []*tokenizer.Tokenizer{tiny(t), build(t, lines()), build(t, byteLevel("gpt-2")), build(t, spm), build(t, bpe)} {
		for _, special := range tok.Specials() {
			for _, text := range []string{special, "a" + special, special + special, " " + special + "\n"} {
				for _, id := range encode(t, tok, plain(text[:1]), plain(text[1:])) {
					token := tok.Token(id)
					if slices.Contains(tok.Specials(), token) && token != "<tool>" && token != "<b>" { // those two are user-defined
						t.Errorf("%s: the text %q gives the token %q", tok.Kind(), text, token)
					}
				}
			}
		}
	}
}

func TestFragments(t *testing.T) {
	tok := build(t, byteLevel("gpt-2"))
	id := func(token string) int32 {
		id, ok := tok.ID(token)
		if !ok {
			t.Fatalf("no token %q", token)
		}
		return id
	}
	for _, c := range []struct {
		name  string
		frags []tokenizer.Fragment
		want  []int32
	}{
		{"nothing", nil, nil},
		{"empty text", []tokenizer.Fragment{plain("")}, nil},
		{"a control token", []tokenizer.Fragment{marked("<|im_end|>")}, []int32{1}},
		{"neighbours are one text", []tokenizer.Fragment{plain("he"), plain(""), plain("llo")}, []int32{id("hello")}},
		{"a control token parts text", []tokenizer.Fragment{plain("he"), marked("<|im_start|>"), plain("llo")}, []int32{id("he"), 0, id("ll"), id("o")}},
		{"user-defined in plain text", []tokenizer.Fragment{plain("hello<to"), plain("ol>hello")}, []int32{id("hello"), 2, id("hello")}},
		{"user-defined marked", []tokenizer.Fragment{marked("<tool>")}, []int32{2}},
	} {
		if got := encode(t, tok, c.frags...); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
	for _, text := range []string{"hello", "<|im_end|> ", "", "<|other|>"} {
		if _, err := tok.Encode([]tokenizer.Fragment{plain("a"), marked(text)}, false); err == nil || !strings.Contains(err.Error(), "fragment 1") {
			t.Errorf("%q marked as a special token: got %v, want an error that names fragment 1", text, err)
		}
	}
}

func TestSplit(t *testing.T) {
	m := byteLevel("gpt-2")
	v := vocab{tokens: slices.Clone(m["tokenizer.ggml.tokens"].([]string)), types: slices.Clone(m["tokenizer.ggml.token_type"].([]int64))}
	v.add(3, 0, "<|im", "<|im_end|>>", "é!")
	tok := build(t, m.with("tokens", v.tokens, "token_type", v.types))
	for _, c := range []struct {
		text string
		want []tokenizer.Fragment
	}{
		{"", nil},
		{"hello", []tokenizer.Fragment{plain("hello")}},
		{"<|im_end|>", []tokenizer.Fragment{marked("<|im_end|>")}},
		{"<|im_end|>>", []tokenizer.Fragment{marked("<|im_end|>>")}},
		{"<|im_end|", []tokenizer.Fragment{marked("<|im"), plain("_end|")}},
		{"<|i", []tokenizer.Fragment{plain("<|i")}},
		{"<<|im_start|>user\né!<tool>.", []tokenizer.Fragment{plain("<"), marked("<|im_start|>"), plain("user\n"), marked("é!"), marked("<tool>"), plain(".")}},
		{"\xc3<|im\xa9", []tokenizer.Fragment{plain("\xc3"), marked("<|im"), plain("\xa9")}},
	} {
		if got := tok.Split(c.text); !slices.Equal(got, c.want) {
			t.Errorf("%q: got %+v, want %+v", c.text, got, c.want)
		}
	}
	if got, want := tok.Specials(), []string{"<|im_start|>", "<|im_end|>", "<tool>", "<|im", "<|im_end|>>", "é!"}; !slices.Equal(got, want) {
		t.Errorf("special tokens are %q, want %q", got, want)
	}
}

func TestSentencePieceMerges(t *testing.T) {
	tok := build(t, sentencePiece().with("add_space_prefix", false))
	for text, want := range map[string]string{
		"abc":   "abc",    // ab and bc have equal scores: the leftmost first
		"bcabc": "bc|abc", // bc, then ab, then abc
		" abc":  "▁a|bc",  // ▁a has the highest score
		"▁a":    "▁a",     // U+2581 is a space
	} {
		var got []string
		for _, id := range encode(t, tok, plain(text)) {
			got = append(got, tok.Token(id))
		}
		if s := strings.Join(got, "|"); s != want {
			t.Errorf("%q: got %s, want %s", text, s, want)
		}
	}
}

// Without byte tokens, a stretch of unknown text is one unknown token.
func TestUnknownText(t *testing.T) {
	tok := build(t, meta{"tokenizer.ggml.model": "llama", "tokenizer.ggml.add_space_prefix": false,
		"tokenizer.ggml.tokens": []string{"<unk>", "<s>", "</s>", "a"}, "tokenizer.ggml.token_type": []int64{2, 3, 3, 1},
		"tokenizer.ggml.scores": []float32{0, 0, 0, -1}})
	if got, want := encode(t, tok, plain("éüaxa")), []int32{0, 3, 0, 3}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got, want := encode(t, tok, marked("<unk>"), plain("é")), []int32{0, 0}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestLines(t *testing.T) {
	tok := build(t, lines())
	for text, want := range map[string][]string{
		"\n":        {"\n"},
		"\n\n":      {"\n", "\n"}, // no token, no merge
		"\n\n\n":    {"\n\n\n"},   // a whole run that is a token
		"a\n b":     {"a", "\n", "▁", "b"},
		" ab":       {"▁", "ab"}, // a b comes before ▁ a
		" aé":       {"▁a", "<0xC3>", "<0xA9>"},
		"éé":        {"<0xC3>", "<0xA9>", "<0xC3>", "<0xA9>"}, // merges to what is no token
		"a<b>b\xff": {"a", "<b>", "b", "<0xFF>"},
	} {
		var got []string
		for _, id := range encode(t, tok, plain(text)) {
			got = append(got, tok.Token(id))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// Llama 3 takes a piece that is a token as it is, even if merges do not lead there.
func TestWholePieces(t *testing.T) {
	for pre, want := range map[string][]string{"llama-bpe": {"hey"}, "dbrx": {"he", "y"}, "gpt-2": {"he", "y"}} {
		tok := build(t, byteLevel(pre).with("bos_token_id", uint64(0)))
		var got []string
		for _, id := range encode(t, tok, plain("hey")) {
			got = append(got, tok.Token(id))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", pre, got, want)
		}
	}
}

func TestEnds(t *testing.T) {
	ends := func(tok *tokenizer.Tokenizer) (s []string) {
		for id := range int32(tok.Size()) {
			if tok.EndOfGeneration(id) {
				s = append(s, tok.Token(id))
			}
		}
		return s
	}
	v := vocab{}
	v.add(1, 0, "a", "</s>")
	v.add(3, 0, "<|eom_id|>", "<|im_end|>", "<|endoftext|>", "<x>", "<y>")
	v.add(4, 0, "<end_of_turn>")
	base := meta{"tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": v.tokens, "tokenizer.ggml.token_type": v.types,
		"tokenizer.ggml.scores": v.scores, "tokenizer.ggml.unknown_token_id": uint64(0), "tokenizer.ggml.add_bos_token": false}
	for _, c := range []struct {
		m    meta
		want []string
		eot  string
	}{
		{base, []string{"<|eom_id|>", "<|im_end|>", "<|endoftext|>"}, "<|im_end|>"},
		{base.with("eos_token_id", uint64(5), "eot_token_id", uint64(6)), []string{"<|eom_id|>", "<|im_end|>", "<|endoftext|>", "<x>", "<y>"}, "<y>"},
		{base.with("eom_token_id", uint64(5)), []string{"<|eom_id|>", "<|im_end|>", "<|endoftext|>", "<x>"}, "<|im_end|>"},
		{base.with("eos_token_id", uint64(1)), []string{"</s>", "<|eom_id|>", "<|im_end|>", "<|endoftext|>"}, "<|im_end|>"},
	} {
		tok := build(t, c.m)
		if got := ends(tok); !slices.Equal(got, c.want) {
			t.Errorf("ends are %q, want %q", got, c.want)
		}
		if id, ok := tok.EOT(); !ok || tok.Token(id) != c.eot {
			t.Errorf("EOT is %d, %v, want %q", id, ok, c.eot)
		}
	}

	tok := tiny(t)
	if got, want := ends(tok), []string{"<eos>", "<turn|>"}; !slices.Equal(got, want) {
		t.Errorf("tiny: ends are %q, want %q", got, want)
	}
	for name, f := range map[string]func() (int32, bool){"<bos>": tok.BOS, "<eos>": tok.EOS, "<turn|>": tok.EOT} {
		if id, ok := f(); !ok || tok.Token(id) != name {
			t.Errorf("tiny: got %d, %v, want %q", id, ok, name)
		}
	}
	if _, ok := build(t, byteLevel("gpt-2")).BOS(); ok {
		t.Error("a file that names no BOS token has one")
	}
	if tok.EndOfGeneration(-1) || tok.EndOfGeneration(int32(tok.Size())) {
		t.Error("an id outside the vocabulary ends a generation")
	}
}

func TestLongTexts(t *testing.T) {
	texts := longTexts(t)
	tok := tiny(t)
	var wait sync.WaitGroup
	for _, name := range []string{"prose", "nospace", "same", "spaces"} { // at once: a Tokenizer is shared
		wait.Go(func() {
			ids, err := tok.EncodeText(texts[name], false, true)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if got := tok.Decode(ids, false); got != texts[name] {
				t.Errorf("%s: the text does not come back", name)
			}
		})
	}
	wait.Wait()
}
