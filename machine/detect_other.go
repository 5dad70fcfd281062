//go:build !linux && !darwin

package machine

import (
	"os"
	"runtime"
)

// Detect describes the machine. It does not fail on this system.
func Detect() (*Machine, error) {
	return fromRuntime(process{
		arch:     runtime.GOARCH,
		isa:      instructionSets(),
		count:    runtime.NumCPU(),
		pageSize: os.Getpagesize(),
	}), nil
}
