package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tandemrun/tandem"
)

type chatCmd struct {
	modelFlags
	maxFlags
	layoutFlags
	samplingFlags
	planFlags
	System  string `placeholder:"TEXT" help:"System message."`
	Profile bool   `help:"Print what decode steps take to stderr, at step 1 of each answer and each 10th (LLM_PROFILE_EVERY_STEP=1: each)."`
	JSON    bool   `name:"json" help:"Print a JSON object on a line for each answer instead of the text."`
}

// Help is shown by tandem chat --help.
func (chatCmd) Help() string {
	return `Examples:

    tandem chat -m model.gguf --temp 0.7
    printf 'Hello\n/quit\n' | tandem chat

Each line is a message. Commands: /system TEXT sets the system message, /reset
forgets the conversation, /quit leaves. Ctrl-C ends an answer, and leaves when
there is none; Ctrl-D leaves.`
}

// conversation is a chat in the terminal.
type conversation struct {
	*chatCmd
	c       *console
	s       *session
	system  string
	history []tandem.Message
	profile *profiler // nil without --profile
}

// Run holds a conversation until the person leaves.
func (k *chatCmd) Run(c *console) (err error) {
	if err := errors.Join(k.check(), k.samplingFlags.options().Check()); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	loading, loaded := c.context()
	s, err := c.prepare(loading, k.modelFlags, k.layoutFlags.planned(k.Plan), func(m *tandem.Model) error {
		_, err := m.Prompt([]tandem.Message{{Role: "user", Content: "Hello"}})
		return needsText(m, err)
	})
	loaded()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.checkPlan(s.plan), s.close()) }()
	talk := &conversation{chatCmd: k, c: c, s: s, system: k.System}
	if k.Profile {
		fmt.Fprint(c.err, s.loads())
		talk.profile = s.profiler(c.printProfile)
	}
	lines, failed := c.lines(ctx)
	for {
		if isTerminal(c.in) && !k.JSON {
			fmt.Fprint(c.out, "> ")
		}
		select {
		case <-c.interrupts:
			fmt.Fprintln(c.err)
			return errInterrupted
		case line, ok := <-lines:
			if !ok {
				if isTerminal(c.in) && !k.JSON {
					fmt.Fprintln(c.out)
				}
				return <-failed
			}
			if done, err := talk.line(ctx, line); done || err != nil {
				return err
			}
		}
	}
}

// lines reads stdin line by line, of any length, until its end. Then the error
// of reading, or nil, comes from the second channel.
func (c *console) lines(ctx context.Context) (<-chan string, <-chan error) {
	lines, failed := make(chan string), make(chan error, 1)
	go func() {
		defer close(lines)
		for r := bufio.NewReader(c.in); ; {
			line, err := r.ReadString('\n')
			if line = strings.TrimRight(line, "\r\n"); line != "" {
				select {
				case lines <- line:
				case <-ctx.Done():
					return
				}
			}
			if err == io.EOF {
				failed <- nil
				return
			}
			if err != nil {
				failed <- fmt.Errorf("reading stdin: %w", err)
				return
			}
		}
	}()
	return lines, failed
}

// line takes one line of the person; it reports whether that was the last.
func (t *conversation) line(ctx context.Context, line string) (done bool, err error) {
	command, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	switch {
	case command == "":
	case command == "/quit":
		return true, nil
	case command == "/reset":
		t.history = nil
	case command == "/system":
		t.system = strings.TrimSpace(rest)
	case strings.HasPrefix(command, "/"):
		fmt.Fprintf(t.c.err, "no such command: %s; there are /system TEXT, /reset and /quit\n", command)
	default:
		return false, t.answer(ctx, line)
	}
	return false, nil
}

// answer adds a message and the model's answer to the history. The part of an
// answer that an interrupt left stays in it; a message that has no answer does
// not.
func (t *conversation) answer(ctx context.Context, message string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-t.c.interrupts:
			cancel(errInterrupted)
		case <-ctx.Done():
		}
	}()
	var messages []tandem.Message
	if t.system != "" {
		messages = append(messages, tandem.Message{Role: "system", Content: t.system})
	}
	asked := append(slices.Clone(t.history), tandem.Message{Role: "user", Content: message})
	prompt, err := t.s.model.Prompt(append(messages, asked...))
	if err != nil {
		return err
	}
	if n := t.s.engine.Context(); len(prompt) > n {
		err := fmt.Errorf("the conversation has %d tokens, but the context has room for %d; use /reset, or start with a larger --ctx", len(prompt), n)
		if !isTerminal(t.c.in) {
			return err
		}
		fmt.Fprintln(t.c.err, err)
		return nil
	}
	t.s.begun = false
	if t.profile != nil {
		t.profile.again()
	}
	var failed error
	result, err := t.s.stream.Generate(ctx, prompt, tandem.Generation{
		MaxTokens: t.Max, Sampling: t.samplingFlags.options(),
		Emit: func(p tandem.Piece) bool {
			if !t.JSON {
				_, failed = io.WriteString(t.c.out, p.Text)
			}
			if t.profile != nil {
				t.profile.add(p)
			}
			t.s.watch(p)
			return failed == nil
		},
	})
	if err = cause(ctx, err); err != nil && !errors.Is(err, errInterrupted) {
		return err
	}
	if failed != nil {
		return fmt.Errorf("writing the answer: %w", failed)
	}
	if result.Text != "" {
		t.history = append(asked, tandem.Message{Role: "assistant", Content: result.Text})
	}
	if t.JSON {
		return t.c.jsonLine(t.s.answer(result))
	}
	fmt.Fprintln(t.c.out)
	if result.End == tandem.EndContext {
		fmt.Fprintln(t.c.err, "the context is full; use /reset, or start with a larger --ctx")
	}
	return nil
}
