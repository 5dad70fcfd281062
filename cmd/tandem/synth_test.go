package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSynth writes a model, looks at it and runs it.
func TestSynth(t *testing.T) {
	file := filepath.Join(t.TempDir(), "model.gguf")
	out := succeed(t, "", "synth", "--shape", "gemma3-270m", "--layers", "1", "--type", "Q4_0", "-o", file)
	if !strings.HasPrefix(out, file+": gemma3-270m in Q4_0, ") {
		t.Errorf("it says %q", out)
	}
	first, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if out := succeed(t, "", "inspect", "-m", file); !strings.Contains(out, "gemma3") || !strings.Contains(out, "262144") {
		t.Errorf("inspect does not show the architecture and the vocabulary:\n%s", out)
	}
	succeed(t, "", "run", "-m", file, "--chunks", "1", "--ctx", "64", "-n", "1", "Hi")
	succeed(t, "", "synth", "--shape", "gemma3-270m", "--layers", "1", "-o", file)
	if second, err := os.ReadFile(file); err != nil || string(second) != string(first) {
		t.Errorf("the same command writes another file (%v)", err)
	}
	for _, x := range []struct {
		args []string
		want string
	}{
		{[]string{"--shape", "gpt-5", "-o", file}, "gemma4-e2b"},
		{[]string{"--shape", "llama-1b", "--type", "q9", "-o", file}, "q4_k_m"},
		{[]string{"--shape", "llama-1b", "--layers", "0", "-o", file}, "--layers 0"},
		{[]string{"--shape", "llama-1b", "--layers", "17", "-o", file}, "1 to 16"},
		{[]string{"--shape", "gemma3-270m", "--layers", "1", "-o", filepath.Join(file, "x")}, file},
	} {
		status, stdout, stderr := command(t, "", append([]string{"synth"}, x.args...)...)
		if status != 1 || stdout != "" || !strings.Contains(stderr, x.want) {
			t.Errorf("synth %q: status %d, %q, %q, want %q", x.args, status, stdout, stderr, x.want)
		}
	}
}
