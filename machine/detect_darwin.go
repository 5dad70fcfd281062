package machine

import (
	"encoding/binary"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Detect describes the machine. It does not fail on this system.
func Detect() (*Machine, error) {
	return fromSysctl(system{}, process{
		arch:     runtime.GOARCH,
		isa:      instructionSets(),
		count:    runtime.NumCPU(),
		pageSize: os.Getpagesize(),
	}), nil
}

// system asks the running system.
type system struct{}

func (system) text(name string) (string, error) { return unix.Sysctl(name) }

// number reads a value of 4 or 8 bytes: both widths occur.
func (system) number(name string) (uint64, error) {
	b, err := unix.SysctlRaw(name)
	if err != nil {
		return 0, fmt.Errorf("sysctl %s: %w", name, err)
	}
	switch len(b) {
	case 4:
		return uint64(binary.NativeEndian.Uint32(b)), nil
	case 8:
		return binary.NativeEndian.Uint64(b), nil
	}
	return 0, fmt.Errorf("sysctl %s: a value of %d bytes is no number", name, len(b))
}
