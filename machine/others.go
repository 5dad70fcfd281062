package machine

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// busyTicks adds up, of the text of /proc/stat, the ticks in which some CPUs
// were busy or taken by the host of a virtual machine; false if a CPU is not
// there or its line cannot be read.
func busyTicks(stat string, cpus []int) (int64, bool) {
	var sum int64
	found := 0
	for line := range strings.Lines(stat) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		digits, ok := strings.CutPrefix(fields[0], "cpu")
		id, err := strconv.Atoi(digits)
		if !ok || err != nil || !slices.Contains(cpus, id) {
			continue
		}
		// user nice system idle iowait irq softirq steal; guests are within user
		for i, field := range fields[1:] {
			if i == 3 || i == 4 || i > 7 {
				continue
			}
			n, err := strconv.ParseInt(field, 10, 64)
			if err != nil || n < 0 {
				return 0, false
			}
			sum += n
		}
		found++
	}
	return sum, found == len(cpus) && found > 0
}

// tick is the unit of /proc/stat (USER_HZ, which is 100 on all systems that
// matter here).
const tick = 10 * time.Millisecond
