package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	public "github.com/tandemrun/tandem"
)

// batchLine is a line of the output, as docs/batch.md promises it.
type batchLine struct {
	Index        int             `json:"index"`
	ID           json.RawMessage `json:"id"`
	Text         string          `json:"text"`
	PromptTokens int             `json:"prompt_tokens"`
	Reused       int             `json:"reused_tokens"`
	Tokens       int             `json:"tokens"`
	End          string          `json:"end_reason"`
	Prefill      float64         `json:"prefill_s"`
	Decode       float64         `json:"decode_s"`
	Error        *string         `json:"error"`
	Input        string          `json:"input_hash"`
	Settings     string          `json:"settings_hash"`
}

// batchLines reads an output in the order of the input, without what depends on
// the run.
func batchLines(t *testing.T, path string) []batchLine {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out []batchLine
	for line := range strings.Lines(string(b)) {
		var l batchLine
		decode(t, line, &l)
		if l.Error == nil && (l.Prefill <= 0 || l.Decode < 0) {
			t.Errorf("times in %s", line)
		}
		l.Prefill, l.Decode, l.Reused = 0, 0, 0
		out = append(out, l)
	}
	slices.SortStableFunc(out, func(a, b batchLine) int { return a.Index - b.Index })
	return out
}

// batchInput writes n prompts of several kinds and returns the file.
func batchInput(t *testing.T, n int) string {
	t.Helper()
	var b bytes.Buffer
	for i := range n {
		switch i % 4 {
		case 0:
			fmt.Fprintf(&b, "{\"id\":\"story %d\",\"prompt\":\"Tell me a story about fox %d.\"}\n", i, i)
		case 1:
			fmt.Fprintf(&b, "{\"messages\":[{\"role\":\"user\",\"content\":\"Hello\"},{\"role\":\"assistant\",\"content\":\"Hi %d\"},{\"role\":\"user\",\"content\":\"Hello\"}],\"system\":\"Be kind.\"}\n", i)
		case 2:
			fmt.Fprintf(&b, "{\"id\":%d,\"prompt\":\"Once there was a\",\"raw\":true,\"max_tokens\":%d}\n", i, 5+i)
		case 3:
			fmt.Fprintf(&b, "{\"prompt\":\"Tell me a story about a fox.\",\"temperature\":0.8,\"seed\":%d}\n", i)
		}
	}
	return textFile(t, b.String())
}

func textFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "in.jsonl")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// The answers do not depend on how many are made at once, nor on the layout,
// and are those of tandem run.
func TestBatchStreams(t *testing.T) {
	in := batchInput(t, 24)
	var want []batchLine
	for _, flags := range []string{"--streams 1", "--streams 8", "--streams 3 --chunks 2 --threads 1 --block 7", "--place cpu:0"} {
		out := filepath.Join(t.TempDir(), "out.jsonl")
		status, stdout, stderr := command(t, "", append(strings.Fields("batch -n 30 "+flags), in, out)...)
		if status != 0 || stdout != "" || !strings.HasPrefix(stderr, "24 prompts: 0 answered before, 24 now, 0 left, 0 errors; ") || strings.Count(stderr, "\n") != 1 {
			t.Fatalf("%s: status %d, stdout %q, stderr %q", flags, status, stdout, stderr)
		}
		got := batchLines(t, out)
		if want == nil {
			want = got
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", flags, diff)
		}
	}
	for i, l := range want {
		if l.Index != i+1 || l.Tokens < 1 || l.Tokens > 30 || l.Error != nil || l.End == "" {
			t.Errorf("line %d: %+v", i+1, l)
		}
	}
	for i, args := range [][]string{
		{"Tell me a story about fox 0."}, nil,
		{"--raw", "-n", "7", "Once there was a"},
		{"--temp", "0.8", "--seed", "3", "Tell me a story about a fox."},
	} {
		if args == nil {
			continue
		}
		if got := succeed(t, "", append([]string{"run", "-n", "30"}, args...)...); got != want[i].Text+"\n" {
			t.Errorf("run %q gives %q, batch %q", args, got, want[i].Text)
		}
	}
	if want[2].Tokens != 7 || want[2].End != "max_tokens" || string(want[2].ID) != "2" || string(want[0].ID) != `"story 0"` || string(want[1].ID) != "null" {
		t.Errorf("got %+v", want[:3])
	}
}

