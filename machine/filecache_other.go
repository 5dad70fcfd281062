//go:build !linux

package machine

import (
	"errors"
	"fmt"
	"runtime"
)

// DropFileCache asks the system to take a file out of its cache of pages; this
// one has no such call for a file.
func DropFileCache(path string) error {
	return fmt.Errorf("dropping %s from the page cache: %w on %s", path, errors.ErrUnsupported, runtime.GOOS)
}

// FileCached is how many bytes of a file are in the system's cache of pages;
// this one is not asked.
func FileCached(path string) (int64, error) {
	return 0, fmt.Errorf("what of %s is in the page cache: %w on %s", path, errors.ErrUnsupported, runtime.GOOS)
}
