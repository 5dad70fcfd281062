// Package oracle holds recorded answers: the token ids that a model chose for a
// set of prompts, greedily, so that later runs in any layout can be compared
// with them.
//
// A file is JSON Lines: a header, a line for each prompt, and a last line with
// the hash of all bytes before it. docs/oracle.md describes them. Files are small
// and are read and written whole. The package knows no model: it neither makes
// answers nor compares them.
//
// A File that Parse returns is consistent: each answer's hash is right, prompts
// have names of their own and tokens, and no id is negative. Whether ids are in
// a vocabulary is the caller's to check. Errors name the file, the line and the
// field.
package oracle

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
)

// Format is the first field of the header.
const Format = "tandem-oracle/1"

// MaxSize is how large a file may be.
const MaxSize = 64 << 20

// A File is recorded answers.
type File struct {
	Header
	Answers []Answer
}

// A Header says what answers are of.
type Header struct {
	Format   string   `json:"format"`
	Tandem   string   `json:"tandem"` // version that recorded
	Model    Model    `json:"model"`
	Settings Settings `json:"settings"`
}

// A Model is what is known of the model.
type Model struct {
	Name        string `json:"name"` // path at the time; it may lie elsewhere now
	Description string `json:"description"`
	Fingerprint string `json:"fingerprint"`
}

// Settings are how answers were made. Only MaxTokens is needed to make them
// again; the others are for people who look for the cause of a difference.
type Settings struct {
	MaxTokens int    `json:"max_tokens"` // of an answer
	Units     string `json:"units"`      // of each chunk
	Kernels   string `json:"kernels"`    // instruction set of CPU units
	KV        string `json:"kv"`
	Streams   int    `json:"streams"`
}

// An Answer is what the model chose for one prompt.
type Answer struct {
	Prompt       string  `json:"prompt"` // its name, of its own in the file
	Kind         string  `json:"kind"`
	PromptTokens []int32 `json:"prompt_tokens"`
	// Tokens are those chosen, with the one that ended the turn, if one did.
	Tokens []int32 `json:"tokens"`
	Hash   string  `json:"hash"` // see Hash
}

// end is the last line.
type end struct {
	Answers int    `json:"answers"`
	SHA256  string `json:"sha256"`
}

// Hash is the SHA-256, in hexadecimal, of ids in decimal with commas between
// them: `printf 1,2,3 | sha256sum`.
func Hash(ids []int32) string {
	var b []byte
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(id), 10)
	}
	return digest(b)
}

func digest(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

// Encode writes a file's bytes. Format and hashes are filled in.
func (f *File) Encode() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	h := f.Header
	h.Format = Format
	if err := e.Encode(h); err != nil {
		return nil, err
	}
	for _, a := range f.Answers {
		a.Hash = Hash(a.Tokens)
		if err := e.Encode(a); err != nil {
			return nil, err
		}
	}
	if err := e.Encode(end{len(f.Answers), digest(b.Bytes())}); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// Write writes a file that appears whole, replacing an older oracle, or not at
// all. A file that is something else is left alone.
func (f *File) Write(path string) (err error) {
	if err := Replaceable(path); err != nil {
		return err
	}
	data, err := f.Encode()
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".oracle-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(data)
	if err == nil {
		err = tmp.Chmod(0o644)
	}
	if err = errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}

// Replaceable refuses a path at which something else than an oracle lies.
func Replaceable(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	begin := make([]byte, len(mark))
	n, err := io.ReadFull(f, begin)
	if n == 0 && err == io.EOF || string(begin) == mark {
		return nil
	}
	return fmt.Errorf("%s exists and is no oracle file; give another name or remove it", path)
}

// mark is how each file begins, whatever its version.
const mark = `{"format":"tandem-oracle/`

// Read reads a file.
func Read(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return Parse(path, data)
}

// Parse reads a file's bytes; name is for errors.
func Parse(name string, data []byte) (*File, error) {
	f := &File{}
	wrong := func(line int, format string, v ...any) (*File, error) {
		return nil, fmt.Errorf("%s: line %d: %w", name, line, fmt.Errorf(format, v...))
	}
	switch {
	case len(data) > MaxSize:
		return nil, fmt.Errorf("%s: larger than %d MiB, so it is no oracle file", name, MaxSize>>20)
	case !bytes.HasPrefix(data, []byte(mark)):
		return nil, fmt.Errorf("%s: no oracle file: it does not begin with %s", name, mark)
	}
	lines := bytes.SplitAfter(data, []byte("\n"))
	if len(lines[len(lines)-1]) > 0 || len(lines) < 3 {
		return wrong(len(lines), "truncated: the last line has no end")
	}
	lines = lines[:len(lines)-1]
	last := len(lines) - 1
	if err := strict(lines[0], &f.Header); err != nil {
		return wrong(1, "%w", err)
	}
	if f.Format != Format {
		return wrong(1, "format %q: this tandem reads %q", f.Format, Format)
	}
	var e end
	if err := strict(lines[last], &e); err != nil {
		return wrong(last+1, "truncated or damaged: not the line with sha256 that ends a file: %w", err)
	}
	if got := digest(data[:len(data)-len(lines[last])]); got != e.SHA256 {
		return wrong(last+1, "damaged: the lines before have SHA-256 %s, not %q as sha256 says", got, e.SHA256)
	}
	if e.Answers != last-1 {
		return wrong(last+1, "answers is %d, but there are %d", e.Answers, last-1)
	}
	if f.Settings.MaxTokens < 1 {
		return wrong(1, "settings.max_tokens is %d; it must be at least 1", f.Settings.MaxTokens)
	}
	seen := map[string]bool{}
	for i, line := range lines[1:last] {
		var a Answer
		if err := strict(line, &a); err != nil {
			return wrong(i+2, "%w", err)
		}
		if err := a.check(f.Settings.MaxTokens); err != nil {
			return wrong(i+2, "%w", err)
		}
		if seen[a.Prompt] {
			return wrong(i+2, "prompt %q is there twice", a.Prompt)
		}
		seen[a.Prompt] = true
		f.Answers = append(f.Answers, a)
	}
	if len(f.Answers) == 0 {
		return wrong(last+1, "there are no answers")
	}
	return f, nil
}

func (a *Answer) check(most int) error {
	switch {
	case a.Prompt == "":
		return errors.New("prompt is empty")
	case len(a.PromptTokens) == 0:
		return fmt.Errorf("prompt %q: prompt_tokens is empty", a.Prompt)
	case len(a.Tokens) == 0 || len(a.Tokens) > most:
		return fmt.Errorf("prompt %q: tokens has %d ids; it must have 1 to settings.max_tokens, %d", a.Prompt, len(a.Tokens), most)
	case a.Hash != Hash(a.Tokens):
		return fmt.Errorf("prompt %q: hash is not that of tokens", a.Prompt)
	}
	for _, ids := range [][]int32{a.PromptTokens, a.Tokens} {
		for _, id := range ids {
			if id < 0 {
				return fmt.Errorf("prompt %q: token %d is negative", a.Prompt, id)
			}
		}
	}
	return nil
}

// strict reads one JSON value with known fields only.
func strict(line []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("something follows the value")
	}
	return nil
}
