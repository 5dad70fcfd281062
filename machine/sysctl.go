package machine

import (
	"fmt"
	"runtime"
)

// A sysctl reads named values of a darwin system.
type sysctl interface {
	number(name string) (uint64, error)
	text(name string) (string, error)
}

// fromSysctl describes a darwin system. CPUs are numbered with the performance
// cores first: the system has no public numbers, since it pins no threads. It
// is built on all systems, so that its tests run on all.
func fromSysctl(s sysctl, p process) *Machine {
	var n notes
	n.add("pin", "darwin does not let a process choose cores: CPU numbers are nominal and threads are not pinned")
	n.add("available", "darwin: available memory is not known")
	m := &Machine{OS: "darwin", Arch: p.arch, ISA: p.isa, PageSize: p.pageSize}
	m.Model, _ = s.text("machdep.cpu.brand_string")
	if size, err := s.number("hw.memsize"); err == nil && size < 1<<60 {
		m.Memory.Total = int64(size)
	} else {
		n.add("memory", "the size of the memory is not known: sysctl hw.memsize gave no size")
	}
	line, _ := s.number("hw.cachelinesize")

	levels, err := s.number("hw.nperflevels")
	if err != nil || levels == 0 || levels > 8 {
		n.add("levels", "the kinds of cores are not known: sysctl hw.nperflevels gave no count")
		levels = 0
	}
	for level := range levels {
		key := func(name string) string { return fmt.Sprintf("hw.perflevel%d.%s", level, name) }
		count, err := s.number(key("logicalcpu"))
		if err != nil || count == 0 || count > maxCPU {
			n.add("count", "the cores of level %d are not known: sysctl %s gave no count", level, key("logicalcpu"))
			continue
		}
		kind := Uniform
		if levels > 1 {
			kind = Performance
			if level > 0 {
				kind = Efficiency
			}
		}
		first := len(m.CPUs)
		for range count {
			m.CPUs = append(m.CPUs, CPU{ID: len(m.CPUs), Core: -1, Package: -1, Kind: kind})
		}
		m.Caches = append(m.Caches, levelCaches(s, key, first, int(count), int(line))...)
	}
	if len(m.CPUs) == 0 {
		for _, id := range firstCPUs(p.count) {
			m.CPUs = append(m.CPUs, CPU{ID: id, Core: -1, Package: -1})
		}
	}
	if len(m.Caches) == 0 {
		n.add("caches", "the system tells nothing of its caches")
	}
	m.Notes = n.list()
	return m
}

// levelCaches returns the L1 and L2 caches of the cores of one performance
// level, which are numbered from first.
func levelCaches(s sysctl, key func(string) string, first, count, line int) []Cache {
	var out []Cache
	add := func(level int, size uint64, share int) {
		for start := 0; start < count; start += share {
			var cpus []int
			for i := start; i < min(start+share, count); i++ {
				cpus = append(cpus, first+i)
			}
			out = append(out, Cache{Level: level, Bytes: int64(size), Line: line, CPUs: cpus})
		}
	}
	if size, err := s.number(key("l1dcachesize")); err == nil && size > 0 && size < 1<<40 {
		add(1, size, 1)
	}
	share, err := s.number(key("cpusperl2"))
	if err != nil || share == 0 || share > uint64(count) {
		share = uint64(count)
	}
	if size, err := s.number(key("l2cachesize")); err == nil && size > 0 && size < 1<<40 {
		add(2, size, int(share))
	}
	return out
}

// fromRuntime describes a system of which only the runtime's figures are known.
func fromRuntime(p process) *Machine {
	m := &Machine{OS: runtime.GOOS, Arch: p.arch, ISA: p.isa, PageSize: p.pageSize}
	for _, id := range firstCPUs(p.count) {
		m.CPUs = append(m.CPUs, CPU{ID: id, Core: -1, Package: -1})
	}
	m.Notes = []string{fmt.Sprintf(
		"%s: kinds of cores, SMT siblings, caches, memory, quotas and the processor's name are not known, and threads are not pinned", runtime.GOOS)}
	return m
}
