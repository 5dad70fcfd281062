package machine

import (
	"os"
	"runtime"
)

// Detect describes the machine. It takes the affinity mask of the calling
// thread, so call it before pinning. It does not fail on this system: what
// cannot be read is absent and noted.
func Detect() (*Machine, error) {
	affinity, _ := Affinity() // nil falls back to the files, with a note
	return fromTree(os.DirFS("/"), process{
		arch:     runtime.GOARCH,
		isa:      instructionSets(),
		affinity: affinity,
		count:    runtime.NumCPU(),
		pageSize: os.Getpagesize(),
	}), nil
}
