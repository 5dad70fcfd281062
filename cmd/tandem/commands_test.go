package main

import (
	"bytes"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	public "github.com/tandemrun/tandem"
)

func TestHelp(t *testing.T) {
	for _, name := range strings.Fields("run chat inspect units tokenize detokenize logits smoke") {
		out := succeed(t, "", name, "--help")
		for _, part := range []string{"Examples:", "tandem " + name, "--json"} {
			if !strings.Contains(out, part) {
				t.Errorf("tandem %s --help does not show %q", name, part)
			}
		}
	}
	if out := succeed(t, ""); !strings.Contains(out, "tandem run \"Hello\"") {
		t.Errorf("tandem alone prints %q", out)
	}
	if out := succeed(t, "", "--version"); !strings.HasPrefix(out, "tandem ") || strings.Count(out, "\n") != 1 {
		t.Errorf("--version prints %q", out)
	}
}

func TestInspect(t *testing.T) {
	var info public.Info
	decode(t, succeed(t, "", "inspect", "--json", "--split", "3,5", "--place", "c2=cpu:0", "--ctx", "256", "--kv", "f16", "--streams", "2"), &info)
	if info.Arch != "gemma4" || len(info.Layers) != 10 || info.Layers[9].Owner != 4 || info.Template != "file" {
		t.Errorf("got %+v", info)
	}
	if len(info.Chunks) != 3 || info.Chunks[1].Unit != "cpu:0" || info.Chunks[1].First != 3 || info.Chunks[1].Last != 4 {
		t.Errorf("chunks %+v", info.Chunks)
	}
	if m := info.Memory; m.Context != 256 || m.Streams != 2 || m.KVType != "f16" || m.Total != m.Weights+m.KV+m.Buffers {
		t.Errorf("memory %+v", m)
	}
	out := succeed(t, "", "inspect")
	for _, part := range []string{"general.architecture", "sliding", "full", "c4     8-9     cpu", "Q8_0", "KV cache", "available"} {
		if !strings.Contains(out, part) {
			t.Errorf("no %q in\n%s", part, out)
		}
	}
	if out := succeed(t, "", "inspect", "-m", noVocabFile); !strings.Contains(out, "tokenizer none") {
		t.Errorf("of a file without a vocabulary:\n%s", out)
	}
}

func TestUnits(t *testing.T) {
	var host public.Host
	decode(t, succeed(t, "", "units", "--json"), &host)
	if len(host.Cores) == 0 || len(host.Units) < 2 || host.Units[0].Name != "cpu" || !host.Units[0].Usable {
		t.Errorf("got %+v", host)
	}
	out := succeed(t, "", "units")
	for _, u := range host.Units {
		if !strings.Contains(out, u.Name+" ") || !strings.Contains(out, u.Why) {
			t.Errorf("no %+v in\n%s", u, out)
		}
	}
	if !strings.Contains(out, host.Kernels) {
		t.Errorf("no %s in\n%s", host.Kernels, out)
	}
}

func TestRanges(t *testing.T) {
	for want, in := range map[string][]int{"": nil, "3": {3}, "0-2,5": {5, 2, 0, 1}, "0,2,4-5": {0, 2, 4, 5}} {
		if got := ranges(in); got != want {
			t.Errorf("ranges(%v) = %q, want %q", in, got, want)
		}
	}
}

func TestTokenize(t *testing.T) {
	for _, test := range []struct {
		args  []string
		stdin string
		want  string
	}{
		{[]string{"Hello"}, "", "2,807\n"},
		{[]string{"--no-bos", "Hello"}, "", "807\n"},
		{[]string{"--special", "<|turn>"}, "", "2,105\n"},
		{[]string{"--pieces", "Hello"}, "", "2    \"<bos>\"\n807  \"Hello\"\n"},
		{[]string{"--no-bos", "-"}, "Hello\n", "807,4\n"},
		{[]string{"--json", "Hello"}, "", `{"tokens":[2,807],"pieces":["<bos>","Hello"]}` + "\n"},
		{[]string{"--json", "--no-bos", ""}, "", `{"tokens":[],"pieces":[]}` + "\n"},
	} {
		if got := succeed(t, test.stdin, append([]string{"tokenize"}, test.args...)...); got != test.want {
			t.Errorf("tokenize %q prints %q, want %q", test.args, got, test.want)
		}
	}
	if got := succeed(t, "", "tokenize", "--no-bos", "<|turn>"); got == "105\n" {
		t.Error("a control token in text is read as such without --special")
	}
}

