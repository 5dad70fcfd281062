package chat

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func render(t testing.TB, o Options, msgs ...Message) []Part {
	t.Helper()
	parts, err := mustNew(t, o).Render(msgs, false)
	if err != nil {
		t.Fatal(err)
	}
	return parts
}

func user(contents ...string) []Message {
	var msgs []Message
	for _, c := range contents {
		msgs = append(msgs, Message{"user", c})
	}
	return msgs
}

// Content never becomes a control token, whatever template text it meets.
func TestContentIsText(t *testing.T) {
	specials := []string{"<|turn>", "<turn|>", "<|", "<|turn>x", "[a b]", "aXXb!", "\u00ab\U000F0001\u00bb"}
	for _, c := range []struct {
		name, source string
		contents     []string
		want         []Part
	}{
		{"whole", "{{ messages[0].content }}", []string{"<|turn><turn|>"}, []Part{{"<|turn><turn|>", false}}},
		{"begun by content", "{{ messages[0].content }}rn>", []string{"<|tu"}, []Part{{"<|turn>", false}}},
		{"begun by one character", "{{ messages[0].content }}|turn>", []string{"a<"}, []Part{{"a<|turn>", false}}},
		{"ended by content", "<tu{{ messages[0].content }}", []string{"rn|>"}, []Part{{"<turn|>", false}}},
		{"ended by one character", "<turn|{{ messages[0].content }}", []string{">"}, []Part{{"<turn|>", false}}},
		{"middle from content", "<t{{ messages[0].content }}|>", []string{"urn"}, []Part{{"<turn|>", false}}},
		{"middle of one character", "<tur{{ messages[0].content }}|>", []string{" n\n"}, []Part{{"<tur n\n|>", false}}},
		{"middle, trimmed", "<tur{{ messages[0].content | trim }}|>", []string{" n\n"}, []Part{{"<turn|>", false}}},
		{"of two contents", "{{ messages[0].content }}{{ messages[1].content }}", []string{"<tu", "rn|>"}, []Part{{"<turn|>", false}}},
		{"of pieces", "{{ messages[0].content.split('<|turn>') | join('') }}", []string{"<tu<|turn>rn|>"}, []Part{{"<turn|>", false}}},
		{"of replaced pieces", "{{ messages[0].content | replace('-', '') | replace('_', '<') }}", []string{"<|tu-rn>_turn|>"},
			[]Part{{"<|turn><turn|>", false}}},
		{"reversed", "{{ messages[0].content[::-1] }}", []string{">nrut|<"}, []Part{{"<|turn>", false}}},
		{"beside the template's", "<|turn>{{ messages[0].content }}<turn|>", []string{"<turn|>"},
			[]Part{{"<|turn>", true}, {"<turn|>", false}, {"<turn|>", true}}},
		{"longer with content", "<|turn>{{ messages[0].content }}", []string{"x"}, []Part{{"<|turn>", true}, {"x", false}}},
		{"longer in the template", "{{ '<|' }}turn><|turn>x", []string{""}, []Part{{"<|turn>", true}, {"<|turn>x", true}}},
		{"overlapping", "<|turn><|tu<|{{ messages[0].content }}", []string{"<|<|turn>"},
			[]Part{{"<|turn>", true}, {"<|", true}, {"tu", false}, {"<|", true}, {"<|<|turn>", false}}},
		{"white space and letters inside", "[a b]{{ '[a' + ' b]' }}aXXb!{{ messages[0].content }}", []string{"[a b]aXXb!"},
			[]Part{{"[a b]", true}, {"[a b]", true}, {"aXXb!", true}, {"[a b]aXXb!", false}}},
		{"private characters", "<|turn>\U000F0000{{ messages[0].content }}\u00ab\U000F0001\u00bb",
			[]string{"\U000F0000\U000F0001\U000F0002<|turn>\U000F0003\U000F0004\U000F0005\U000F0006\U000F0007\U000F0008\U000F0009\U000F000A"},
			[]Part{{"<|turn>", true}, {"\U000F0000\U000F0000\U000F0001\U000F0002<|turn>\U000F0003\U000F0004\U000F0005\U000F0006\U000F0007\U000F0008\U000F0009\U000F000A", false},
				{"\u00ab\U000F0001\u00bb", true}}},
		{"not UTF-8", "<|turn>{{ messages[0].content }}<turn|>", []string{"a\xff\xf3\xb0<|turn>\x80"},
			[]Part{{"<|turn>", true}, {"a\xff\xf3\xb0<|turn>\x80", false}, {"<turn|>", true}}},
		{"template code", "{{ messages[0].content }}", []string{"{{ bos_token }}{% if %}{#"}, []Part{{"{{ bos_token }}{% if %}{#", false}}},
	} {
		parts := render(t, Options{Source: c.source, Specials: specials}, user(c.contents...)...)
		if diff := cmp.Diff(c.want, parts); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

// Templates look at content as it is, also for strings that they write as
// control tokens elsewhere.
func TestContentIsUnchanged(t *testing.T) {
	specials := []string{"<think>", "</think>", "<s>", "</s>"}
	for _, c := range []struct{ source, content, want string }{
		{"{{ messages[0].content | length }}", "<s>a</s>", "8"},
		{"{{ '<think>' in messages[0].content }}{{ '<s>' not in messages[0].content }}", "a<think>", "TrueTrue"},
		{"{{ messages[0].content.startswith('<think>') }}{{ messages[0].content.endswith(\"</think>\") }}", "<think></think>", "TrueTrue"},
		{"{{ messages[0].content == '<s>' }}{{ '<s>' != messages[0].content }}", "<s>", "TrueFalse"},
		{"{{ messages[0].content.split('</think>')[-1].lstrip('\\n') }}", "<think>x</think>\n\ny", "y"},
		{"{{ messages[0].content | replace('<s>', '(s)') }}{{ messages[0].content.find('<s>') }}", "a<s>", "a(s)1"},
		{"{{ {'<s>': 'v', 'k': '<s>'}['k'] }}{{ messages[0].content.strip('<s>') }}", "<s>a<", "<s>a"},
		{"{{ [messages[0].content, '<s>'] | join('<s>') | length }}", "a", "7"},
		{"{{ raise }}{% if messages[0].content[0] == '<' %}tag{% endif %}", "<s>", "tag"},
		{"{{ messages[0].content[1:] }}", "x<s>", "<s>"},
	} {
		text, _ := join(render(t, Options{Source: c.source, Specials: specials}, user(c.content)...))
		if text != c.want {
			t.Errorf("%s of %q: %q, want %q", c.source, c.content, text, c.want)
		}
	}
}

// Content that uses every private character leaves none for twins.
func TestNoPrivateCharacterLeft(t *testing.T) {
	var b strings.Builder
	for r := rune(0xF0000); r <= 0x10FFFF; r++ {
		b.WriteRune(r)
	}
	tm := mustNew(t, Options{Source: "<s>{{ messages[0].content }}", Specials: []string{"<s>"}})
	if _, err := tm.Render(user(b.String()), false); !errors.Is(err, errTwins) {
		t.Errorf("error %v, want %v", err, errTwins)
	}
	if parts, err := tm.Render(user("x"), false); err != nil || len(parts) != 2 {
		t.Errorf("%v, %v afterwards", parts, err)
	}
}

// What is not understood is an error that names it, when the template is
// loaded or, where only a run can tell, when it comes there.
func TestErrors(t *testing.T) {
	for _, c := range []struct{ source, want string }{
		{"a\n{% include 'x' %}", `line 2: the statement "include" is not supported`},
		{"{% if x %}\n\n{% for %}", "line 3"},
		{"{% if x %}", "line 1: the if block is not closed"},
		{"{% endif %}", "endif ends no block"},
		{"{% for i in x %}{% endif %}", "endif ends no block"},
		{"{{ a", "not closed with }}"},
		{"{% a", "not closed with %}"},
		{"x\n{# a", "line 2: a comment is not closed"},
		{"{{ 'a }}", "a string is not closed with '"},
		{"{{ a) }}", `")" closes no bracket`},
		{"{{ (a] }}", `"]" closes no bracket`},
		{"{{ }}", "a tag is empty"},
		{"{{ a @ b }}", `the character '@' has no meaning`},
		{"{{ '\\xzz' }}", `\xzz`},
		{"{{ '\\N{DASH}' }}", `\N`},
		{"{% raw %}{{ x }}", "raw block is not closed"},
		{"{% set a, b = 1, 2 %}", "several variables"},
		{"{% set a | upper %}x{% endset %}", "through a filter"},
		{"{% filter indent(2) %}x{% endfilter %}", "filter block"},
		{"{% macro f(a=[1,2]) %}{% endmacro %}", "default value"},
		{"{% for (a, b) in x %}{% endfor %}", "in brackets"},
		{"{{ '%s' % 'x' }}", "formatting strings"},
		{"\n\n{{ a b }}", "line 3"},
		{"{% if true %}\n{{ 'x\ny' }}\n{{ a ! }}{% endif %}", "line 4"},
		{strings.Repeat("{% if x %}", 200), "blocks in each other"},
		{"{{ " + strings.Repeat("(", 200) + " }}", "brackets in each other"},
		{"{{ " + strings.Repeat("- ", 20000) + "1 }}", "10000 parts"},
		{strings.Repeat("x", maxSource+1), "more than the"},
		{"{{ x.y() }}", "x.y is not callable"},
		{"{{ 'a' | nosuch }}", `unknown filter "nosuch"`},
		{"{{ 'a' is nosuch }}", `unknown test "nosuch"`},
		{"{{ 'a-b-c'.split('-', 1) }}", "split_with_a_limit"},
		{"{{ ['a'] | map('upper') }}", "map_with_a_filter"},
		{"{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "more than 100 deep"},
		{"{% set ns = namespace() %}{% macro m() %}{% set ns.c = caller %}{{ caller() }}{% endmacro %}{% call m() %}{{ ns.c() }}{% endcall %}", "more than 100 deep"},
		{"{{ range(10000000) | length }}", "more than 1000000 elements"},
		{"{{ range(1, 2, 0) }}", "a step other than 0"},
		{"{% for i in range(2000) %}{% for j in range(2000) %}{% endfor %}{% endfor %}", "more than 1000004 times"},
		{"{{ [1] | select }}", "the template engine failed"},
		{"{{ 'a' * -1 }}", "the template engine failed"},
		{"{{ strftime_now('%Q') }}", `strftime_now does not know "%Q"`},
		{"{{ raise_exception('no <s> here') }}", "refuses the conversation: no <s> here"},
	} {
		tm, err := New(Options{Source: c.source, Specials: []string{"<s>", "%Q>"}})
		if err == nil {
			_, err = tm.Render(user("x"), true)
		}
		short := c.source[:min(len(c.source), 60)]
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: error %v, want one with %q", short, err, c.want)
		}
	}
}

// A part that is not understood does no harm where a template does not come.
func TestUnusedParts(t *testing.T) {
	source := "{% if tools %}{{ tools | map('upper') | nosuch }}{{ x.split('a', 1) }}{{ tools.f() }}{% endif %}ok"
	if text, _ := join(render(t, Options{Source: source}, user("x")...)); text != "ok" {
		t.Errorf("%q", text)
	}
}

func TestMessages(t *testing.T) {
	for _, o := range []Options{{}, {Source: "{{ messages[0].content }}"}} {
		tm := mustNew(t, o)
		if _, err := tm.Render(nil, true); err == nil {
			t.Error("no messages were accepted")
		}
		if _, err := tm.Render([]Message{{"user", "a"}, {"tool", "b"}}, true); err == nil ||
			!strings.Contains(err.Error(), `message 2 has the role "tool"`) {
			t.Errorf("error %v of the role tool", err)
		}
	}
}

func TestForms(t *testing.T) {
	msgs := []Message{{"system", " s\n"}, {"user", " u <|turn> "}, {"assistant", "a"}, {"user", "v"}}
	gemma4 := []string{"<bos>", "<|turn>", "<turn|>"}
	for _, c := range []struct {
		name     string
		o        Options
		text     string
		controls string
	}{
		{"gemma4", Options{Arch: "gemma4", BOS: "<bos>", Specials: gemma4},
			"<bos><|turn>system\ns<turn|>\n<|turn>user\nu <|turn><turn|>\n<|turn>model\na<turn|>\n<|turn>user\nv<turn|>\n<|turn>model\n",
			"<bos> <|turn> <turn|> <|turn> <turn|> <|turn> <turn|> <|turn> <turn|> <|turn> "},
		{"gemma3", Options{Arch: "gemma3", BOS: "<bos>", Specials: []string{"<start_of_turn>", "<end_of_turn>"}},
			"<bos><start_of_turn>user\ns\n\nu <|turn><end_of_turn>\n<start_of_turn>model\na<end_of_turn>\n<start_of_turn>user\nv<end_of_turn>\n<start_of_turn>model\n",
			"<bos> <start_of_turn> <end_of_turn> <start_of_turn> <end_of_turn> <start_of_turn> <end_of_turn> <start_of_turn> "},
		{"chatml", Options{Arch: "qwen3", BOS: "<s>", Specials: []string{"<|im_start|>", "<|im_end|>"}},
			"<|im_start|>system\n s\n<|im_end|>\n<|im_start|>user\n u <|turn> <|im_end|>\n<|im_start|>assistant\na<|im_end|>\n<|im_start|>user\nv<|im_end|>\n<|im_start|>assistant\n",
			"<|im_start|> <|im_end|> <|im_start|> <|im_end|> <|im_start|> <|im_end|> <|im_start|> <|im_end|> <|im_start|> "},
		{"plain", Options{Arch: "gemma4", BOS: "<s>"},
			"System:  s\n\nUser:  u <|turn> \nAssistant: a\nUser: v\nAssistant:", ""},
	} {
		parts, err := mustNew(t, c.o).Render(msgs, true)
		if err != nil {
			t.Fatal(err)
		}
		text, controls := join(parts)
		if text != c.text || controls != c.controls {
			t.Errorf("%s: %q with %s\nwant %q with %s", c.name, text, controls, c.text, c.controls)
		}
	}
	// A system message that no user turn follows is not lost.
	o := Options{Arch: "gemma3", Specials: []string{"<start_of_turn>", "<end_of_turn>"}}
	if text, _ := join(render(t, o, Message{"system", "s"})); text != "<start_of_turn>user\ns<end_of_turn>\n" {
		t.Errorf("a lone system message: %q", text)
	}
}

// One template serves many goroutines, also with contents that need twins of
// their own.
func TestConcurrent(t *testing.T) {
	tm := mustNew(t, options(t, "gemma4-large.jinja"))
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			content := fmt.Sprintf("n%d %s", i, strings.Repeat("\U000F0001", i%2))
			for range 5 {
				parts, err := tm.Render(user(content), true)
				if err != nil || !slices.ContainsFunc(parts, func(p Part) bool { return strings.Contains(p.Text, fmt.Sprintf("n%d", i)) }) {
					t.Errorf("%v, %v", parts, err)
				}
			}
		})
	}
	wg.Wait()
}

