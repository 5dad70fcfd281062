package machine

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestParseCPUList(t *testing.T) {
	for _, c := range []struct {
		in   string
		want []int
		out  string
	}{
		{"", nil, ""},
		{" 0-3,7\n", []int{0, 1, 2, 3, 7}, "0-3,7"},
		{"7, 2,2,1", []int{1, 2, 7}, "1-2,7"},
		{"5-5", []int{5}, "5"},
	} {
		got, err := ParseCPUList(c.in)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("ParseCPUList(%q) = %v, %v; want %v", c.in, got, err, c.want)
		}
		if s := FormatCPUList(got); s != c.out {
			t.Errorf("FormatCPUList(%v) = %q, want %q", got, s, c.out)
		}
	}
	for _, in := range []string{"a", "1-", "-1", "3-1", "1,,2", "0-65536", "99999999999", "1-2-3"} {
		if got, err := ParseCPUList(in); err == nil {
			t.Errorf("ParseCPUList(%q) = %v, want an error", in, got)
		}
	}
	if _, err := ParseCPUList(strings.Repeat("0-65535,", 3) + "1"); err == nil {
		t.Error("a list of three times all CPUs was accepted")
	}
}

// The running system, whichever it is.
func TestDetect(t *testing.T) {
	m, err := Detect()
	if err != nil {
		t.Fatal(err)
	}
	if len(m.CPUs) == 0 || m.Threads() < 1 || m.PageSize < 4096 || m.OS != runtime.GOOS || m.Arch != runtime.GOARCH {
		t.Errorf("%+v", m)
	}
	if runtime.GOOS == "linux" && (len(m.CPUs) != runtime.NumCPU() || m.Memory.Total == 0) {
		t.Errorf("%d CPUs where the runtime counts %d; memory %+v", len(m.CPUs), runtime.NumCPU(), m.Memory)
	}
	if runtime.GOARCH == "amd64" && !m.Has("sse42") && m.Has("avx2") {
		t.Errorf("instruction sets %v", m.ISA)
	}
	if !slices.IsSorted(m.ISA) {
		t.Errorf("instruction sets are not ascending: %v", m.ISA)
	}
}

func TestPin(t *testing.T) {
	done := make(chan struct{})
	go func() { // the thread ends with this goroutine, which stays locked
		defer close(done)
		runtime.LockOSThread()
		before, err := Affinity()
		if errors.Is(err, ErrUnsupported) {
			if err := Pin([]int{0}); !errors.Is(err, ErrUnsupported) {
				t.Errorf("Pin: %v", err)
			}
			return
		}
		if err != nil {
			t.Error(err)
			return
		}
		last := before[len(before)-1:]
		if err := Pin(last); err != nil {
			t.Error(err)
			return
		}
		if got, err := Affinity(); err != nil || !slices.Equal(got, last) {
			t.Errorf("affinity %v, %v after pinning to %v", got, err, last)
		}
	}()
	<-done
	for _, cpus := range [][]int{nil, {-1}, {1 << 20}, {maxCPU - 1}} {
		if err := Pin(cpus); err == nil {
			t.Errorf("Pin(%v) succeeded", cpus)
		}
	}
}

func TestPeakRSS(t *testing.T) {
	n, ok := PeakRSS()
	if ok != (runtime.GOOS == "linux") || ok && n < 1<<20 {
		t.Errorf("PeakRSS() = %d, %t", n, ok)
	}
}

// values is a darwin system of recorded values.
type values map[string]any

func (v values) number(name string) (uint64, error) {
	if n, ok := v[name].(int); ok {
		return uint64(n), nil
	}
	return 0, errors.New("unknown name")
}

func (v values) text(name string) (string, error) {
	if s, ok := v[name].(string); ok {
		return s, nil
	}
	return "", errors.New("unknown name")
}

func TestSysctl(t *testing.T) {
	m := fromSysctl(values{
		"machdep.cpu.brand_string": "Example M1",
		"hw.memsize":               16 << 30, "hw.cachelinesize": 128, "hw.nperflevels": 2,
		"hw.perflevel0.logicalcpu": 4, "hw.perflevel0.l1dcachesize": 128 << 10,
		"hw.perflevel0.l2cachesize": 12 << 20, "hw.perflevel0.cpusperl2": 4,
		"hw.perflevel1.logicalcpu": 4, "hw.perflevel1.l1dcachesize": 64 << 10,
		"hw.perflevel1.l2cachesize": 4 << 20, "hw.perflevel1.cpusperl2": 2,
	}, process{count: 8})
	if m.Model != "Example M1" || m.Memory.Total != 16<<30 || m.Threads() != 8 {
		t.Errorf("%+v", m)
	}
	if got := m.OfKind(Efficiency); !slices.Equal(got, []int{4, 5, 6, 7}) {
		t.Errorf("small cores %v", got)
	}
	if c, ok := m.Cache(7, 2); !ok || c.Bytes != 4<<20 || c.Line != 128 || !slices.Equal(c.CPUs, []int{6, 7}) {
		t.Errorf("level 2 cache of CPU 7: %+v", c)
	}

	m = fromSysctl(values{}, process{count: 3})
	if m.Threads() != 3 || m.Kinds() != nil || len(m.Notes) < 4 {
		t.Errorf("%+v", m)
	}
}

func TestRuntime(t *testing.T) {
	m := fromRuntime(process{count: 4})
	if !slices.Equal(m.Usable(), []int{0, 1, 2, 3}) || len(m.Notes) == 0 {
		t.Errorf("%+v", m)
	}
}
