package power

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// A block is what a program tells of one interval. Watts of parts it does not
// name are absent.
type block struct {
	watts    map[Part]float64
	celsius  *float64
	mhz      *float64
	pressure string
}

// lines turns the output of a program, line by line, into blocks.
type lines interface {
	// line takes the next line and returns the newest block that can be used; nil
	// as long as there is none.
	line(text string) *block
}

// stream is a program that prints samples as they come.
type stream struct {
	program string
	command *exec.Cmd
	done    chan struct{}

	mu     sync.Mutex
	latest *block
	count  int // blocks so far
	taken  int // of them, at the last sample
	err    error
}

// startStream starts a program and reads its output in the background.
func startStream(program string, l lines, args ...string) (source, error) {
	c := exec.Command(program, args...)
	c.WaitDelay = time.Second
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	detach(c)
	if err := c.Start(); err != nil {
		return nil, fmt.Errorf("starting it: %w", err)
	}
	s := &stream{program: program, command: c, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		s.read(out, l)
		err := c.Wait()
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.count == 0 && err != nil && s.err == nil {
			s.err = fmt.Errorf("%s ended: %w", program, err)
		}
	}()
	return s, nil
}

// maxLine is the longest line that is read; what has a longer one is no such
// program.
const maxLine = 64 << 10

// read takes blocks until the output ends.
func (s *stream) read(r io.Reader, l lines) {
	in := bufio.NewScanner(r)
	in.Buffer(nil, maxLine)
	var last *block
	for in.Scan() {
		s.mu.Lock() // a block still grows after it can be used
		b := l.line(in.Text())
		if b != nil && b != last {
			s.latest, last = b, b
			s.count++
		}
		s.mu.Unlock()
	}
	if err := in.Err(); err != nil {
		s.mu.Lock()
		s.err = fmt.Errorf("reading the output of %s: %w", s.program, err)
		s.mu.Unlock()
		_, _ = io.Copy(io.Discard, r)
	}
}

func (s *stream) name() string { return s.program }

func (*stream) sensors() []string { return nil }

// sample adds the newest block, if it came since the call before.
func (s *stream) sample(_ time.Time, to *Sample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.latest == nil || s.taken == s.count {
		return
	}
	s.taken = s.count
	for _, p := range Parts() {
		if w, ok := s.latest.watts[p]; ok {
			to.add(p, s.program, w)
		}
	}
	if s.latest.celsius != nil {
		to.Celsius = s.latest.celsius
	}
	if s.latest.mhz != nil {
		to.MHz = s.latest.mhz
	}
	to.Pressure = Hotter(to.Pressure, s.latest.pressure)
}

func (s *stream) why() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil:
		return s.err.Error()
	case s.count == 0:
		return "it has printed no sample yet"
	}
	return ""
}

func (s *stream) close() error {
	err := s.command.Process.Signal(os.Interrupt)
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		_ = s.command.Process.Kill()
	}
	select {
	case <-s.done:
	case <-time.After(2 * time.Second):
		_ = s.command.Process.Kill()
		<-s.done
	}
	return nil
}

// openMac starts the program that tells the power of a Mac: powermetrics as
// root, or else macmon where it is installed.
func openMac(_ context.Context, interval time.Duration, root bool, find func(string) (string, error)) (source, error) {
	ms := fmt.Sprint(max(interval.Milliseconds(), 10))
	if root {
		if _, err := find("powermetrics"); err == nil {
			return startStream("powermetrics", &powermetrics{}, "--samplers", "cpu_power,gpu_power,thermal", "-i", ms)
		}
	}
	if _, err := find("macmon"); err == nil {
		return startStream("macmon", macmon{}, "pipe", "-i", ms)
	}
	if root {
		return nil, errors.New("there is neither powermetrics nor macmon")
	}
	return nil, errors.New("permission refused: powermetrics runs as root alone; run with sudo, or install macmon, which does without")
}
