package machine

import (
	"testing"
	"unsafe"
)

// Pages are zero, aligned, writable to the last byte and can be given back.
func TestPages(t *testing.T) {
	for _, n := range []int64{0, 1, 4097, 3 << 20} {
		p, err := NewPages(n)
		if err != nil {
			t.Fatal(err)
		}
		if int64(len(p.Data)) != n {
			t.Fatalf("%d bytes, not %d", len(p.Data), n)
		}
		if n > 0 {
			if uintptr(unsafe.Pointer(&p.Data[0]))%64 != 0 {
				t.Errorf("%d bytes do not begin at a multiple of 64", n)
			}
			if p.Data[0] != 0 || p.Data[n-1] != 0 {
				t.Errorf("%d bytes are not zero", n)
			}
			p.Data[n-1] = 1
		}
		if err := p.Free(); err != nil {
			t.Error(err)
		}
	}
}
