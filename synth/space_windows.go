package synth

import "golang.org/x/sys/windows"

// freeSpace returns how many bytes may be written to the disk of a folder; ok is false where that is not known.
func freeSpace(folder string) (free int64, ok bool) {
	path, err := windows.UTF16PtrFromString(folder)
	if err != nil {
		return 0, false
	}
	var n uint64
	if err := windows.GetDiskFreeSpaceEx(path, &n, nil, nil); err != nil {
		return 0, false
	}
	return int64(n), true
}
