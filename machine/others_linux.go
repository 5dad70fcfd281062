package machine

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Others is how long, so far and added up over the CPUs that this process may
// use, somebody else than this process has had them: other processes, the
// kernel, or the host of a virtual machine; false if the system does not tell.
// cpus is the number of those CPUs. The difference over a time says how much was
// going on beside; it is exact to about 10 ms for each CPU.
func Others() (others time.Duration, cpus int, ok bool) {
	allowed, err := Affinity()
	if err != nil {
		return 0, 0, false
	}
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0, false
	}
	ticks, ok := busyTicks(string(stat), allowed)
	var own unix.Rusage
	if !ok || unix.Getrusage(unix.RUSAGE_SELF, &own) != nil {
		return 0, 0, false
	}
	used := time.Duration(own.Utime.Nano() + own.Stime.Nano())
	return time.Duration(ticks)*tick - used, len(allowed), true
}
