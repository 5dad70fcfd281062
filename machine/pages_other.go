//go:build !linux

package machine

import "unsafe"

// Pages is memory for what is read in one go, such as weights: zero at first.
// Data begins at a multiple of 64.
type Pages struct {
	Data []byte
}

// NewPages allocates n bytes.
func NewPages(n int64) (Pages, error) {
	b := make([]byte, n+63)
	skip := -int(uintptr(unsafe.Pointer(&b[0]))) & 63
	return Pages{b[skip : skip+int(n)]}, nil
}

// Free does nothing: the collector takes the memory back.
func (Pages) Free() error { return nil }
