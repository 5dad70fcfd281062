package speed

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/tandemrun/tandem/machine"
	"github.com/tandemrun/tandem/unit/cpu/kernel"
)

func TestGauge(t *testing.T) {
	for _, isa := range kernel.Available() {
		for _, threads := range []int{1, 3} {
			g, err := NewGauge(GaugeConfig{Threads: threads, ISA: isa, Bytes: 1<<20 + 7})
			if err != nil {
				t.Fatal(err)
			}
			if g.Threads() != threads {
				t.Errorf("%d threads, want %d", g.Threads(), threads)
			}
			if r, m := g.Read(), g.Multiply(); r <= 0 || m <= 0 {
				t.Errorf("%v, %d threads: %v bytes/s, %v operations/s", isa, threads, r, m)
			}
			if err := g.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// All workers run at once, on parts that do not overlap, and the time covers
// the slowest.
func TestGaugeTogether(t *testing.T) {
	g, err := NewGauge(GaugeConfig{Threads: 3, ISA: kernel.Best(), Bytes: 3000})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	var calls, begun atomic.Int32
	took := g.together(func(w int) {
		for i := range g.part(w) {
			g.part(w)[i] = byte(10 + w)
		}
		begun.Add(1)
		for begun.Load() < 3 { // ends only if all are at work at once
			time.Sleep(time.Microsecond)
		}
		calls.Add(1)
		if w == 1 {
			time.Sleep(5 * time.Millisecond)
		}
	})
	if calls.Load() != 3 || took < 5*time.Millisecond {
		t.Errorf("%d calls in %v", calls.Load(), took)
	}
	count := map[byte]int{}
	for _, b := range g.memory.Data[:3000] {
		count[b]++
	}
	if len(count) != 3 || count[10] != 1000 || count[11] != 1000 || count[12] != 1000 {
		t.Errorf("bytes by worker: %v", count)
	}
}

func TestGaugeErrors(t *testing.T) {
	for _, c := range []GaugeConfig{{Bytes: 100}, {Threads: 4, Bytes: 3}, {Threads: -1, Bytes: 100}} {
		if g, err := NewGauge(c); err == nil {
			g.Close()
			t.Errorf("%+v makes a gauge", c)
		}
	}
}

func TestReadBytes(t *testing.T) {
	big := []machine.Cache{{Level: 2, Bytes: 1 << 30}, {Level: 3, Bytes: 256 << 20}, {Level: 3, Bytes: 256 << 20}}
	for _, test := range []struct {
		name string
		m    machine.Machine
		want int64
	}{
		{"unknown", machine.Machine{}, 512 << 20},
		{"small caches", machine.Machine{Caches: []machine.Cache{{Level: 3, Bytes: 32 << 20}}}, 512 << 20},
		{"large caches", machine.Machine{Caches: big}, 2 << 30},
		{"little memory", machine.Machine{Caches: big, Memory: machine.Memory{Available: 600 << 20}}, 300 << 20},
	} {
		if got := ReadBytes(&test.m); got != test.want {
			t.Errorf("%s: %d MiB, want %d", test.name, got>>20, test.want>>20)
		}
	}
}