func TestDetokenize(t *testing.T) {
	for _, test := range []struct {
		args  []string
		stdin string
		want  string
	}{
		{[]string{"807,8"}, "", "Hello!\n"},
		{[]string{"2,807", "8"}, "", "Hello!\n"},
		{[]string{"--special", "105"}, "", "<|turn>\n"},
		{[]string{"-"}, "807 8\n", "Hello!\n"},
		{[]string{"--json", "807"}, "", `{"text":"Hello"}` + "\n"},
	} {
		if got := succeed(t, test.stdin, append([]string{"detokenize"}, test.args...)...); got != test.want {
			t.Errorf("detokenize %q prints %q, want %q", test.args, got, test.want)
		}
	}
	const text = "Grüße, 世界! 🎉 <|turn>\n\tfunc  f()"
	ids := succeed(t, text, "tokenize", "-")
	if got := succeed(t, ids, "detokenize", "-"); got != text+"\n" {
		t.Errorf("there and back: %q, want %q", got, text)
	}
}

var (
	loadLine    = regexp.MustCompile(`^\[Load\] chunk[1-4] done in \d+\.\ds \(cpu\)$`)
	profileLine = regexp.MustCompile(`^\[Profile\] emb=[\d.]+ms mask=[\d.]+ms \| c1=[\d.]+ c2=[\d.]+ c3=[\d.]+ c4=[\d.]+ \(sum=[\d.]+ms\) \| predict=[\d.]+ms total=[\d.]+ms \([\d.]+ tok/s\)$`)
	unitLine    = regexp.MustCompile(`^\[cpu/CPU\] unit_wait=[\d.]+ms copyBack=[\d.]+ms cpu_active=[\d.]+ms \(\d+% CPU\)$`)
)

// matching counts the lines that match.
func matching(lines []string, r *regexp.Regexp) (n int) {
	for _, l := range lines {
		if r.MatchString(l) {
			n++
		}
	}
	return n
}

func TestSmoke(t *testing.T) {
	const prompt = "Tell me a story about a fox."
	for _, test := range []struct {
		every string
		lines int // of steps 1 to 20
	}{{"", 3}, {"1", 20}} {
		t.Setenv("LLM_PROFILE_EVERY_STEP", test.every)
		out := succeed(t, "", "smoke", embedded, prompt, "21")
		lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
		if matching(lines[:4], loadLine) != 4 {
			t.Errorf("not four chunks at the beginning of\n%s", out)
		}
		if a, b := matching(lines, profileLine), matching(lines, unitLine); a != test.lines || b != test.lines {
			t.Errorf("LLM_PROFILE_EVERY_STEP=%s: %d and %d lines of steps, want %d:\n%s", test.every, a, b, test.lines, out)
		}
		text := strings.TrimSuffix(succeed(t, "", "run", "-n", "21", prompt), "\n")
		if rest := strings.Join(lines[4+2*test.lines:], "\n"); !strings.HasPrefix(rest, text+"\n") || !strings.Contains(lines[len(lines)-1], "tok/s") {
			t.Errorf("not the text %q and tok/s at the end of\n%s", text, out)
		}
	}
	var a answer
	decode(t, succeed(t, "", "smoke", "--json", tinyFile, "Hello", "3"), &a)
	if len(a.Tokens) != 3 || a.End != public.EndLength {
		t.Errorf("got %+v", a)
	}
}

func TestRunProfile(t *testing.T) {
	status, out, err := command(t, "", "run", "--profile", "-n", "12", "Tell me a story about a fox.")
	lines := strings.Split(err, "\n")
	if status != 0 || matching(lines, profileLine) != 2 || matching(lines, unitLine) != 2 || strings.Contains(out, "[") {
		t.Errorf("status %d, stdout %q, stderr\n%s", status, out, err)
	}
}

