package machine

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

const cpuRoot = "sys/devices/system/cpu"

// online returns the numbers of all CPUs that are running, allowed to this
// process or not.
func (t *tree) online() []int {
	cpus, _ := t.cpuList(cpuRoot + "/online")
	return cpus
}

// cpus describes the allowed CPUs.
func (t *tree) cpus(allowed []int) []CPU {
	kinds, capacities := t.kinds()
	var out []CPU
	for _, id := range allowed {
		dir := cpuDir(id) + "/topology/"
		c := CPU{ID: id, Core: -1, Package: -1, Kind: kinds[id], Capacity: int(capacities[id])}
		if n, ok := t.number(dir + "core_id"); ok && n >= 0 {
			c.Core = int(n)
		}
		if n, ok := t.number(dir + "physical_package_id"); ok && n >= 0 {
			c.Package = int(n)
		}
		siblings, ok := t.cpuList(dir + "core_cpus_list")
		if !ok { // before linux 5.3
			siblings, ok = t.cpuList(dir + "thread_siblings_list")
		}
		if ok && slices.Contains(siblings, id) {
			c.Siblings = siblings
		} else {
			t.notes.add("siblings", "the SMT siblings of CPU %d are not known", id)
		}
		out = append(out, c)
	}
	return out
}

func cpuDir(id int) string { return path.Join(cpuRoot, "cpu"+strconv.Itoa(id)) }

// kinds sorts the CPUs of the whole machine into kinds, so that a process
// allowed to use only small cores still knows that they are small. Intel's
// hybrid processors name theirs; elsewhere the capacity tells, as the
// scheduler's figure for it or as the firmware's highest performance level.
func (t *tree) kinds() (map[int]Kind, map[int]int64) {
	all := t.online()
	capacity := map[int]int64{}
	for _, file := range []string{"cpu_capacity", "acpi_cppc/highest_perf"} {
		if len(capacity) > 0 {
			break
		}
		for _, id := range all {
			if n, ok := t.number(cpuDir(id) + "/" + file); ok && 0 < n && n < 1<<31 {
				capacity[id] = n
			}
		}
	}

	kinds := map[int]Kind{}
	large, _ := t.cpuList("sys/devices/cpu_core/cpus")
	small, _ := t.cpuList("sys/devices/cpu_atom/cpus")
	lowPower, _ := t.cpuList("sys/devices/cpu_lowpower/cpus")
	small = append(small, lowPower...)
	if len(large) > 0 && len(small) > 0 {
		for _, id := range large {
			kinds[id] = Performance
		}
		for _, id := range small {
			kinds[id] = Efficiency
		}
		return kinds, capacity
	}
	if split := widestGap(capacity); split > 0 {
		for id, n := range capacity {
			kinds[id] = Efficiency
			if n >= split {
				kinds[id] = Performance
			}
		}
	}
	return kinds, capacity
}

// widestGap returns the least capacity above the widest relative gap between
// capacities, and 0 if no gap is wide enough to be one of kinds: favoured
// cores of one design differ by some percent.
func widestGap(capacity map[int]int64) int64 {
	sizes := slices.Sorted(maps.Values(capacity))
	split, widest := int64(0), 1.25
	for i := 1; i < len(sizes); i++ {
		if gap := float64(sizes[i]) / float64(sizes[i-1]); gap >= widest {
			split, widest = sizes[i], gap
		}
	}
	return split
}

// caches returns the data and unified caches of all running CPUs.
func (t *tree) caches(all []int) []Cache {
	var out []Cache
	seen := map[string]bool{}
	for _, id := range all {
		for i := range 16 {
			dir := fmt.Sprintf("%s/cache/index%d/", cpuDir(id), i)
			level, ok := t.number(dir + "level")
			if !ok {
				break
			}
			kind, _ := t.text(dir + "type")
			if kind == "Instruction" {
				continue
			}
			size, ok := t.cacheSize(dir + "size")
			if !ok || level < 1 || level > 9 {
				t.notes.add("cache", "cache index %d of CPU %d has no usable level and size", i, id)
				continue
			}
			c := Cache{Level: int(level), Bytes: size}
			if n, ok := t.number(dir + "coherency_line_size"); ok && 0 < n && n < 1<<16 {
				c.Line = int(n)
			}
			c.CPUs, _ = t.cpuList(dir + "shared_cpu_list")
			if len(c.CPUs) == 0 {
				t.notes.add("sharing", "which CPUs share the level %d cache of CPU %d is not known", level, id)
				c.CPUs = []int{id}
			}
			key := fmt.Sprint(c.Level, kind, c.CPUs)
			if !seen[key] {
				seen[key] = true
				out = append(out, c)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Cache) int {
		return cmp.Or(cmp.Compare(a.Level, b.Level), cmp.Compare(a.CPUs[0], b.CPUs[0]))
	})
	if len(out) == 0 {
		t.notes.add("caches", "the system tells nothing of its caches")
	}
	return out
}

// cacheSize reads a size such as "32K".
func (t *tree) cacheSize(name string) (int64, bool) {
	s, ok := t.text(name)
	if !ok {
		return 0, false
	}
	digits := strings.TrimRight(s, "KMG")
	scale := map[string]int64{"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}[s[len(digits):]]
	n, err := strconv.ParseInt(digits, 10, 32)
	if err != nil || n <= 0 || scale == 0 {
		t.malformed(name, fmt.Errorf("%.40q is not a size", s))
		return 0, false
	}
	return n * scale, true
}

// model returns the processor's name where /proc/cpuinfo has it, as on x86,
// and the board's name where only the device tree has one, as on arm.
func (t *tree) model() string {
	info, _ := t.text("proc/cpuinfo")
	for _, key := range []string{"model name", "Model", "Hardware"} {
		if name, ok := field(info, key); ok && name != "" {
			return name
		}
	}
	if name, ok := t.text("sys/firmware/devicetree/base/model"); ok && name != "" {
		return name
	}
	t.notes.add("model", "the name of the processor is not known")
	return ""
}
