package main

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	tinyFile    = "../../model/tiny/tiny-q8_0.gguf"
	noVocabFile = "../../testdata/archs/random-llama-f32.gguf"
)

// damaged writes a changed copy of the small model.
func damaged(t *testing.T, name string, change func([]byte) []byte) string {
	t.Helper()
	data, err := os.ReadFile(tinyFile)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, change(data), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// ggufString is a string as a GGUF file has it.
func ggufString(s string) []byte {
	return append(binary.LittleEndian.AppendUint64(nil, uint64(len(s))), s...)
}

func TestErrors(t *testing.T) {
	truncated := damaged(t, "truncated.gguf", func(b []byte) []byte { return b[:len(b)/2] })
	stump := damaged(t, "stump.gguf", func(b []byte) []byte { return b[:100] })
	arch := damaged(t, "arch.gguf", func(b []byte) []byte {
		return bytes.Replace(b, ggufString("gemma4"), ggufString("gemmaX"), 1)
	})
	kind := damaged(t, "type.gguf", func(b []byte) []byte {
		// name, number of dimensions, two dimensions, type
		at := bytes.Index(b, ggufString("token_embd.weight")) + len(ggufString("token_embd.weight")) + 4 + 2*8
		if binary.LittleEndian.Uint32(b[at:]) != 8 {
			t.Fatal("token_embd.weight is not Q8_0")
		}
		binary.LittleEndian.PutUint32(b[at:], 77)
		return b
	})
	long := strings.Repeat("hello ", 2000)

	for _, test := range []struct {
		name   string
		args   []string
		status int
		want   []string // parts of the line
	}{
		{"no such file", []string{"run", "-m", "no-such.gguf", "Hi"}, 1, []string{"no-such.gguf", "no such file"}},
		{"folder", []string{"run", "-m", t.TempDir(), "Hi"}, 1, []string{"regular file"}},
		{"truncated", []string{"run", "-m", truncated, "Hi"}, 1, []string{truncated, "byte", "truncated"}},
		{"truncated header", []string{"inspect", "-m", stump}, 1, []string{stump, "byte 8"}},
		{"architecture", []string{"run", "-m", arch, "Hi"}, 1, []string{arch, "gemmaX", "gemma4"}},
		{"tensor type", []string{"run", "-m", kind, "Hi"}, 1, []string{kind, "token_embd.weight", "77"}},
		{"long prompt", []string{"run", long}, 1, []string{"tokens", "1024", "--ctx"}},
		{"long tokens", []string{"logits", "--ctx", "2", "--tokens", "2,105,4"}, 1, []string{"3 tokens", "--ctx"}},
		{"long chat", []string{"chat", "--ctx", "5"}, 1, []string{"10 tokens", "--ctx"}},
		{"token", []string{"logits", "--tokens", "2,9999"}, 1, []string{"9999", "2048"}},
		{"token to text", []string{"detokenize", "9999"}, 1, []string{"9999", "2048"}},
		{"no token", []string{"logits", "--tokens", "2,x"}, 1, []string{`"x"`, "--tokens"}},
		{"no tokens", []string{"detokenize", ","}, 1, []string{"no token ids"}},
		{"token file", []string{"logits", "--tokens", "@no-such"}, 1, []string{"no-such"}},
		{"no vocabulary", []string{"run", "-m", noVocabFile, "Hi"}, 1, []string{noVocabFile, "no_vocab", "tandem logits"}},
		{"no vocabulary, raw", []string{"run", "--raw", "-m", noVocabFile, "Hi"}, 1, []string{"no_vocab"}},
		{"no vocabulary, chat", []string{"chat", "-m", noVocabFile}, 1, []string{"no_vocab"}},
		{"no vocabulary, smoke", []string{"smoke", noVocabFile, "Hi", "3"}, 1, []string{"no_vocab"}},
		{"no vocabulary, tokenize", []string{"tokenize", "-m", noVocabFile, "Hi"}, 1, []string{"no_vocab"}},
		{"no vocabulary, detokenize", []string{"detokenize", "-m", noVocabFile, "1"}, 1, []string{"no_vocab"}},

		{"unit", []string{"run", "--place", "npu", "Hi"}, 1, []string{`"npu"`, "tandem units"}},
		{"unit of a chunk", []string{"run", "--place", "c1=npu", "Hi"}, 1, []string{`"npu"`}},
		{"unit in inspect", []string{"inspect", "--place", "npu"}, 1, []string{`"npu"`}},
		{"core", []string{"run", "--place", "cpu:99999", "Hi"}, 1, []string{"cpu:99999"}},
		{"chunk", []string{"run", "--place", "c9=cpu", "Hi"}, 1, []string{"--place", "c9", "c4"}},
		{"chunk of prefill", []string{"run", "--place-prefill", "c9=cpu", "Hi"}, 1, []string{"--place-prefill", "c9", "c4"}},
		{"chunk twice", []string{"run", "--place", "c1=cpu,c1=cpu", "Hi"}, 1, []string{"--place", "twice"}},
		{"no unit", []string{"run", "--place", "c1=", "Hi"}, 1, []string{"--place", `"c1="`}},
		{"two units", []string{"run", "--place", "cpu,cpu", "Hi"}, 1, []string{"--place"}},
		{"chunks", []string{"run", "--chunks", "11", "Hi"}, 1, []string{"11 chunks", "10 layers"}},
		{"no chunks", []string{"run", "--chunks", "0", "Hi"}, 1, []string{"--chunks 0", "at least 1"}},
		{"negative chunks", []string{"run", "--chunks", "-1", "Hi"}, 1, []string{"--chunks -1"}},
		{"chunks and split", []string{"run", "--chunks", "2", "--split", "3", "Hi"}, 1, []string{"--chunks", "--split"}},
		{"split order", []string{"run", "--split", "5,3", "Hi"}, 1, []string{"layer 3", "ascend"}},
		{"split end", []string{"run", "--split", "10", "Hi"}, 1, []string{"layer 10"}},
		{"threads", []string{"run", "--threads", "0", "Hi"}, 1, []string{"--threads 0"}},
		{"context", []string{"run", "--ctx", "99999", "Hi"}, 1, []string{"--ctx 99999", "1024"}},
		{"block", []string{"run", "--block", "0", "Hi"}, 1, []string{"--block 0"}},
		{"kv", []string{"run", "--kv", "q8", "Hi"}, 1, []string{"--kv", "f16"}},
		{"streams", []string{"inspect", "--streams", "0"}, 1, []string{"--streams 0"}},
		{"temperature", []string{"run", "--temp", "-1", "Hi"}, 1, []string{"--temp -1"}},
		{"limit", []string{"chat", "-n", "-1"}, 1, []string{"-n -1"}},
		{"top", []string{"logits", "--top", "0", "--tokens", "2"}, 1, []string{"--top 0"}},
		{"system and raw", []string{"run", "--raw", "--system", "x", "Hi"}, 1, []string{"--system", "--raw"}},
		{"steps", []string{"smoke", embedded, "Hi", "0"}, 1, []string{"at least 1"}},

		{"usage: flag", []string{"run", "--such", "Hi"}, 2, []string{"--such", "`tandem run --help`"}},
		{"usage: number", []string{"run", "--chunks", "x", "Hi"}, 2, []string{"--chunks", `"x"`}},
		{"usage: no prompt", []string{"run"}, 2, []string{"<prompt>"}},
		{"usage: command", []string{"fly"}, 2, []string{"fly", "`tandem --help`"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			status, out, err := command(t, "Hello\n", test.args...)
			if status != test.status || out != "" {
				t.Errorf("status %d, stdout %q; want %d and nothing", status, out, test.status)
			}
			if !strings.HasPrefix(err, "tandem: ") || strings.Count(err, "\n") != 1 || !strings.HasSuffix(err, "\n") {
				t.Errorf("not one line of its own: %q", err)
			}
			if strings.Contains(err, "goroutine") || strings.Contains(err, "panic") {
				t.Errorf("a stack trace: %q", err)
			}
			for _, part := range test.want {
				if !strings.Contains(err, part) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
		})
	}
}
