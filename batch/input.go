package batch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"sync"
)

// What is known of a line of the input.
const (
	blank    = 0 // nothing stands on it
	answered = 1
	// Other values are the hash of a line that has no answer yet.
)

// input is the file of prompts. It is read twice: once to check it, and once
// to answer it.
type input struct {
	name    string
	file    *os.File
	state   []uint64 // by line: blank, answered or a hash
	prompts int

	mu    sync.Mutex
	lines *lines
	line  int
}

func openInput(ctx context.Context, name string) (*input, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	in := &input{name: name, file: f}
	err = in.check(ctx)
	if err != nil {
		f.Close() // read only
		return nil, err
	}
	return in, nil
}

// check reads all lines and goes back to the first.
func (in *input) check(ctx context.Context) error {
	if err := regular(in.file); err != nil {
		return err
	}
	l := newLines(in.file)
	for {
		line, _, err := l.next()
		if err == io.EOF {
			break
		}
		n := len(in.state) + 1
		if err != nil {
			return fmt.Errorf("%s: line %d: %w", in.name, n, err)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		h := hash(line)
		if h != blank {
			if _, err := parse(line); err != nil {
				return fmt.Errorf("%s: line %d %w", in.name, n, err)
			}
			in.prompts++
		}
		in.state = append(in.state, h)
	}
	return in.rewind()
}

func (in *input) rewind() error {
	_, err := in.file.Seek(0, io.SeekStart)
	in.lines, in.line = newLines(in.file), 0
	return err
}

// next is the next prompt without an answer, and the hash of its line. It is
// safe for concurrent use.
func (in *input) next() (Request, uint64, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for in.line < len(in.state) {
		line, _, err := in.lines.next()
		if err == io.EOF {
			break
		}
		in.line++
		if err != nil {
			return Request{}, 0, fmt.Errorf("%s: line %d: %w", in.name, in.line, err)
		}
		want := in.state[in.line-1]
		if want == blank || want == answered {
			continue
		}
		if hash(line) != want {
			return Request{}, 0, in.changed(fmt.Sprintf("line %d is another one", in.line))
		}
		q, err := parse(line)
		q.Line = in.line
		return q, want, err
	}
	return Request{}, 0, io.EOF
}

// changed is the error of an input that is edited during a run.
func (in *input) changed(how string) error {
	return fmt.Errorf("%s: the input was changed while it was answered: %s; restore it and start again", in.name, how)
}

func (in *input) close() error { return in.file.Close() }

// hash identifies a line, white space around it left out: the first 8 bytes of
// its SHA-256, or blank.
func hash(line []byte) uint64 {
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return blank
	}
	sum := sha256.Sum256(line)
	// The two lowest values have another meaning.
	return max(binary.BigEndian.Uint64(sum[:]), answered+1)
}

func hexadecimal(h uint64) string { return fmt.Sprintf("%016x", h) }

// regular refuses what cannot be read twice.
func regular(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s: it must be a regular file", f.Name())
	}
	return nil
}
