package cpu

import "golang.org/x/sys/unix"

// memory is a chunk's weights: anonymous pages outside the Go heap, huge ones
// where the system grants them. Decode reads 32.8 GB/s from huge pages and 27.6
// from small ones on one thread (measured on a two-core Zen 4).
type memory struct {
	data []byte
}

func allocate(n int64) (memory, error) {
	if n == 0 {
		return memory{}, nil
	}
	data, err := unix.Mmap(-1, 0, int(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return memory{}, err
	}
	_ = unix.Madvise(data, unix.MADV_HUGEPAGE) // advice: a system without huge pages goes without
	return memory{data}, nil
}

func (m memory) free() error {
	if m.data == nil {
		return nil
	}
	return unix.Munmap(m.data)
}
