package cpu

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/tandemrun/tandem/machine"
)

// pool is a set of workers, each a goroutine locked to a thread and, where the
// system allows it, pinned to a core. Between runs they park; inside a run
// they wait for each other at barriers by spinning, because a step of decode
// has hundreds of barriers and a parked thread takes tens of microseconds to
// wake (fork-join of two workers: spinning 0.2-0.7 µs, locked and parked 52 µs,
// measured on a two-core Zen 4).
type pool struct {
	n       int
	start   []chan func(w int)
	done    sync.WaitGroup
	waiting atomic.Int32 // workers at the current barrier
	round   atomic.Uint32
	stopped sync.WaitGroup
	pinErr  error // why the first worker could not be pinned
}

// newPool starts n workers; worker i is pinned to cpus[i mod len(cpus)], or
// not at all without cpus.
func newPool(n int, cpus []int) *pool {
	p := &pool{n: n}
	ready := make(chan error, n)
	for w := range n {
		start := make(chan func(int))
		p.start = append(p.start, start)
		p.stopped.Go(func() {
			runtime.LockOSThread() // never unlocked: the pinned thread ends with the worker
			var err error
			if len(cpus) > 0 {
				err = machine.Pin([]int{cpus[w%len(cpus)]})
			}
			ready <- err
			for f := range start {
				f(w)
				p.done.Done()
			}
		})
	}
	for range n {
		if err := <-ready; err != nil {
			p.pinErr = err
		}
	}
	return p
}

// run calls f once on each worker and returns when all calls have.
func (p *pool) run(f func(w int)) {
	p.done.Add(p.n)
	for _, start := range p.start {
		start <- f
	}
	p.done.Wait()
}

// barrier returns when all workers have called it. Only a function given to
// run may call it, and each worker as often as the others.
func (p *pool) barrier() {
	if p.n == 1 {
		return
	}
	round := p.round.Load()
	if int(p.waiting.Add(1)) == p.n {
		p.waiting.Store(0)
		p.round.Add(1)
		return
	}
	// A worker that was put off its core by something else is waited for
	// without burning the time slice it needs.
	const spins = 20000
	for i := 0; p.round.Load() == round; i++ {
		if i > spins {
			runtime.Gosched()
		}
	}
}

func (p *pool) close() {
	for _, start := range p.start {
		close(start)
	}
	p.stopped.Wait()
}

// share returns the part [lo, hi) of n items in groups of align that worker w
// of workers works on.
func share(n, align, w, workers int) (lo, hi int) {
	groups := (n + align - 1) / align
	return min(n, groups*w/workers*align), min(n, groups*(w+1)/workers*align)
}
