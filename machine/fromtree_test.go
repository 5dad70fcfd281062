package machine

import (
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// recorded reads a tree of testdata: a comment, then "-- path --" before the
// content of each file.
func recorded(t testing.TB, name string) fstest.MapFS {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	fsys := fstest.MapFS{}
	var file *fstest.MapFile
	for line := range strings.Lines(string(data)) {
		if path, ok := strings.CutPrefix(line, "-- "); ok {
			file = &fstest.MapFile{}
			fsys[strings.TrimSuffix(strings.TrimSpace(path), " --")] = file
		} else if file != nil {
			file.Data = append(file.Data, line...)
		}
	}
	return fsys
}

func ids(m *Machine) []int {
	var out []int
	for _, c := range m.CPUs {
		out = append(out, c.ID)
	}
	return out
}

func TestBoard(t *testing.T) {
	tree := recorded(t, "board")
	name := tree["sys/firmware/devicetree/base/model"]
	name.Data = append(name.Data, 0) // as the kernel gives it
	m := fromTree(tree, process{arch: "arm64", affinity: firstCPUs(8), pageSize: 4096})
	if m.Model != "Example Board 5" {
		t.Errorf("model %q", m.Model)
	}
	for kind, want := range map[Kind][]int{Performance: {4, 5, 6, 7}, Efficiency: {0, 1, 2, 3}, Uniform: nil} {
		if got := m.OfKind(kind); !slices.Equal(got, want) {
			t.Errorf("CPUs of kind %q: %v, want %v", kind, got, want)
		}
	}
	if got := m.Kinds(); !slices.Equal(got, []Kind{Performance, Efficiency}) {
		t.Errorf("kinds %v", got)
	}
	want := CPU{ID: 6, Core: 0, Package: 2, Kind: Performance, Capacity: 1024, Siblings: []int{6}}
	if got, ok := m.CPU(6); !ok || !cmp.Equal(got, want) {
		t.Errorf("CPU 6: %+v, want %+v", got, want)
	}
	if len(m.Caches) != 8+8+1 {
		t.Errorf("%d caches, want 8 of level 1, 8 of level 2 and 1 of level 3", len(m.Caches))
	}
	if c, ok := m.Cache(5, 1); !ok || c.Bytes != 64<<10 || c.Line != 64 {
		t.Errorf("level 1 cache of CPU 5: %+v", c)
	}
	if c, ok := m.Cache(5, 3); !ok || c.Bytes != 3<<20 || len(c.CPUs) != 8 {
		t.Errorf("level 3 cache of CPU 5: %+v", c)
	}
	if m.Threads() != 8 || m.Quota != 0 {
		t.Errorf("%d threads with quota %g, want 8 without a quota", m.Threads(), m.Quota)
	}
	if want := (Memory{Total: 8000000 << 10, Available: 6000000 << 10}); m.Memory != want {
		t.Errorf("memory %+v, want %+v", m.Memory, want)
	}
	if len(m.Notes) != 0 {
		t.Errorf("notes %q", m.Notes)
	}
}

// A process that may use only small cores still knows that they are small.
func TestBoardSmallCoresOnly(t *testing.T) {
	m := fromTree(recorded(t, "board"), process{affinity: []int{2, 1}})
	if got := m.OfKind(Efficiency); !slices.Equal(got, []int{1, 2}) {
		t.Errorf("small cores %v, want 1 and 2", got)
	}
	if got := m.Kinds(); !slices.Equal(got, []Kind{Efficiency}) {
		t.Errorf("kinds %v", got)
	}
}

func TestHybrid(t *testing.T) {
	m := fromTree(recorded(t, "hybrid"), process{affinity: firstCPUs(8)})
	if got := m.OfKind(Performance); !slices.Equal(got, []int{0, 1, 2, 3}) {
		t.Errorf("large %v", got)
	}
	if got := m.OfKind(Efficiency); !slices.Equal(got, []int{4, 5, 6, 7}) {
		t.Errorf("small %v", got)
	}
	if got := m.OnePerCore(m.Usable()); !slices.Equal(got, []int{0, 2, 4, 5, 6, 7}) {
		t.Errorf("one per core %v", got)
	}
	if c, ok := m.Cache(6, 2); !ok || c.Bytes != 2<<20 || !slices.Equal(c.CPUs, []int{4, 5, 6, 7}) {
		t.Errorf("level 2 cache of CPU 6: %+v", c)
	}
	if m.Model != "Example(R) Core(TM) i5" || len(m.Notes) != 0 {
		t.Errorf("model %q, notes %q", m.Model, m.Notes)
	}

	// Without Intel's own lists the performance levels tell the same.
	tree := recorded(t, "hybrid")
	delete(tree, "sys/devices/cpu_atom/cpus")
	m = fromTree(tree, process{affinity: firstCPUs(8)})
	if got := m.OfKind(Efficiency); !slices.Equal(got, []int{4, 5, 6, 7}) {
		t.Errorf("small by performance level: %v", got)
	}
}

func TestContainer(t *testing.T) {
	m := fromTree(recorded(t, "container"), process{affinity: []int{8, 9, 10, 11}})
	if m.Quota != 1.5 || m.Threads() != 2 || !slices.Equal(m.Usable(), []int{8, 9}) {
		t.Errorf("quota %g, %d threads, usable %v; want 1.5, 2, [8 9]", m.Quota, m.Threads(), m.Usable())
	}
	// The inner limit is the lower one, with 500 MB of it in use.
	want := Memory{Total: 2147483648, Available: 2147483648 - 500000000, Limit: 2147483648}
	if m.Memory != want {
		t.Errorf("memory %+v, want %+v", m.Memory, want)
	}
	if m.Kinds() != nil {
		t.Errorf("kinds %v of a machine that tells none", m.Kinds())
	}
}

func TestContainerVersion1(t *testing.T) {
	m := fromTree(recorded(t, "container1"), process{affinity: firstCPUs(8)})
	if m.Quota != 2.5 || m.Threads() != 3 {
		t.Errorf("quota %g, %d threads; want 2.5, 3", m.Quota, m.Threads())
	}
	// The machine itself has less left than the limit allows.
	want := Memory{Total: 8 << 30, Available: 1000000 << 10, Limit: 8 << 30}
	if m.Memory != want {
		t.Errorf("memory %+v, want %+v", m.Memory, want)
	}
	if got := m.OnePerCore([]int{5, 1, 0, 4, 7}); !slices.Equal(got, []int{5, 0, 7}) {
		t.Errorf("one per core %v", got)
	}
}

func TestVM(t *testing.T) {
	m := fromTree(recorded(t, "vm"), process{}) // no call: the status file has the mask
	if !slices.Equal(m.Usable(), []int{0, 1}) || m.Quota != 0 || m.Kinds() != nil {
		t.Errorf("usable %v, quota %g, kinds %v", m.Usable(), m.Quota, m.Kinds())
	}
	if want := (Memory{Total: 4000000 << 10, Available: 3000000 << 10}); m.Memory != want {
		t.Errorf("memory %+v, want %+v", m.Memory, want)
	}
	if len(m.Notes) != 0 {
		t.Errorf("notes %q", m.Notes)
	}
}

func TestDamaged(t *testing.T) {
	m := fromTree(recorded(t, "damaged"), process{count: 2})
	if !slices.Equal(ids(m), []int{0, 1}) || m.Quota != 0 || m.Memory != (Memory{}) || m.Model != "" {
		t.Errorf("%+v", m)
	}
	if c := m.CPUs[0]; c.Core != -1 || c.Siblings != nil || c.Kind != Uniform {
		t.Errorf("CPU 0: %+v", c)
	}
	want := []Cache{{Level: 2, Bytes: 1 << 20, CPUs: []int{0}}}
	if diff := cmp.Diff(want, m.Caches); diff != "" {
		t.Error(diff)
	}
	notes := strings.Join(m.Notes, "\n")
	for _, s := range []string{
		"affinity mask", "MemTotal", "MemAvailable", "cpu.max", "memory.max", "cpu.cfs_period_us",
		"memory.limit_in_bytes", "core_id", "SMT siblings", "online", "level", "size", "name of the processor",
	} {
		if !strings.Contains(notes, s) {
			t.Errorf("no note of %s in:\n%s", s, notes)
		}
	}
}

func TestNothing(t *testing.T) {
	m := fromTree(fstest.MapFS{}, process{})
	if !slices.Equal(m.Usable(), []int{0}) || len(m.Notes) == 0 {
		t.Errorf("usable %v, notes %q", m.Usable(), m.Notes)
	}
}

// Whatever the files hold, detection ends and finds a CPU.
func FuzzTree(f *testing.F) {
	for _, name := range []string{"board", "container", "container1", "damaged"} {
		for path, file := range recorded(f, name) {
			f.Add(path, string(file.Data))
		}
	}
	bases := []fstest.MapFS{recorded(f, "hybrid"), recorded(f, "container1")}
	f.Fuzz(func(t *testing.T, path, content string) {
		for _, base := range bases {
			tree := fstest.MapFS{}
			for p, file := range base {
				tree[p] = file
			}
			tree[path] = &fstest.MapFile{Data: []byte(content)}
			m := fromTree(tree, process{count: 1})
			if n := m.Threads(); n < 1 || n > len(m.CPUs) || len(m.Usable()) != n {
				t.Fatalf("%d threads on %v", n, ids(m))
			}
			if m.Memory.Total < 0 || m.Memory.Available < 0 || m.Memory.Limit < 0 {
				t.Fatalf("memory %+v", m.Memory)
			}
		}
	})
}
