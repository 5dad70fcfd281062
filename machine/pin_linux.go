package machine

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// Affinity returns the CPUs that the calling thread may run on, ascending.
func Affinity() ([]int, error) {
	// The kernel refuses a mask smaller than its own with EINVAL.
	for size := 1024; size <= maxCPU; size *= 4 {
		set := unix.NewCPUSet(size)
		err := unix.SchedGetaffinityDynamic(0, set)
		if errors.Is(err, unix.EINVAL) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading the thread's affinity: %w", err)
		}
		var cpus []int
		for id := range size {
			if set.IsSet(id) {
				cpus = append(cpus, id)
			}
		}
		return cpus, nil
	}
	return nil, fmt.Errorf("reading the thread's affinity: the system has more than %d CPUs", maxCPU)
}

// Pin restricts the calling thread to some CPUs until the thread ends or is
// pinned again. The caller must have locked its goroutine to the thread with
// runtime.LockOSThread and should leave it locked, so that the thread ends
// with the goroutine; to go on using it, pin it to its earlier Affinity first.
// CPUs that do not exist or are forbidden by the control group are ignored by
// the system unless none is left, which is an error.
func Pin(cpus []int) error {
	if len(cpus) == 0 {
		return errors.New("pinning a thread: no CPUs given")
	}
	last := slices.Max(cpus)
	if first := slices.Min(cpus); first < 0 || last >= maxCPU {
		return fmt.Errorf("pinning a thread: CPU numbers must lie in 0 … %d", maxCPU-1)
	}
	set := unix.NewCPUSet(last + 1)
	for _, id := range cpus {
		set.Set(id)
	}
	if err := unix.SchedSetaffinityDynamic(0, set); err != nil {
		return fmt.Errorf("pinning a thread to CPUs %s: %w", FormatCPUList(cpus), err)
	}
	return nil
}

// PeakRSS returns the largest resident size of this process so far, in bytes;
// false if the system does not tell.
func PeakRSS() (int64, bool) {
	t := &tree{root: os.DirFS("/")}
	status, _ := t.text("proc/self/status")
	s, ok := field(status, "VmHWM")
	if !ok {
		return 0, false
	}
	n, err := kilobytes(s)
	return n, err == nil
}