func TestBatchSummary(t *testing.T) {
	in := textFile(t, `{"prompt":"Hello"}`+"\n"+`{"prompt":"`+strings.Repeat("hello ", 50)+`"}`+"\n")
	out := filepath.Join(t.TempDir(), "out.jsonl")
	for round := range 2 {
		status, stdout, stderr := command(t, "", "batch", "--json", "--ctx", "30", in, out)
		if status != 1 || !strings.HasPrefix(stderr, "tandem: "+out+": 1 of 2 prompts") || strings.Count(stderr, "\n") != 1 {
			t.Errorf("status %d, stderr %q", status, stderr)
		}
		var s batchSummary
		decode(t, stdout, &s)
		want := batchSummary{Prompts: 2, Answered: 2, Errors: 1, Streams: 2, PromptTokens: 10, Tokens: 9}
		if round == 1 {
			want = batchSummary{Prompts: 2, Before: 2, Errors: 1}
		}
		if (s.Rate > 0) != (round == 0) || (s.Load > 0) != (round == 0) || (len(s.Chunks) == 4) != (round == 0) {
			t.Errorf("round %d: %+v", round, s)
		}
		s.Rate, s.Load, s.Elapsed, s.Chunks = 0, 0, 0, nil
		s.PromptTokens -= batchLines(t, out)[1].PromptTokens * (1 - round)
		if diff := cmp.Diff(want, s); diff != "" {
			t.Errorf("round %d: %s", round, diff)
		}
	}
	l := batchLines(t, out)
	if l[0].Text != "Hello! How can I help you today?" || l[0].End != "end_of_turn" || l[1].End != "error" || l[1].Error == nil || !strings.Contains(*l[1].Error, "room for 30") {
		t.Errorf("got %+v", l)
	}
}

func TestBatchErrors(t *testing.T) {
	in := textFile(t, `{"prompt":"Hello"}`+"\n")
	out := filepath.Join(t.TempDir(), "out.jsonl")
	if status, _, stderr := command(t, "", "batch", in, out); status != 0 {
		t.Fatal(stderr)
	}
	other := damaged(t, "other.gguf", func(b []byte) []byte {
		at := bytes.Index(b, ggufString("general.name")) + len(ggufString("general.name")) + 4 + 8
		b[at] ^= 1
		return b
	})
	for _, test := range []struct {
		name string
		args []string
		want string
	}{
		{"no input", []string{"no-such.jsonl", "new"}, "no-such.jsonl"},
		{"bad line", []string{textFile(t, "{\"prompt\":\"a\"}\n{\"prompt\":\"a\",\"tmp\":1}\n"), "new"}, `line 2 "tmp" is no field`},
		{"other model", []string{"-m", other, in, out}, "another model"},
		{"other limit", []string{"-n", "3", in, out}, "line 1: it was answered with another model or other settings"},
		{"other context", []string{"--ctx", "100", in, out}, "context"},
		{"other type", []string{"--kv", "f16", in, out}, "KV"},
		{"other seed", []string{"--seed", "1", in, out}, "settings"},
		{"same file", []string{in, in}, "is the input"},
		{"streams", []string{"--streams", "0", in, out}, "--streams 0"},
		{"limit", []string{"-n", "-1", in, out}, "-n -1"},
		{"temperature", []string{"--temp", "-1", in, out}, "--temp -1"},
		{"unit", []string{"--place", "npu", in, "new"}, `"npu"`},
		{"no vocabulary", []string{"-m", noVocabFile, in, "new"}, "no_vocab"},
	} {
		for i, x := range test.args {
			if x == "new" {
				test.args[i] = filepath.Join(t.TempDir(), "new.jsonl")
			}
		}
		status, stdout, stderr := command(t, "", append([]string{"batch"}, test.args...)...)
		if status != 1 || stdout != "" || !strings.HasPrefix(stderr, "tandem: ") || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, test.want) {
			t.Errorf("%s: status %d, stdout %q, stderr %q", test.name, status, stdout, stderr)
		}
	}
	// The file of the model may be another one if its content is the same.
	if status, _, stderr := command(t, "", "batch", "-m", tinyFile, in, out); status != 0 || !strings.HasPrefix(stderr, "1 prompts: 1 answered before, 0 now, 0 left, 0 errors\n") {
		t.Errorf("the same model: status %d, stderr %q", status, stderr)
	}
}

