//go:build !linux

package machine

import "time"

// Others is how long somebody else than this process has had its CPUs so far;
// false on systems that do not tell.
func Others() (others time.Duration, cpus int, ok bool) { return 0, 0, false }
