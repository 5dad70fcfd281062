package chat

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tandemrun/tandem/gguf"
)

// vocabularies are the special tokens that the test templates write and some
// that they do not.
var vocabularies = map[string][]string{
	"gemma4-tiny.jinja":  {"<bos>", "<eos>", "<unk>", "<|turn>", "<turn|>", "\n", "\n\n"},
	"gemma4-large.jinja": {"<bos>", "<eos>", "<|turn>", "<turn|>", "<|channel>", "<channel|>", "<|tool>", "<tool|>", "<|\"|>", "<|tool_call>"},
	"llama3.jinja":       {"<|begin_of_text|>", "<|eot_id|>", "<|start_header_id|>", "<|end_header_id|>"},
	"qwen.jinja":         {"<|im_start|>", "<|im_end|>", "<|endoftext|>", "<think>", "</think>", "<tool_response>"},
	"gemma3.jinja":       {"<bos>", "<start_of_turn>", "<end_of_turn>", "<unused0>", "\n\n", "▁▁"},
	"phi.jinja":          {"<|system|>", "<|user|>", "<|assistant|>", "<|end|>", "</s>", "<s>"},
	"plain.jinja":        {"[BOS]", "[EOS]"},
}

func load(t testing.TB, name string, v any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, v); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

func clock() time.Time { return time.Date(2025, 2, 3, 4, 5, 6, 0, time.UTC) }

func options(t testing.TB, file string) Options {
	t.Helper()
	source, err := os.ReadFile(filepath.Join("testdata", "templates", file))
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Source: string(source), BOS: "<s>", EOS: "</s>", Specials: vocabularies[file], Now: clock}
	switch {
	case strings.HasPrefix(file, "gemma"):
		o.BOS, o.EOS = "<bos>", "<eos>"
	case strings.HasPrefix(file, "llama"):
		o.BOS, o.EOS = "<|begin_of_text|>", "<|eot_id|>"
	}
	return o
}

func mustNew(t testing.TB, o Options) *Template {
	t.Helper()
	tm, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return tm
}

// join returns the text of parts and the control tokens among them.
func join(parts []Part) (text string, controls string) {
	for _, p := range parts {
		text += p.Text
		if p.Control {
			controls += p.Text + " "
		}
	}
	return text, controls
}

