package speed

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tandemrun/tandem/machine"
	"github.com/tandemrun/tandem/unit/cpu/kernel"
)

// A Gauge measures ceilings on a set of cores with one worker each, pinned
// where the system allows it. Between measurements the workers park.
type Gauge struct {
	set     *kernel.Set
	memory  machine.Pages
	start   []chan func(w int)
	done    sync.WaitGroup
	stopped sync.WaitGroup
}

// GaugeConfig says what to measure.
type GaugeConfig struct {
	// CPUs are the system's numbers of the cores to pin workers to; without any,
	// workers are not pinned.
	CPUs    []int
	Threads int // workers; 0 is one for each of CPUs
	ISA     kernel.ISA
	// Bytes is the memory that a read goes over: many times the caches.
	Bytes int64
}

// ReadBytes is the memory to read over on a machine: 512 MiB, or four times its
// last level of caches if that is more, but no more than half of what is
// available.
func ReadBytes(m *machine.Machine) int64 {
	var last, sum int64
	for _, c := range m.Caches {
		if int64(c.Level) > last {
			last, sum = int64(c.Level), 0
		}
		sum += c.Bytes
	}
	n := max(512<<20, 4*sum)
	if a := m.Memory.Available; a > 0 {
		n = min(n, a/2)
	}
	return n
}

// NewGauge starts the workers and touches the memory.
func NewGauge(c GaugeConfig) (*Gauge, error) {
	if c.Threads == 0 {
		c.Threads = len(c.CPUs)
	}
	if c.Threads < 1 || c.Bytes < int64(c.Threads) {
		return nil, fmt.Errorf("measuring ceilings over %d bytes with %d threads", c.Bytes, c.Threads)
	}
	set, err := kernel.New(c.ISA)
	if err != nil {
		return nil, fmt.Errorf("measuring ceilings: %w", err)
	}
	m, err := machine.NewPages(c.Bytes)
	if err != nil {
		return nil, fmt.Errorf("measuring the memory's speed over %d MiB: %w", c.Bytes>>20, err)
	}
	g := &Gauge{set: set, memory: m}
	for w := range c.Threads {
		start := make(chan func(int))
		g.start = append(g.start, start)
		g.stopped.Go(func() {
			runtime.LockOSThread() // never unlocked: the pinned thread ends with the worker
			if len(c.CPUs) > 0 {
				// A system that does not pin schedules well enough for a measurement.
				_ = machine.Pin([]int{c.CPUs[w%len(c.CPUs)]})
			}
			for f := range start {
				f(w)
				g.done.Done()
			}
		})
	}
	const page = 4096
	g.together(func(w int) {
		part := g.part(w)
		for i := 0; i < len(part); i += page {
			part[i] = 1
		}
	})
	g.Read()
	g.Multiply()
	return g, nil
}

// Threads is the number of workers.
func (g *Gauge) Threads() int { return len(g.start) }

// passes is how many passes a measurement takes the median of.
const passes = 3

// Read measures how many bytes a second the workers together read from memory.
func (g *Gauge) Read() float64 {
	var rates []float64
	for range passes {
		t := g.together(func(w int) { g.set.ReadCeiling(g.part(w)) })
		rates = append(rates, float64(len(g.memory.Data))/t.Seconds())
	}
	return Median(rates)
}

// Multiply measures how many operations on 8-bit integers the workers together
// do in a second, a multiplication and an addition being two.
func (g *Gauge) Multiply() float64 {
	const rounds = 5000 // about as many microseconds
	var rates []float64
	for range passes {
		var n atomic.Int64
		t := g.together(func(int) { n.Add(g.set.MultiplyCeiling(rounds)) })
		rates = append(rates, float64(n.Load())/t.Seconds())
	}
	return Median(rates)
}

// part is the memory of a worker.
func (g *Gauge) part(w int) []byte {
	n, all := len(g.start), g.memory.Data
	return all[len(all)/n*w : len(all)/n*(w+1)]
}

// together calls f on each worker and returns the time from when all were
// ready to when the last had returned.
func (g *Gauge) together(f func(w int)) time.Duration {
	n := len(g.start)
	var ready atomic.Int32
	begin, end := make([]time.Time, n), make([]time.Time, n)
	g.done.Add(n)
	for _, start := range g.start {
		start <- func(w int) {
			for ready.Add(1); int(ready.Load()) < n; {
				runtime.Gosched()
			}
			begin[w] = time.Now()
			f(w)
			end[w] = time.Now()
		}
	}
	g.done.Wait()
	first, last := begin[0], end[0]
	for w := range n {
		if begin[w].Before(first) {
			first = begin[w]
		}
		if end[w].After(last) {
			last = end[w]
		}
	}
	return max(last.Sub(first), 1)
}

// Close stops the workers and frees the memory.
func (g *Gauge) Close() error {
	for _, start := range g.start {
		close(start)
	}
	g.stopped.Wait()
	err := g.memory.Free()
	g.start, g.memory = nil, machine.Pages{}
	if err != nil {
		return errors.Join(errors.New("freeing the memory of the ceilings' measurement"), err)
	}
	return nil
}
