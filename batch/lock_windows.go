package batch

import (
	"errors"
	"math"
	"os"

	"golang.org/x/sys/windows"
)

// lock keeps other processes, and other files of this one, from locking the
// file until it is closed or the process ends. It locks a byte far behind the
// end, so that others can read the answers.
func lock(f *os.File) error {
	at := &windows.Overlapped{Offset: math.MaxUint32, OffsetHigh: math.MaxInt32}
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return errLocked
	}
	return os.NewSyscallError("LockFileEx", err)
}
