package cpu

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tandemrun/tandem/machine"
)

// Cores reads the name of a CPU unit and returns the system's numbers of its
// cores: "cpu" is every core this process may use, "cpu:0" the first of them,
// "cpu:0-2" the first three, "cpu:0+2" the first and third, and "cpu:perf" and
// "cpu:eff" those of a kind, where the system tells kinds.
func Cores(name string, m *machine.Machine) ([]int, error) {
	usable := m.Usable()
	rest, ok := strings.CutPrefix(name, "cpu")
	switch {
	case !ok:
		return nil, fmt.Errorf("unit %q is not a CPU unit", name)
	case rest == "":
		return usable, nil
	case rest == ":perf" || rest == ":eff":
		cores := m.OfKind(machine.Kind(rest[1:]))
		if len(cores) == 0 {
			return nil, fmt.Errorf("unit %s: this machine tells of no cores of that kind; use cpu, or cpu:0 to cpu:%d", name, len(usable)-1)
		}
		return cores, nil
	case rest[0] != ':':
		return nil, fmt.Errorf("unit %q: a CPU unit is cpu, cpu:0, cpu:0-3, cpu:perf or cpu:eff", name)
	}
	var cores []int
	seen := map[int]bool{}
	for _, part := range strings.Split(rest[1:], "+") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		lo, err1 := strconv.Atoi(from)
		hi, err2 := strconv.Atoi(to)
		if err1 != nil || err2 != nil || lo < 0 || lo > hi {
			return nil, fmt.Errorf("unit %q: %q is not a core or a range of cores such as 0-3", name, part)
		}
		if hi >= len(usable) {
			return nil, fmt.Errorf("unit %s: there is no core %d; this process may use %d, numbered from 0", name, hi, len(usable))
		}
		for i := lo; i <= hi; i++ {
			if seen[i] {
				return nil, fmt.Errorf("unit %s: core %d is named twice", name, i)
			}
			seen[i] = true
			cores = append(cores, usable[i])
		}
	}
	return cores, nil
}
