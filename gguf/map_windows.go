package gguf

import (
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

// mapFile maps size bytes of the file read-only; size is not 0.
func mapFile(file *os.File, size int) (*mapping, error) {
	section, err := windows.CreateFileMapping(windows.Handle(file.Fd()), nil, windows.PAGE_READONLY, 0, 0, nil)
	if err != nil {
		return nil, err
	}
	defer windows.CloseHandle(section) // the view keeps it
	addr, err := windows.MapViewOfFile(section, windows.FILE_MAP_READ, 0, 0, uintptr(size))
	if err != nil {
		return nil, err
	}
	// The address comes from the system, not from Go's heap; read through a pointer to it so that vet can tell.
	data := unsafe.Slice(*(**byte)(unsafe.Pointer(&addr)), size)
	return &mapping{data: data, unmap: func() error { return windows.UnmapViewOfFile(addr) }}, nil
}
