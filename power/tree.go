package power

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A tree is the files of a linux system: "/" in life, recorded ones in tests.
type tree struct{ root fs.FS }

// maxFile bounds what is read of a file of sysfs, where a page is the most.
const maxFile = 4096

// text is the trimmed content of a file.
func (t tree) text(name string) (string, error) {
	f, err := t.root.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return "", err
	}
	if !utf8.Valid(data) {
		return "", fmt.Errorf("/%s: it is not text", name)
	}
	return strings.TrimSpace(string(data)), nil
}

// number is the integer in a file.
func (t tree) number(name string) (int64, error) {
	s, err := t.text(name)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("/%s: %.40q is not a number", name, s)
	}
	return n, nil
}

// list is the names in a folder in the order of the numbers in them; none if
// there is no such folder.
func (t tree) list(folder string) []string {
	entries, err := fs.ReadDir(t.root, folder)
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	slices.SortFunc(out, func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return strings.Compare(a, b)
	})
	return out
}

// numbered reports whether a name is a prefix and a number.
func numbered(name, prefix string) bool {
	digits, ok := strings.CutPrefix(name, prefix)
	_, err := strconv.ParseUint(digits, 10, 32)
	return ok && err == nil
}

// refused says what a person can do about a file that may not be read.
func refused(err error, what string) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("permission refused: %s; run as root, or let root make it readable", what)
	}
	return err
}