// Whatever people write, the parts together are what the template renders
// without any marking, and the control tokens are those it writes anyway.
func FuzzContent(f *testing.F) {
	type pair struct{ marked, bare *Template }
	templates := map[string]pair{}
	for file := range vocabularies {
		o := options(f, file)
		p := pair{marked: mustNew(f, o)}
		o.Specials, o.BOS, o.EOS = nil, "", ""
		p.bare = mustNew(f, o)
		p.bare.bos, p.bare.eos = p.marked.bos, p.marked.eos
		templates[file] = p
	}
	f.Add("Be brief.", "Hello", "<think>a</think>b")
	f.Add("<|turn>system\n", "x<|channel>y<channel|>z", "<|tu")
	f.Add(" \U000F0000<|im_end|>", "|", "rn>\xff")
	f.Add("user", "<|end|><eos>", "\U000F0003</s>")
	f.Fuzz(func(t *testing.T, system, question, answer string) {
		msgs := []Message{{"system", system}, {"user", question}, {"assistant", answer}, {"user", answer}}
		harmless := slices.Clone(msgs)
		for i := range harmless {
			if harmless[i].Content != "" {
				harmless[i].Content = "z"
			}
		}
		for file, p := range templates {
			parts, err := p.marked.Render(msgs, true)
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			bare, err := p.bare.Render(msgs, true)
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			text, controls := join(parts)
			if want, _ := join(bare); text != want {
				t.Fatalf("%s: %q, want %q", file, text, want)
			}
			for i, part := range parts {
				if part.Text == "" || !part.Control && i > 0 && !parts[i-1].Control {
					t.Fatalf("%s: an empty part or two parts of text in a row: %v", file, parts)
				}
			}
			// Qwen's template writes thoughts that it finds in content.
			if file == "qwen.jinja" && strings.Contains(answer, "<") {
				continue
			}
			parts, err = p.marked.Render(harmless, true)
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if _, want := join(parts); controls != want {
				t.Fatalf("%s: control tokens %s, want %s", file, controls, want)
			}
		}
	})
}

// No template makes New or Render panic.
func FuzzTemplate(f *testing.F) {
	for file := range vocabularies {
		f.Add(options(f, file).Source)
	}
	f.Add("{% for i in range(3) %}{% set x = i %}{{ x }}{% endfor %}{% raw %}{%{% endraw %}")
	f.Fuzz(func(t *testing.T, source string) {
		if strings.Contains(source, "**") || strings.Contains(source, "*") || strings.Contains(source, "range") {
			t.Skip() // may make as much text as there is memory
		}
		tm, err := New(Options{Source: source, Specials: []string{"<|turn>", "<s>"}, BOS: "<s>"})
		if err != nil {
			return
		}
		parts, err := tm.Render(user("a<|turn>", "b"), true)
		if err == nil {
			for _, p := range parts {
				if p.Control && p.Text != "<|turn>" && p.Text != "<s>" {
					t.Fatalf("control part %q", p.Text)
				}
			}
		}
	})
}
