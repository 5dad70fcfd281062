package machine

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxFile bounds what is read of one system file. /proc/cpuinfo of a machine
// with a thousand CPUs has about two million bytes.
const maxFile = 8 << 20

// tree reads the files of a linux system below a root, which is "/" in life
// and a recorded tree in tests. A file that is not there is silently absent; a
// file that cannot be understood is absent with a note.
type tree struct {
	root  fs.FS
	notes notes
}

// text returns the trimmed content of a file.
func (t *tree) text(name string) (string, bool) {
	data, err := t.read(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", false
	case err != nil:
		t.malformed(name, err)
		return "", false
	case !utf8.Valid(data):
		t.malformed(name, errors.New("it is not text"))
		return "", false
	}
	// Strings of the device tree end in a zero byte.
	return strings.Trim(string(data), "\x00 \t\r\n"), true
}

func (t *tree) read(name string) ([]byte, error) {
	f, err := t.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxFile))
}

// number returns the integer that a file holds.
func (t *tree) number(name string) (int64, bool) {
	s, ok := t.text(name)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		t.malformed(name, fmt.Errorf("%.40q is not a number", s))
		return 0, false
	}
	return n, true
}

// cpuList returns the CPU list that a file holds.
func (t *tree) cpuList(name string) ([]int, bool) {
	s, ok := t.text(name)
	if !ok {
		return nil, false
	}
	cpus, err := ParseCPUList(s)
	if err != nil {
		t.malformed(name, err)
		return nil, false
	}
	return cpus, true
}

// malformed notes a file that exists and cannot be used. Files of the same
// name in different folders share a note.
func (t *tree) malformed(name string, err error) {
	t.notes.add(path.Base(name), "/%s cannot be used: %v", name, err)
}

// field returns the value of the first "key: value" line of a file such as
// /proc/meminfo, where keys may be followed by tabs.
func field(text, key string) (string, bool) {
	for line := range strings.Lines(text) {
		k, v, ok := strings.Cut(line, ":")
		if ok && strings.TrimSpace(k) == key {
			return strings.TrimSpace(v), true
		}
	}
	return "", false
}

// kilobytes reads a value such as "24684084 kB" as bytes.
func kilobytes(s string) (int64, error) {
	digits, ok := strings.CutSuffix(s, " kB")
	n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
	if !ok || err != nil || n < 0 || n > 1<<53 {
		return 0, fmt.Errorf("%.40q is not a size in kB", s)
	}
	return n * 1024, nil
}
