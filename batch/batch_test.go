package batch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// echo answers a prompt with itself, and refuses some.
type echo struct {
	asked  *atomic.Int64
	before func(ctx context.Context, q Request) error // may be nil
}

func (e echo) Answer(ctx context.Context, q Request) (Answer, error) {
	e.asked.Add(1)
	if e.before != nil {
		if err := e.before(ctx, q); err != nil {
			return Answer{}, err
		}
	}
	if strings.Contains(q.Prompt, "refuse") {
		return Answer{PromptTokens: 1}, &Refusal{errors.New("too\nlong")}
	}
	return Answer{
		Text: "<" + q.Prompt + ">\n", PromptTokens: 3, Tokens: len(q.Prompt), End: "end_of_turn",
		Prefill: time.Millisecond, Decode: time.Second,
	}, nil
}

// place is a folder with an input.
type place struct {
	t       *testing.T
	in, out string
}

func newPlace(t *testing.T, input string) place {
	t.Helper()
	dir := t.TempDir()
	p := place{t, filepath.Join(dir, "in.jsonl"), filepath.Join(dir, "out.jsonl")}
	write(t, p.in, input)
	return p
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func (p place) config() Config { return Config{p.in, p.out, "greedy"} }

// run answers what is left with n streams and returns how many were asked.
func (p place) run(n int, before func(context.Context, Request) error) (Summary, int, error) {
	p.t.Helper()
	j, err := Open(context.Background(), p.config())
	if err != nil {
		return Summary{}, 0, err
	}
	defer j.Close()
	var asked atomic.Int64
	streams := slices.Repeat([]Answerer{echo{&asked, before}}, n)
	s, err := j.Run(context.Background(), streams, nil)
	return s, int(asked.Load()), err
}

func (p place) records() map[int]record {
	p.t.Helper()
	out := map[int]record{}
	for line := range strings.Lines(read(p.t, p.out)) {
		var r record
		if err := json.Unmarshal([]byte(line), &r); err != nil || !strings.HasSuffix(line, "\n") {
			p.t.Fatalf("%q: %v", line, err)
		}
		if _, ok := out[r.Line]; ok {
			p.t.Fatalf("line %d twice", r.Line)
		}
		out[r.Line] = r
	}
	return out
}

const four = `{"prompt":"a","id":"<x>"}

{"prompt":"refuse"}
{"id":12345678901234567890,"messages":[{"role":"user","content":"c"}]}
  {"prompt":"é"}` + "\r\n"

func TestRun(t *testing.T) {
	p := newPlace(t, four)
	s, asked, err := p.run(2, nil)
	want := Summary{Prompts: 4, Answered: 4, Errors: 1, Streams: 2, PromptTokens: 10, Tokens: 3}
	if diff := cmp.Diff(want, s, cmpopts.IgnoreFields(Summary{}, "Elapsed")); diff != "" || err != nil || asked != 4 {
		t.Errorf("%v, %d asked: %s", err, asked, diff)
	}
	text := "too\nlong"
	answer := func(line int, id, text string, tokens int) record {
		return record{Line: line, ID: json.RawMessage(id), Text: text, PromptTokens: 3, Tokens: tokens, End: "end_of_turn", Prefill: 0.001, Decode: 1}
	}
	records := map[int]record{
		1: answer(1, `"<x>"`, "<a>\n", 1),
		3: {Line: 3, ID: json.RawMessage("null"), PromptTokens: 1, End: "error", Error: &text},
		4: answer(4, "12345678901234567890", "<>\n", 0),
		5: answer(5, "null", "<é>\n", 2),
	}
	if diff := cmp.Diff(records, p.records(), cmpopts.IgnoreFields(record{}, "Input", "Settings")); diff != "" {
		t.Error(diff)
	}
	// printf '%s' '{"prompt":"a","id":"<x>"}' | sha256sum | head -c 16
	if got := p.records()[1].Input; got != "62344f1b188e0388" {
		t.Errorf("input_hash %s", got)
	}

	before := read(t, p.out)
	s, asked, err = p.run(2, nil)
	if want := (Summary{Prompts: 4, Before: 4, Errors: 1, Streams: 2}); asked != 0 || err != nil || read(t, p.out) != before ||
		cmp.Diff(want, s, cmpopts.IgnoreFields(Summary{}, "Elapsed")) != "" {
		t.Errorf("again: %+v, %d asked, %v", s, asked, err)
	}
}

// A kill leaves a beginning of the output. Whatever its length, another run
// makes it whole and asks only what had no whole line.
func TestEveryByte(t *testing.T) {
	p := newPlace(t, four)
	if _, _, err := p.run(1, nil); err != nil {
		t.Fatal(err)
	}
	whole := read(t, p.out)
	for n := range len(whole) + 1 {
		write(t, p.out, whole[:n])
		_, asked, err := p.run(1, nil)
		if want := 4 - strings.Count(whole[:n], "\n"); err != nil || asked != want || read(t, p.out) != whole {
			t.Fatalf("after %d bytes: %v, %d asked, want %d:\n%s", n, err, asked, want, read(t, p.out))
		}
	}
	// A disk that lost power can leave zeros.
	at := strings.Index(whole, "\n") + 1
	write(t, p.out, whole[:at]+strings.Repeat("\x00", 70))
	if _, asked, err := p.run(1, nil); err != nil || asked != 3 || read(t, p.out) != whole {
		t.Errorf("after zeros: %v, %d asked:\n%s", err, asked, read(t, p.out))
	}
}

// Runs that fail and are cancelled at random prompts lose and double nothing.
func TestInterruptions(t *testing.T) {
	var input strings.Builder
	for i := range 200 {
		fmt.Fprintf(&input, "{\"prompt\":\"number %d\"}\n", i)
	}
	p := newPlace(t, input.String())
	broken := errors.New("the unit is gone")
	total := 0
	for round := range 20 {
		j, err := Open(context.Background(), p.config())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(context.Background())
		var asked, answered atomic.Int64
		stop := func(ctx context.Context, _ Request) error {
			if asked.Load() < 8 {
				answered.Add(1)
				return nil
			}
			if round%2 == 0 {
				return broken
			}
			cancel(context.Canceled)
			<-ctx.Done()
			return ctx.Err()
		}
		s, err := j.Run(ctx, slices.Repeat([]Answerer{echo{&asked, stop}}, 1+round%4), nil)
		if round%2 == 0 && (!errors.Is(err, broken) || !strings.Contains(err.Error(), p.in+": line ")) {
			t.Errorf("a broken stream: %v", err)
		}
		if round%2 == 1 && !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
		if s.Answered != int(answered.Load()) || s.Before != total {
			t.Errorf("%+v, but %d were answered, and %d before", s, answered.Load(), total)
		}
		total += s.Answered
		cancel(nil)
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, asked, err := p.run(8, nil); err != nil || asked != 200-total {
		t.Errorf("%v, %d asked of %d", err, asked, 200-total)
	}
	for i := range 200 {
		if got, want := p.records()[i+1].Text, fmt.Sprintf("<number %d>\n", i); got != want {
			t.Errorf("line %d: %q, want %q", i+1, got, want)
		}
	}
}

// As many prompts as there are streams are answered at once.
func TestAtOnce(t *testing.T) {
	p := newPlace(t, strings.Repeat(`{"prompt":"a"}`+"\n", 9))
	var together sync.WaitGroup
	together.Add(3)
	var n atomic.Int64
	_, asked, err := p.run(3, func(context.Context, Request) error {
		if n.Add(1) <= 3 {
			together.Done()
			together.Wait() // for ever, if they came one after the other
		}
		return nil
	})
	if err != nil || asked != 9 {
		t.Errorf("%v, %d asked", err, asked)
	}
}

func TestInputErrors(t *testing.T) {
	long := `{"prompt":"` + strings.Repeat("a", maxLine) + `"}`
	for _, test := range []struct{ line, want string }{
		{`{"prompt":"a"`, "ends too early"},
		{`{"prompt":"a",}`, "not JSON"},
		{`{"prompt":"a"} {}`, "more than one"},
		{`{"prompt":"a"} x`, "more than one"},
		{`["a"]`, "not a JSON object"},
		{`"a"`, "not a JSON object"},
		{"{\"prompt\":\"\xff\"}", "UTF-8"},
		{`{}`, `neither "prompt" nor "messages"`},
		{`{"prompt":null}`, "neither"},
		{`{"prompt":"a","messages":[{"role":"user","content":"a"}]}`, "both"},
		{`{"prompt":"a","prompt":"a"}`, `"prompt" twice`},
		{`{"Prompt":"a"}`, `"Prompt" is no field`},
		{`{"prompt":"a","temp":1}`, `"temp" is no field`},
		{`{"prompt":1}`, `"prompt" must be a string`},
		{`{"prompt":"a","id":true}`, `"id" must be`},
		{`{"prompt":"a","id":{}}`, `"id" must be`},
		{`{"prompt":"a","raw":1}`, `"raw" must be`},
		{`{"prompt":"a","raw":true,"system":"b"}`, `"raw"`},
		{`{"messages":[{"role":"user","content":"a"}],"raw":true}`, `"raw"`},
		{`{"prompt":"a","max_tokens":-1}`, `"max_tokens" is -1`},
		{`{"prompt":"a","max_tokens":1.5}`, `"max_tokens" must be`},
		{`{"prompt":"a","seed":-1}`, `"seed" must be`},
		{`{"prompt":"a","temperature":-0.5}`, `"temperature" is -0.5`},
		{`{"prompt":"a","temperature":1e999}`, `"temperature" must be`},
		{`{"messages":{}}`, `"messages" must be a list`},
		{`{"messages":[]}`, "at least one"},
		{`{"messages":["a"]}`, `"messages" message 1: is not a JSON object`},
		{`{"messages":[{"role":"user"}]}`, "message 1"},
		{`{"messages":[{"role":"tool","content":"a"}]}`, `"tool"`},
		{`{"messages":[{"role":"user","content":"a","name":"b"}]}`, `"name" is no field`},
		{`{"system":"a","messages":[{"role":"system","content":"a"}]}`, "system message"},
		{long, "more than 64 MiB"},
	} {
		p := newPlace(t, `{"prompt":"a"}`+"\n\n"+test.line)
		_, _, err := p.run(1, nil)
		if err == nil || !strings.HasPrefix(err.Error(), p.in+": line 3") || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%.80s: %v, want %q", test.line, err, test.want)
		}
		if _, err := os.Stat(p.out); err == nil {
			t.Errorf("%.80s: an output was begun", test.line)
		}
	}
}

func TestRequest(t *testing.T) {
	q, err := parse([]byte(`{"id": 7, "system":"s","prompt":"p","max_tokens":0,"seed":18446744073709551615,"temperature":0.5,"raw":null}`))
	if err != nil {
		t.Fatal(err)
	}
	if *q.MaxTokens != 0 || *q.Seed != 1<<64-1 || *q.Temperature != 0.5 || q.Raw || string(q.ID) != "7" {
		t.Errorf("%+v", q)
	}
	if got := fmt.Sprint(q.Conversation()); got != "[{system s} {user p}]" {
		t.Errorf("conversation %s", got)
	}
	q, err = parse([]byte(`{"system":"s","messages":[{"role":"user","content":"a"},{"role":"assistant","content":""},{"content":"b","role":"user"}]}`))
	if got := fmt.Sprint(q.Conversation()); err != nil || got != "[{system s} {user a} {assistant } {user b}]" {
		t.Errorf("%v, conversation %s", err, got)
	}
}

// An output that cannot be gone on with is refused and stays as it is.
func TestOutputErrors(t *testing.T) {
	p := newPlace(t, four)
	if _, _, err := p.run(1, nil); err != nil {
		t.Fatal(err)
	}
	whole := read(t, p.out)
	lines := slices.Collect(strings.Lines(whole))
	other := p.config()
	other.Settings = "warm"
	same := p.config()
	same.Output = p.in
	folder := p.config()
	folder.Output = filepath.Dir(p.in)
	for _, test := range []struct {
		name, input, output, want string
		c                         Config
	}{
		{"changed prompt", strings.Replace(four, `"a"`, `"b"`, 1), whole, "another line 1", p.config()},
		{"moved prompt", "\n" + four, whole, "another line 1", p.config()},
		{"shorter input", four[:strings.Index(four, "{\"id\"")], whole, "line 4 of", p.config()},
		{"settings", four, whole, "other settings", other},
		{"twice", four, whole + lines[0], "as a line before does", p.config()},
		{"something else", four, "my notes\n", "line 1: it is no line of a batch's output", p.config()},
		{"something else, one line", four, "my notes", "line 1: it is no line", p.config()},
		{"something else behind", four, lines[0] + "my notes", "line 2: it is no line", p.config()},
		{"an input", four, four, "line 1: it is no line", p.config()},
		{"torn within", four, lines[0][:20] + "\n" + lines[1], "line 1: it is no line", p.config()},
		{"the input itself", four, whole, "is the input", same},
		{"a folder", four, whole, filepath.Dir(p.in), folder},
	} {
		write(t, p.in, test.input)
		write(t, p.out, test.output)
		j, err := Open(context.Background(), test.c)
		if err == nil {
			j.Close()
		}
		if err == nil || !strings.Contains(err.Error(), test.want) || !strings.HasPrefix(err.Error(), test.c.Output) && test.name != "a folder" {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
		if read(t, p.in) != test.input || read(t, p.out) != test.output {
			t.Errorf("%s: a file was changed", test.name)
		}
	}
	// Prompts may be added, and those that have no answer changed.
	write(t, p.in, strings.Replace(four, `"é"`, `"x"`, 1)+`{"prompt":"new"}`)
	write(t, p.out, strings.Join(lines[:3], ""))
	if _, asked, err := p.run(1, nil); err != nil || asked != 2 || p.records()[6].Text != "<new>\n" {
		t.Errorf("%v, %d asked:\n%s", err, asked, read(t, p.out))
	}
}

func TestLock(t *testing.T) {
	p := newPlace(t, four)
	j, err := Open(context.Background(), p.config())
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.run(1, nil); !errors.Is(err, errLocked) || !strings.Contains(err.Error(), p.out) {
		t.Errorf("the second of two: %v", err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if _, asked, err := p.run(1, nil); err != nil || asked != 4 {
		t.Errorf("after the first: %v, %d asked", err, asked)
	}
}

// An input that is edited while it is answered ends the run.
func TestInputChanges(t *testing.T) {
	const line = `{"prompt":"aaaa"}` + "\n"
	for _, test := range []struct{ name, to string }{
		{"edited", strings.Repeat(`{"prompt":"bbbb"}`+"\n", 10000)},
		{"shorter", line},
	} {
		p := newPlace(t, strings.Repeat(line, 10000)) // more than a reader keeps
		var once sync.Once
		_, asked, err := p.run(1, func(context.Context, Request) error {
			once.Do(func() { write(t, p.in, test.to) })
			return nil
		})
		if err == nil || !strings.Contains(err.Error(), "changed while") || asked == 10000 {
			t.Errorf("%s: %v, %d asked", test.name, err, asked)
		}
		for n, r := range p.records() {
			if r.Text != "<aaaa>\n" {
				t.Errorf("%s: line %d: %q", test.name, n, r.Text)
			}
		}
	}
}

func TestLines(t *testing.T) {
	long := strings.Repeat("x", 200_000)
	l := newLines(strings.NewReader("a\n\n" + long + "\r\nend"))
	var got []string
	for {
		line, whole, err := l.next()
		if err != nil {
			break
		}
		got = append(got, fmt.Sprintf("%d %v %d", len(line), whole, l.end))
	}
	want := []string{"1 true 2", "0 true 3", "200001 true 200005", "3 false 200008"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func FuzzParse(f *testing.F) {
	for line := range strings.Lines(four) {
		f.Add([]byte(line))
	}
	f.Add([]byte(`{"messages":[{"role":"user","content":"\ud800"}],"seed":1,"system":null,"temperature":1e3}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		q, err := parse(line)
		if err != nil {
			return
		}
		if !json.Valid(line) || bytes.TrimSpace(line)[0] != '{' || len(q.Conversation()) == 0 {
			t.Errorf("%q was taken as %+v", line, q)
		}
	})
}
