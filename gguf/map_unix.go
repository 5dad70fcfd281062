//go:build unix

package gguf

import (
	"os"

	"golang.org/x/sys/unix"
)

// mapFile maps size bytes of the file read-only; size is not 0.
func mapFile(file *os.File, size int) (*mapping, error) {
	data, err := unix.Mmap(int(file.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return &mapping{
		data:  data,
		unmap: func() error { return unix.Munmap(data) },
		drop:  func(lo, hi int) { _ = unix.Madvise(data[lo:hi], unix.MADV_DONTNEED) }, // advice: it may be ignored
	}, nil
}