// program builds the command.
func program(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tandem.exe")
	if out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

// start starts a batch and waits until the output has more than size bytes or
// the process has ended; what the process says goes to stderr.
func start(t *testing.T, stderr *bytes.Buffer, size int64, program, in, out string) (*exec.Cmd, chan error) {
	t.Helper()
	c := exec.Command(program, "batch", "--streams", "3", in, out)
	c.Stderr = stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	for fileSize(t, out) <= size && len(ended) == 0 {
		time.Sleep(100 * time.Microsecond)
	}
	return c, ended
}

func fileSize(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return -1
	}
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// A process that is killed at random moments and started again gives each
// answer once, and the same as one that is left alone.
func TestBatchKill(t *testing.T) {
	in := batchInput(t, 40)
	whole, out := filepath.Join(t.TempDir(), "whole.jsonl"), filepath.Join(t.TempDir(), "out.jsonl")
	if status, _, stderr := command(t, "", "batch", in, whole); status != 0 {
		t.Fatal(stderr)
	}
	tandem := program(t)
	step := fileSize(t, whole) / 5
	random := rand.New(rand.NewPCG(1, 2))
	kills := 0
	for range 100 {
		var stderr bytes.Buffer
		c, ended := start(t, &stderr, fileSize(t, out)+random.Int64N(step), tandem, in, out)
		time.Sleep(time.Duration(random.Int64N(int64(3 * time.Millisecond))))
		c.Process.Kill() // fails if it has ended
		err := <-ended
		if err == nil {
			break
		}
		if c.ProcessState.Exited() {
			t.Fatalf("%v: %s", err, stderr.String())
		}
		kills++
		if kills == 2 {
			// As if it had been killed within a write.
			if err := os.Truncate(out, fileSize(t, out)-random.Int64N(100)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if status, _, stderr := command(t, "", "batch", in, out); status != 0 || kills < 2 {
		t.Errorf("after %d kills: status %d, stderr %q", kills, status, stderr)
	}
	if diff := cmp.Diff(batchLines(t, whole), batchLines(t, out)); diff != "" {
		t.Error(diff)
	}
}

// An interrupt keeps what is done; while a process runs no other one may write
// the same output.
func TestBatchInterrupt(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a process cannot be interrupted from another one")
	}
	in := batchInput(t, 2000)
	out := filepath.Join(t.TempDir(), "out.jsonl")
	var first bytes.Buffer
	c, ended := start(t, &first, 0, program(t), in, out)
	status, stdout, stderr := command(t, "", "batch", in, out)
	if status != 1 || stdout != "" || !strings.Contains(stderr, out) || !strings.Contains(stderr, "another process") {
		t.Errorf("the second process: status %d, stdout %q, stderr %q", status, stdout, stderr)
	}
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	<-ended
	lines := batchLines(t, out)
	said := fmt.Sprintf("2000 prompts: 0 answered before, %d now, %d left, 0 errors; ", len(lines), 2000-len(lines))
	if c.ProcessState.ExitCode() != 130 || !strings.HasPrefix(first.String(), said) || strings.Count(first.String(), "\n") != 1 {
		t.Errorf("interrupted: %v, stderr %q, want %q", c.ProcessState, first.String(), said)
	}
	if len(lines) == 0 || len(lines) >= 2000 || slices.ContainsFunc(lines, func(l batchLine) bool { return l.Error != nil || l.End == "cancelled" }) {
		t.Errorf("%d lines", len(lines))
	}
}

// The counter shows itself on a terminal alone, and takes its line away.
func TestBatchCounter(t *testing.T) {
	var out bytes.Buffer
	n := &counter{w: &out}
	s := public.BatchSummary{Prompts: 9, Before: 2, Answered: 3, Errors: 1, Tokens: 40, Elapsed: 2 * time.Second}
	n.update(s)
	n.update(s) // too soon
	n.clear()
	if want := "\r5 of 9 prompts, 1 errors, 20.0 tok/s\x1b[K\r\x1b[K"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
	if n := (&console{err: &out}).counter(); n.w != nil {
		t.Error("a counter where nobody looks")
	}
}
