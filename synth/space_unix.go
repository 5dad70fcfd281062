//go:build linux || darwin || freebsd

package synth

import "golang.org/x/sys/unix"

// freeSpace returns how many bytes may be written to the disk of a folder; ok is false where that is not known.
func freeSpace(folder string) (free int64, ok bool) {
	var s unix.Statfs_t
	if err := unix.Statfs(folder, &s); err != nil {
		return 0, false
	}
	return int64(s.Bavail) * int64(s.Bsize), true
}
