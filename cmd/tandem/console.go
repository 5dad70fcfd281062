package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/tandemrun/tandem"
)

// console is where a command reads, writes and is interrupted.
type console struct {
	in         io.Reader
	out, err   io.Writer
	interrupts <-chan os.Signal // nil: never
	tally      *tandem.Tally    // of all engines; nil: nobody wants to know
}

// errInterrupted ends a command that the person interrupted. What there was to
// say has been said.
var errInterrupted = errors.New("interrupted")

// context is done at the first interrupt, with errInterrupted as its cause. The
// second one ends the process, should the first not be enough.
func (c *console) context() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(context.Background())
	go func() {
		select {
		case <-c.interrupts:
			signal.Reset(os.Interrupt)
			cancel(errInterrupted)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// cause replaces an error that comes from an interrupt by errInterrupted.
func cause(ctx context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), errInterrupted) {
		return errInterrupted
	}
	return err
}

// isTerminal reports whether a person looks at (or types into) a stream.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// json writes one value as indented JSON.
func (c *console) json(v any) error {
	e := json.NewEncoder(c.out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// jsonLine writes one value as JSON on one line.
func (c *console) jsonLine(v any) error {
	e := json.NewEncoder(c.out)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// text is an argument, or all of stdin if the argument is "-".
func (c *console) text(arg string) (string, error) {
	if arg != "-" {
		return arg, nil
	}
	b, err := io.ReadAll(c.in)
	if err != nil {
		return "", fmt.Errorf("reading stdin: %w", err)
	}
	return string(b), nil
}

// progress shows how far loading, or what else it says, is, on a terminal and if it takes a while.
type progress struct {
	mu    sync.Mutex
	w     io.Writer // nil: silent
	what  string    // "" for loading
	begin time.Time
	shown time.Time
}

const (
	progressAfter = 300 * time.Millisecond
	progressEvery = 100 * time.Millisecond
)

func (c *console) progress() *progress {
	p := &progress{begin: time.Now()}
	if isTerminal(c.err) {
		p.w = c.err
	}
	return p
}

// update is called from several goroutines.
func (p *progress) update(done, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.w == nil || total <= 0 || now.Sub(p.begin) < progressAfter || now.Sub(p.shown) < progressEvery {
		return
	}
	p.shown = now
	fmt.Fprintf(p.w, "\r%s %3d%% of %s ", cmp.Or(p.what, "loading"), 100*done/total, size(total))
}

// clear takes the line away again.
func (p *progress) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.w != nil && !p.shown.IsZero() {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
	p.w = nil
}

// size is a number of bytes for a person.
func size(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.2f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d B", n)
}

// stepper shows on a terminal how many of something are done.
type stepper struct {
	w     io.Writer // nil: silent
	what  string
	shown time.Time
}

func (c *console) steps(what string) *stepper {
	s := &stepper{what: what}
	if isTerminal(c.err) {
		s.w = c.err
	}
	return s
}

// update is called by one goroutine at a time.
func (s *stepper) update(done, total int) { s.show(fmt.Sprintf("%d of %d %s", done, total, s.what)) }

func (s *stepper) show(line string) {
	now := time.Now()
	if s.w == nil || now.Sub(s.shown) < progressEvery {
		return
	}
	s.shown = now
	fmt.Fprintf(s.w, "\r%s\x1b[K", line)
}

// clear takes the line away again.
func (s *stepper) clear() {
	if s.w != nil && !s.shown.IsZero() {
		fmt.Fprint(s.w, "\r\x1b[K")
	}
	s.w = nil
}
