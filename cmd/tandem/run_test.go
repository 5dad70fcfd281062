package main

import (
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	const hello = "Hello! How can I help you today?\n"
	for _, test := range []struct {
		name, stdin string
		args        []string
		want        string
	}{
		{"plain", "", []string{"run", "Hello"}, hello},
		{"stdin", "Hello\n", []string{"run", "-"}, hello},
		{"file", "", []string{"run", "-m", "../../model/tiny/tiny-q8_0.gguf", "Hello"}, hello},
		{"layout", "", []string{"run", "--split", "2,6", "--place", "c2=cpu:0", "--threads", "1", "--ctx", "100", "--block", "7", "Hello"}, hello},
		{"prefill elsewhere", "", []string{"run", "--place", "cpu", "--place-prefill", "c2=cpu:0,c4=cpu:0", "Hello"}, hello},
		{"limit", "", []string{"run", "-n", "3", "Hello"}, "Hello! How\n"},
		{"raw", "", []string{"run", "--raw", "<bos><|turn>user\nHello<turn|>\n<|turn>model\n"}, hello},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := succeed(t, test.stdin, test.args...); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestRunJSON(t *testing.T) {
	var a answer
	out := succeed(t, "", "run", "--json", "--chunks", "2", "Hello")
	decode(t, out, &a)
	if a.PromptTokens != 10 || len(a.Tokens) != 9 || a.Text != "Hello! How can I help you today?" || a.End != "end_of_turn" {
		t.Errorf("got %+v", a)
	}
	if len(a.Chunks) != 2 || a.Chunks[0].First != 0 || a.Chunks[1].First != a.Chunks[0].Last+1 || a.Chunks[1].Last != 9 || a.Chunks[1].Unit != "cpu" {
		t.Errorf("chunks %+v", a.Chunks)
	}
	decode(t, succeed(t, "", "run", "--json", "--chunks", "2", "--place-prefill", "c2=cpu:0", "Hello"), &a)
	if len(a.Chunks) != 2 || a.Chunks[0].Prefill != "" || a.Chunks[1].Unit != "cpu" || a.Chunks[1].Prefill != "cpu:0" {
		t.Errorf("chunks %+v", a.Chunks)
	}
	var fields map[string]any
	decode(t, out, &fields)
	for _, key := range strings.Fields("prompt_tokens tokens text end_reason load_s prefill_s decode_s prefill_tok_s decode_tok_s chunks") {
		if fields[key] == nil {
			t.Errorf("no %s in %s", key, out)
		}
		delete(fields, key)
	}
	if len(fields) > 0 {
		t.Errorf("more fields than promised: %v", fields)
	}
}
