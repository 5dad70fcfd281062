// Package machine tells what this process may use of the machine it runs on:
// which logical CPUs and how much of their time, their kinds, SMT siblings and
// caches, the instruction sets, and memory bounded by the limits of the
// control group. It also pins threads and sets their scheduling class.
//
// What the system does not tell, or tells in a form that cannot be read, is
// absent (the zero value of its field) and named in Machine.Notes; detection
// as a whole does not fail for it. On linux everything comes from /proc, /sys
// and the affinity mask; on darwin from sysctl; elsewhere only the count of
// CPUs and the instruction sets are known.
//
// A Machine is a snapshot that its caller owns. The package keeps no state,
// measures no speed, and its functions may be called from any goroutine.
package machine

import (
	"math"
	"slices"
)

// Kind is the kind of a core on a machine that has more than one kind.
type Kind string

// The kinds of cores. A machine with three sizes of cores has them sorted into
// these two at the widest relative gap of their capacity.
const (
	Uniform     Kind = ""     // the machine has one kind of core, or does not tell
	Performance Kind = "perf" // the large cores
	Efficiency  Kind = "eff"  // the small cores
)

// A CPU is one logical CPU, what the system schedules a thread on.
type CPU struct {
	ID       int   // the system's number
	Core     int   // number of the physical core within its package; -1 unknown
	Package  int   // number of the package (socket); -1 unknown
	Kind     Kind  // kind of its core
	Capacity int   // relative capacity as the system states it, in the system's own scale; 0 unknown
	Siblings []int // CPUs of the same physical core, itself included, ascending; nil unknown
}

// A Cache is one data or unified cache.
type Cache struct {
	Level int   // 1, 2, 3 …
	Bytes int64 // size
	Line  int   // line size in bytes; 0 unknown
	CPUs  []int // CPUs that share it, ascending; nil unknown
}

// Memory holds sizes in bytes; 0 is unknown.
type Memory struct {
	Total     int64 // what this process could ever use: the machine's memory or the control group's limit, whichever is less
	Available int64 // what could be allocated now without swapping, under the same bound
	Limit     int64 // the control group's limit; 0 if there is none
}

// A Machine is what this process may use.
type Machine struct {
	OS, Arch string   // as runtime.GOOS and runtime.GOARCH
	Model    string   // name of the processor, or of the board; "" unknown
	ISA      []string // instruction sets that kernels may care about, ascending: "avx2", "fma", "asimddp" …
	CPUs     []CPU    // the CPUs that the affinity mask allows, ascending; at least one
	Quota    float64  // CPUs' worth of time that the control group grants; 0 if unlimited
	Caches   []Cache  // data and unified caches, by level and then first CPU, of the whole machine
	Memory   Memory
	PageSize int      // bytes
	Notes    []string // what could not be learnt, one sentence each
}

// Threads returns how many threads can run at once: the number of allowed
// CPUs, but no more than the quota rounded up, and at least 1.
func (m *Machine) Threads() int {
	n := len(m.CPUs)
	if m.Quota > 0 {
		n = min(n, int(math.Ceil(min(m.Quota, float64(n)))))
	}
	return max(n, 1)
}

// Usable returns the numbers of the CPUs to run on: the lowest-numbered
// Threads of the allowed ones, ascending.
func (m *Machine) Usable() []int {
	return m.pick(func(CPU) bool { return true })
}

// OfKind returns the lowest-numbered allowed CPUs of kind k, at most Threads
// of them, ascending. It is empty when the machine has or tells no such kind.
func (m *Machine) OfKind(k Kind) []int {
	return m.pick(func(c CPU) bool { return c.Kind == k })
}

func (m *Machine) pick(want func(CPU) bool) []int {
	var ids []int
	for _, c := range m.CPUs {
		if want(c) && len(ids) < m.Threads() {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// Kinds returns the kinds of the allowed CPUs, performance first; it is empty
// when the machine has or tells only one kind.
func (m *Machine) Kinds() []Kind {
	var kinds []Kind
	for _, k := range []Kind{Performance, Efficiency} {
		if len(m.OfKind(k)) > 0 {
			kinds = append(kinds, k)
		}
	}
	return kinds
}

// OnePerCore returns those of cpus that are the first of their physical core
// in the order given, so that no two share a core. CPUs whose siblings are
// unknown count as cores of their own.
func (m *Machine) OnePerCore(cpus []int) []int {
	var kept []int
	for _, id := range cpus {
		c, _ := m.CPU(id)
		if !slices.ContainsFunc(c.Siblings, func(s int) bool { return slices.Contains(kept, s) }) {
			kept = append(kept, id)
		}
	}
	return kept
}

// CPU returns the allowed CPU with this number.
func (m *Machine) CPU(id int) (CPU, bool) {
	i := slices.IndexFunc(m.CPUs, func(c CPU) bool { return c.ID == id })
	if i < 0 {
		return CPU{ID: id, Core: -1, Package: -1}, false
	}
	return m.CPUs[i], true
}

// Cache returns the cache of a level that a CPU uses.
func (m *Machine) Cache(cpu, level int) (Cache, bool) {
	i := slices.IndexFunc(m.Caches, func(c Cache) bool {
		return c.Level == level && slices.Contains(c.CPUs, cpu)
	})
	if i < 0 {
		return Cache{}, false
	}
	return m.Caches[i], true
}

// Has reports whether the processor has an instruction set, by its name in
// Machine.ISA.
func (m *Machine) Has(isa string) bool { return slices.Contains(m.ISA, isa) }
