//go:build !linux

package cpu

import "unsafe"

// memory is a chunk's weights.
type memory struct {
	data []byte
}

func allocate(n int64) (memory, error) {
	b := make([]byte, n+63)
	skip := -int(uintptr(unsafe.Pointer(&b[0]))) & 63
	return memory{b[skip : skip+int(n)]}, nil
}

func (memory) free() error { return nil }
