package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	public "github.com/tandemrun/tandem"
	"github.com/tandemrun/tandem/oracle"
)

func recordOracle(t *testing.T, args ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "o.jsonl")
	succeed(t, "", append([]string{"oracle", "record", "-n", "10", path}, args...)...)
	return path
}

func TestOracle(t *testing.T) {
	path := recordOracle(t)
	f, err := oracle.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Answers) != 20 || f.Settings.MaxTokens != 10 || f.Model.Description != "gemma4 3.7M Q8_0" || f.Tandem == "" {
		t.Errorf("recorded %+v with %d answers", f.Header, len(f.Answers))
	}
	for _, layout := range [][]string{
		nil,
		{"--chunks", "1", "--threads", "1"},
		{"--place", "c2=cpu:0", "--streams", "3", "--block", "16"},
		{"--specialize", "off", "--merge", "1", "--streams", "2"},
	} {
		var got public.OracleCheck
		decode(t, succeed(t, "", append([]string{"oracle", "check", path, "--json"}, layout...)...), &got)
		if !got.Equal || got.Prompts != 20 || got.First != nil || len(got.Answers) != 20 || got.Answers[3].Hash != f.Answers[3].Hash {
			t.Errorf("%q: %+v", layout, got)
		}
	}
	if out := succeed(t, "", "oracle", "check", path); !strings.Contains(out, "equal: 20 prompts") {
		t.Errorf("prints %q", out)
	}
	// Recording again replaces the file.
	succeed(t, "", "oracle", "record", "-n", "3", path)
	if f, err := oracle.Read(path); err != nil || f.Settings.MaxTokens != 3 {
		t.Errorf("recorded again: %+v, %v", f, err)
	}
}

// changed writes an oracle with another content and right hashes.
func changed(t *testing.T, path string, change func(*oracle.File)) string {
	t.Helper()
	f, err := oracle.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	change(f)
	out := filepath.Join(t.TempDir(), "changed.jsonl")
	if err := f.Write(out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestOracleDiffers(t *testing.T) {
	path := recordOracle(t)
	other := changed(t, path, func(f *oracle.File) {
		f.Answers[4].Tokens[3] = 7 // a later prompt than the first that differs
		f.Answers[1].Tokens[2] = 40
	})
	status, out, errs := command(t, "", "oracle", "check", other)
	if status != 1 || errs != "" || !strings.Contains(out, "differs: 2 of 20 prompts; first prompt chat-2, token 2 of its answer: expected 40") {
		t.Errorf("status %d, stderr %q, stdout %q", status, errs, out)
	}
	status, out, _ = command(t, "", "oracle", "check", "--json", "--streams", "4", other)
	var got public.OracleCheck
	decode(t, out, &got)
	d := got.First
	if status != 1 || got.Equal || got.Different != 2 || d == nil || d.Prompt != "chat-2" || d.Position != 2 || d.Expected.ID != 40 || d.Expected.Text == "" || d.Got.ID == 40 || d.Lead <= 0 {
		t.Errorf("status %d, first %+v of %+v", status, d, got)
	}
	// An answer that should have ended.
	shorter := changed(t, path, func(f *oracle.File) { f.Answers[1].Tokens = f.Answers[1].Tokens[:4] })
	if status, out, _ := command(t, "", "oracle", "check", shorter); status != 1 || !strings.Contains(out, "token 4 of its answer: expected the end") {
		t.Errorf("status %d, stdout %q", status, out)
	}
	// The tokenizer or the template has changed.
	prompt := changed(t, path, func(f *oracle.File) { f.Answers[0].PromptTokens[1] = 9 })
	if status, out, _ := command(t, "", "oracle", "check", prompt); status != 1 || !strings.Contains(out, "token 1 of the prompt itself: expected 9") {
		t.Errorf("status %d, stdout %q", status, out)
	}
}

func TestOracleCannot(t *testing.T) {
	path := recordOracle(t, "-m", noVocabFile)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	damaged := filepath.Join(t.TempDir(), "damaged.jsonl")
	if err := os.WriteFile(damaged, bytes.Replace(data, []byte(":[7,"), []byte(":[8,"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	vocab := changed(t, path, func(f *oracle.File) { f.Answers[0].Tokens[0] = 99999 })
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"no file", []string{"check", "no-such"}, "no-such"},
		{"another file", []string{"check", noVocabFile}, "no oracle file"},
		{"damaged", []string{"check", "-m", noVocabFile, damaged}, "damaged"},
		{"another model", []string{"check", path}, "another model"},
		{"token", []string{"check", "-m", noVocabFile, vocab}, "99999"},
		{"no model", []string{"check", "-m", "no-such.gguf", path}, "no-such.gguf"},
		{"unit", []string{"check", "-m", noVocabFile, "--place", "npu", path}, `"npu"`},
		{"streams", []string{"check", "-m", noVocabFile, "--streams", "0", path}, "--streams 0"},
		{"context", []string{"check", "-m", noVocabFile, "--ctx", "12", path}, "--ctx"},
		{"length", []string{"record", "-n", "0", path}, "-n 0"},
		{"over a model", []string{"record", noVocabFile}, "no oracle file"},
		{"no folder", []string{"record", "-n", "1", filepath.Join(t.TempDir(), "a", "b")}, "no such file"},
		{"usage", []string{"check"}, "`tandem oracle check --help`"},
	} {
		status, out, err := command(t, "", append([]string{"oracle"}, c.args...)...)
		if status != 2 || out != "" || strings.Count(err, "\n") != 1 || !strings.HasPrefix(err, "tandem: ") || !strings.Contains(err, c.want) {
			t.Errorf("%s: status %d, stdout %q, stderr %q", c.name, status, out, err)
		}
	}
}
