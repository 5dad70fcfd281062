package machine

import (
	"io/fs"
	"slices"
)

// A process is what a linux system tells through calls and not through files.
type process struct {
	arch     string
	isa      []string
	affinity []int // CPUs of the affinity mask; nil if the call failed
	count    int   // CPUs by the runtime's count, the last resort
	pageSize int
}

// fromTree describes the linux system whose files lie below root. It is built
// on all systems, so that its tests run on all.
func fromTree(root fs.FS, p process) *Machine {
	t := &tree{root: root}
	allowed := t.allowed(p)
	all := t.online()
	if len(all) == 0 {
		all = allowed
	}
	m := &Machine{
		OS:       "linux",
		Arch:     p.arch,
		Model:    t.model(),
		ISA:      p.isa,
		CPUs:     t.cpus(allowed),
		Quota:    t.quota(),
		Caches:   t.caches(all),
		Memory:   t.memory(),
		PageSize: p.pageSize,
	}
	m.Notes = t.notes.list()
	return m
}

// allowed returns the CPUs this process may run on by the best source there is.
func (t *tree) allowed(p process) []int {
	if len(p.affinity) > 0 {
		return slices.Sorted(slices.Values(p.affinity))
	}
	status, _ := t.text("proc/self/status")
	if s, ok := field(status, "Cpus_allowed_list"); ok {
		cpus, err := ParseCPUList(s)
		if err == nil && len(cpus) > 0 {
			return cpus
		}
	}
	t.notes.add("affinity", "the affinity mask cannot be read: all running CPUs are taken as allowed")
	if cpus := t.online(); len(cpus) > 0 {
		return cpus
	}
	return firstCPUs(p.count)
}

// firstCPUs returns the numbers 0 … n-1, at least one.
func firstCPUs(n int) []int {
	cpus := make([]int, max(n, 1))
	for i := range cpus {
		cpus[i] = i
	}
	return cpus
}
