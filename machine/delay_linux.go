package machine

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// RunDelay is how long the threads of this process have been ready to run but
// not running, because something else had their CPU; false if the system does
// not tell. The difference over a measurement says how much it was disturbed.
func RunDelay() (time.Duration, bool) {
	files, err := filepath.Glob("/proc/self/task/*/schedstat")
	if err != nil || len(files) == 0 {
		return 0, false
	}
	var sum time.Duration
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		fields := strings.Fields(string(data)) // time on a CPU, time waiting for one, slices
		if len(fields) < 2 {
			return 0, false
		}
		n, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			return 0, false
		}
		sum += time.Duration(n)
	}
	return sum, true
}
