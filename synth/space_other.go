//go:build !linux && !darwin && !freebsd && !windows

package synth

// freeSpace would return how many bytes may be written to the disk of a folder; it is not known here.
func freeSpace(string) (free int64, ok bool) { return 0, false }
