package machine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxCPU bounds CPU numbers, so that a list such as "0-999999999" in a flag or
// a damaged file does not fill memory. Linux allows 8192 at most today.
const maxCPU = 1 << 16

// ParseCPUList reads a list of CPU numbers such as "0-3,7", the form that
// linux, taskset and tandem's flags use. The result is ascending without
// repetition, and empty for an empty list.
func ParseCPUList(s string) ([]int, error) {
	s = strings.TrimSpace(s)
	if s == "" {
		return nil, nil
	}
	var cpus []int
	for item := range strings.SplitSeq(s, ",") {
		first, last, isRange := strings.Cut(strings.TrimSpace(item), "-")
		lo, err := parseCPU(first)
		if err != nil {
			return nil, fmt.Errorf("CPU list %q: %w", s, err)
		}
		hi := lo
		if isRange {
			if hi, err = parseCPU(last); err != nil {
				return nil, fmt.Errorf("CPU list %q: %w", s, err)
			}
		}
		if hi < lo {
			return nil, fmt.Errorf("CPU list %q: range %q runs backwards", s, item)
		}
		if len(cpus) > maxCPU {
			return nil, fmt.Errorf("CPU list of %d bytes names more than %d CPUs", len(s), maxCPU)
		}
		for id := lo; id <= hi; id++ {
			cpus = append(cpus, id)
		}
	}
	slices.Sort(cpus)
	return slices.Compact(cpus), nil
}

func parseCPU(s string) (int, error) {
	id, err := strconv.ParseUint(s, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%q is not a CPU number; write numbers and ranges such as 0-3,7", s)
	}
	if id >= maxCPU {
		return 0, fmt.Errorf("CPU %d is beyond the largest number, %d", id, maxCPU-1)
	}
	return int(id), nil
}

// FormatCPUList writes CPU numbers as ParseCPUList reads them, with runs
// shortened to ranges: "0-3,7".
func FormatCPUList(cpus []int) string {
	ids := slices.Clone(cpus)
	slices.Sort(ids)
	ids = slices.Compact(ids)
	var b strings.Builder
	for i := 0; i < len(ids); {
		j := i
		for j+1 < len(ids) && ids[j+1] == ids[j]+1 {
			j++
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(ids[i]))
		if j > i {
			fmt.Fprintf(&b, "-%d", ids[j])
		}
		i = j + 1
	}
	return b.String()
}
