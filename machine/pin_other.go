//go:build !linux

package machine

import "fmt"

// Affinity returns ErrUnsupported on this system.
func Affinity() ([]int, error) {
	return nil, fmt.Errorf("reading the thread's affinity: %w", ErrUnsupported)
}

// Pin returns ErrUnsupported on this system.
func Pin(cpus []int) error {
	return fmt.Errorf("pinning a thread to CPUs %s: %w", FormatCPUList(cpus), ErrUnsupported)
}

// PeakRSS returns false: this system is not asked.
func PeakRSS() (int64, bool) { return 0, false }
