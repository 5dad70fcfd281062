package machine

import (
	"fmt"
	"math/bits"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// DropFileCache asks the system to take a file out of its cache of pages. It is
// advice: pages that a process has mapped stay, and so do all of a file system
// that is in memory. [FileCached] tells what became of it.
func DropFileCache(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		return fmt.Errorf("dropping %s from the page cache: %w", path, err)
	}
	return nil
}

// FileCached is how many bytes of a file are in the system's cache of pages.
// Linux tells only who owns the file or may write to it.
func FileCached(path string) (int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	if info.Size() == 0 {
		return 0, nil
	}
	data, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return 0, fmt.Errorf("mapping %s: %w", path, err)
	}
	defer func() { _ = unix.Munmap(data) }()
	page := os.Getpagesize()
	in := make([]byte, (len(data)+page-1)/page)
	if _, _, e := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&data[0])), uintptr(len(data)), uintptr(unsafe.Pointer(&in[0]))); e != 0 {
		return 0, fmt.Errorf("asking which pages of %s are in memory: %w", path, e)
	}
	pages := 0
	for _, x := range in {
		pages += bits.OnesCount8(x & 1)
	}
	return min(int64(pages)*int64(page), info.Size()), nil
}
