//go:build unix && !solaris && !illumos && !aix

package batch

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lock keeps other processes, and other files of this one, from locking the
// file until it is closed or the process ends.
func lock(f *os.File) error {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EWOULDBLOCK):
			return errLocked
		case err != nil:
			return os.NewSyscallError("flock", err)
		}
		return nil
	}
}