// The reference engine rendered the templates with the conversations.
func TestGoldens(t *testing.T) {
	var conversations map[string][]Message
	load(t, "conversations.json", &conversations)
	var goldens []struct {
		Template, Conversation string
		Prompt                 bool
		Text, Refused          string
	}
	load(t, "goldens.json", &goldens)
	templates := map[string]*Template{}
	for _, g := range goldens {
		tm := templates[g.Template]
		if tm == nil {
			tm = mustNew(t, options(t, g.Template))
			templates[g.Template] = tm
		}
		msgs := conversations[g.Conversation]
		parts, err := tm.Render(msgs, g.Prompt)
		if g.Refused != "" {
			var refused *RefusedError
			if !errors.As(err, &refused) || refused.Reason != g.Refused {
				t.Errorf("%s of %s: error %v, want the refusal %q", g.Template, g.Conversation, err, g.Refused)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s of %s: %v", g.Template, g.Conversation, err)
			continue
		}
		text, controls := join(parts)
		if text != g.Text {
			t.Errorf("%s of %s (prompt %t):\ngot  %q\nwant %q", g.Template, g.Conversation, g.Prompt, text, g.Text)
		}
		if g.Conversation == "thoughts" { // where the template itself may write as many tokens as it likes
			continue
		}
		harmless := make([]Message, len(msgs))
		for i, m := range msgs {
			harmless[i] = Message{m.Role, "x"}
		}
		parts, err = tm.Render(harmless, g.Prompt)
		if err != nil {
			t.Errorf("%s of harmless messages: %v", g.Template, err)
		}
		if _, want := join(parts); controls != want {
			t.Errorf("%s of %s: control tokens %s\nwant %s", g.Template, g.Conversation, controls, want)
		}
	}
	if len(templates) != len(vocabularies) {
		t.Errorf("goldens of %d templates, want %d", len(templates), len(vocabularies))
	}
}

// The control tokens that templates write, spelled out once for each.
func TestControls(t *testing.T) {
	msgs := []Message{{"system", "a"}, {"user", "b"}, {"assistant", "c"}, {"user", "d"}}
	for file, want := range map[string]string{
		"gemma4-tiny.jinja": "<bos> <|turn> <turn|> <|turn> <turn|> <|turn> <turn|> <|turn> <turn|> <|turn> ",
		"gemma4-large.jinja": "<bos> <|turn> <turn|> <|turn> <turn|> <|turn> <turn|> <|turn> <turn|> " +
			"<|turn> <|channel> <channel|> ",
		"llama3.jinja": "<|begin_of_text|> <|start_header_id|> <|end_header_id|> <|eot_id|> " +
			"<|start_header_id|> <|end_header_id|> <|eot_id|> <|start_header_id|> <|end_header_id|> <|eot_id|> " +
			"<|start_header_id|> <|end_header_id|> <|eot_id|> <|start_header_id|> <|end_header_id|> ",
		"qwen.jinja": "<|im_start|> <|im_end|> <|im_start|> <|im_end|> <|im_start|> <|im_end|> " +
			"<|im_start|> <|im_end|> <|im_start|> ",
		"gemma3.jinja": "<bos> <start_of_turn> <end_of_turn> <start_of_turn> <end_of_turn> " +
			"<start_of_turn> <end_of_turn> <start_of_turn> ",
		"phi.jinja":   "<|system|> <|end|> <|user|> <|end|> <|assistant|> <|end|> <|user|> <|end|> <|assistant|> ",
		"plain.jinja": "[BOS] [EOS] ",
	} {
		parts, err := mustNew(t, options(t, file)).Render(msgs, true)
		if err != nil {
			t.Errorf("%s: %v", file, err)
		}
		if _, got := join(parts); got != want {
			t.Errorf("%s: control tokens\n%s\nwant\n%s", file, got, want)
		}
	}
}

// Each feature of the language does what it does in the reference.
func TestFeatures(t *testing.T) {
	var features []struct{ Source, Text string }
	load(t, "features.json", &features)
	for _, f := range features {
		tm, err := New(Options{Source: f.Source, Specials: []string{"<a>", "b", "{%", "-", "|x"}, BOS: "<s>", EOS: "</s>", Now: clock})
		if err != nil {
			t.Errorf("%q: %v", f.Source, err)
			continue
		}
		parts, err := tm.Render([]Message{{"user", "Hello"}}, true)
		if err != nil {
			t.Errorf("%q: %v", f.Source, err)
			continue
		}
		if text, _ := join(parts); text != f.Text {
			t.Errorf("%q:\ngot  %q\nwant %q", f.Source, text, f.Text)
		}
	}
	if len(features) < 50 {
		t.Errorf("only %d features", len(features))
	}
}

// The prompts that the tiny model was tested with come out of the template in
// its file.
func TestTinyModel(t *testing.T) {
	f, err := gguf.Open("../model/tiny/tiny-q8_0.gguf")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	source, err := f.String("tokenizer.chat_template")
	if err != nil {
		t.Fatal(err)
	}
	if want := options(t, "gemma4-tiny.jinja").Source; source != strings.TrimSuffix(want, "\n") {
		t.Errorf("the file's template differs from the test's: %q", source)
	}
	tm := mustNew(t, Options{Source: source, BOS: "<bos>", EOS: "<eos>", Specials: vocabularies["gemma4-tiny.jinja"]})
	fallback := mustNew(t, Options{Arch: "gemma4", BOS: "<bos>", Specials: vocabularies["gemma4-tiny.jinja"]})
	for _, name := range []string{"00-chat-hello", "01-chat-transformer", "02-chat-three-turns", "12-long-chat"} {
		var golden struct{ Prompt string }
		load(t, "../../testdata/tiny/golden/"+name+".json", &golden)
		var msgs []Message
		turns := strings.Split(strings.TrimPrefix(golden.Prompt, "<bos>"), "<turn|>\n")
		for _, turn := range turns[:len(turns)-1] {
			role, content, _ := strings.Cut(strings.TrimPrefix(turn, "<|turn>"), "\n")
			if role == "model" {
				role = "assistant"
			}
			msgs = append(msgs, Message{role, content})
		}
		for _, tm := range []*Template{tm, fallback} {
			parts, err := tm.Render(msgs, true)
			if err != nil {
				t.Fatal(err)
			}
			text, controls := join(parts)
			if text != golden.Prompt {
				t.Errorf("%s: %q, want %q", name, text, golden.Prompt)
			}
			if want := "<bos> " + strings.Repeat("<|turn> <turn|> ", len(msgs)) + "<|turn> "; controls != want {
				t.Errorf("%s: control tokens %s, want %s", name, controls, want)
			}
		}
	}
}
