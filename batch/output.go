package batch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
)

// A record is a line of the output. See docs/batch.md.
type record struct {
	Line         int             `json:"index"`
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

// endError is the end reason of a prompt that was refused.
const endError = "error"

// recordBegin is how every line of an output begins. What does not begin like
// it is not ours to cut off.
const recordBegin = `{"index":`

// errLocked is the error of lock when another process has the file.
var errLocked = errors.New("another process is writing this file; wait for its end or name another output")

// output is the file of answers.
type output struct {
	file     *os.File
	end      int64 // behind the last whole line
	answers  int   // found in it
	errors   int   // of them
	settings string
	dirty    bool // written and not flushed
}

// openOutput locks the output and reads back what it has; in learns which
// prompts are answered.
func openOutput(ctx context.Context, c Config, in *input) (*output, error) {
	_, missing := os.Stat(c.Output)
	f, err := os.OpenFile(c.Output, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	o := &output{file: f, settings: hexadecimal(hash([]byte(c.Settings)))}
	if err := o.recover(ctx, in); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if missing != nil {
		// The name of a new file must last as long as its lines.
		if err := syncFolder(filepath.Dir(c.Output)); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	return o, nil
}

func (o *output) recover(ctx context.Context, in *input) error {
	if err := regular(o.file); err != nil {
		return err
	}
	a, err := in.file.Stat()
	if err != nil {
		return err
	}
	b, err := o.file.Stat()
	if err != nil {
		return err
	}
	if os.SameFile(a, b) {
		return fmt.Errorf("%s: it is the input; name another output", o.file.Name())
	}
	if err := lock(o.file); err != nil {
		return fmt.Errorf("%s: %w", o.file.Name(), err)
	}
	l := newLines(o.file)
	for n := 1; ; n++ {
		line, whole, err := l.next()
		if err == io.EOF {
			return nil
		}
		if err == nil && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err == nil && !whole {
			return o.cut(n, line)
		}
		if err == nil {
			err = o.take(line, in)
		}
		if err != nil {
			return fmt.Errorf("%s: line %d: %w", o.file.Name(), n, err)
		}
		o.end = l.end
	}
}

// cut takes away the last line, which was not written to its end.
func (o *output) cut(n int, line []byte) error {
	known := min(len(line), len(recordBegin))
	if string(line[:known]) != recordBegin[:known] && len(bytes.Trim(line, "\x00")) > 0 {
		return fmt.Errorf("%s: line %d: %w", o.file.Name(), n, errNoRecord)
	}
	if err := o.file.Truncate(o.end); err != nil {
		return fmt.Errorf("cutting off an unfinished line: %w", err)
	}
	return nil
}

var errNoRecord = errors.New("it is no line of a batch's output; name another output")

// take notes an answer of an earlier run.
func (o *output) take(line []byte, in *input) error {
	var r record
	if json.Unmarshal(line, &r) != nil || r.Line < 1 || r.Input == "" || r.Settings == "" {
		return errNoRecord
	}
	if r.Line > len(in.state) {
		return fmt.Errorf("it answers line %d of %s, which has %d lines; restore the input or name another output", r.Line, in.name, len(in.state))
	}
	state := &in.state[r.Line-1]
	if *state == answered {
		return fmt.Errorf("it answers line %d of %s, as a line before does; take one of them away", r.Line, in.name)
	}
	if h, err := strconv.ParseUint(r.Input, 16, 64); err != nil || h != *state {
		return fmt.Errorf("it answers another line %d than %s has; restore the input or name another output", r.Line, in.name)
	}
	if r.Settings != o.settings {
		return errors.New("it was answered with another model or other settings (sampling, most tokens, context size, KV type); use the same or name another output")
	}
	*state = answered
	o.answers++
	if r.Error != nil {
		o.errors++
	}
	return nil
}

// add writes an answer.
func (o *output) add(r record) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(r); err != nil { // ends the line
		return fmt.Errorf("line %d of the input: writing its answer as JSON: %w", r.Line, err)
	}
	if _, err := o.file.WriteAt(b.Bytes(), o.end); err != nil {
		return errors.Join(fmt.Errorf("writing an answer: %w", err), o.file.Truncate(o.end))
	}
	o.end += int64(b.Len())
	o.dirty = true
	return nil
}

// flush has the disk keep what is written.
func (o *output) flush() error {
	if !o.dirty {
		return nil
	}
	o.dirty = false
	return o.file.Sync()
}

func (o *output) close() error { return o.file.Close() }

// syncFolder has the disk keep the names in a folder, where a system knows
// that.
func syncFolder(name string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