// Each answer of a chat has its own steps.
func TestChatProfile(t *testing.T) {
	status, out, err := command(t, "Hello\n/reset\nHello\n", "chat", "--profile")
	lines := strings.Split(err, "\n")
	if status != 0 || matching(lines, profileLine) != 2 || matching(lines, unitLine) != 2 || strings.Contains(out, "[") || strings.Count(err, "[Load]") != 4 {
		t.Errorf("status %d, stdout %q, stderr\n%s", status, out, err)
	}
}

func TestChat(t *testing.T) {
	const hello = "Hello! How can I help you today?\n"
	if got := succeed(t, "Hello\r\n\n/reset\nHello", "chat"); got != hello+hello {
		t.Errorf("got %q", got)
	}
	if got := succeed(t, "/quit\nHello\n", "chat"); got != "" {
		t.Errorf("after /quit: %q", got)
	}
	status, out, err := command(t, "/fly\nHello\n", "chat")
	if status != 0 || out != hello || strings.Count(err, "\n") != 1 || !strings.Contains(err, "/fly") {
		t.Errorf("status %d, stdout %q, stderr %q", status, out, err)
	}

	// The second prompt holds the first turn; /reset forgets it.
	var sizes []int
	for line := range strings.Lines(succeed(t, "Hello\nHello\n/reset\nHello\n/system Be kind.\n/reset\nHello\n", "chat", "--json")) {
		var a answer
		decode(t, line, &a)
		sizes = append(sizes, a.PromptTokens)
	}
	if len(sizes) != 4 || sizes[0] != 10 || sizes[1] <= 20 || sizes[2] != 10 || sizes[3] <= 10 {
		t.Errorf("prompts of %v tokens", sizes)
	}
}

// interrupter is a terminal whose user presses Ctrl-C at the first text.
type interrupter struct {
	text       bytes.Buffer
	interrupts chan os.Signal
	pressed    bool
}

func (w *interrupter) Write(b []byte) (int, error) {
	if !w.pressed && len(bytes.TrimSpace(b)) > 0 {
		w.pressed = true
		w.interrupts <- os.Interrupt
		time.Sleep(20 * time.Millisecond) // for who has received it
	}
	return w.text.Write(b)
}

func TestInterrupt(t *testing.T) {
	const story = "Tell me a story about a fox."
	whole := succeed(t, "", "run", story)
	w := &interrupter{interrupts: make(chan os.Signal)}
	var stderr bytes.Buffer
	c := &console{in: strings.NewReader(""), out: w, err: &stderr, interrupts: w.interrupts}
	status := c.run([]string{"run", story})
	got := strings.TrimSuffix(w.text.String(), "\n")
	if status != 130 || stderr.Len() > 0 || got == "" || len(got) >= len(whole)-1 || !strings.HasPrefix(whole, got) {
		t.Errorf("status %d, stderr %q, stdout %q of %q", status, stderr.String(), got, whole)
	}

	// In a chat the next message is answered.
	w = &interrupter{interrupts: make(chan os.Signal)}
	c = &console{in: strings.NewReader(story + "\n/reset\nHello\n"), out: w, err: &stderr, interrupts: w.interrupts}
	status = c.run([]string{"chat"})
	lines := strings.Split(w.text.String(), "\n")
	if status != 0 || stderr.Len() > 0 || !slices.Equal(lines[len(lines)-2:], []string{"Hello! How can I help you today?", ""}) || strings.Contains(w.text.String(), whole) {
		t.Errorf("chat: status %d, stderr %q, stdout %q", status, stderr.String(), w.text.String())
	}
}

// Loading shows itself only when it takes a while, and takes its line away.
func TestProgress(t *testing.T) {
	var out bytes.Buffer
	p := &progress{w: &out, begin: time.Now().Add(time.Hour)}
	p.update(1, 2)
	p.clear()
	if out.Len() > 0 {
		t.Errorf("quick loading shows %q", out.String())
	}
	p = &progress{w: &out, begin: time.Now().Add(-time.Hour)}
	p.update(1<<20, 4<<20)
	p.clear()
	p.update(2<<20, 4<<20)
	if want := "\rloading  25% of 4.0 MiB \r\x1b[K"; out.String() != want {
		t.Errorf("slow loading shows %q, want %q", out.String(), want)
	}
}
