package cpu

import (
	"cmp"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tandemrun/tandem/machine"
)

// pool is a set of workers. The first is whoever calls run; each other is a
// goroutine locked to a thread and, where the system allows it, pinned to a
// core.
//
// Inside a run workers wait for each other at barriers by spinning, because a
// step of decode has hundreds of barriers and a parked thread takes tens of
// microseconds to wake (fork-join of two workers: spinning 0.2-0.7 µs, locked
// and parked 52 µs, measured on a two-core Zen 4). After a run they look out
// for the next one for a moment, since the chunks of one step follow each
// other closely, and then park.
type pool struct {
	n    int
	cpus []int
	qos  machine.QoS

	work    func(w int)
	round   atomic.Uint32 // of runs
	pending atomic.Int32  // workers that have not finished the round

	at     atomic.Int32 // workers at the current barrier
	passed atomic.Uint32

	sleepers []sleeper // by worker; the first never sleeps here
	closed   atomic.Bool
	stopped  sync.WaitGroup
	pinErr   error // why workers could not be pinned
	qosErr   error // why workers could not be given their scheduling class
}

// lookout is how long a worker looks out for the next run before it parks.
const lookout = 50 * time.Microsecond

// newPool starts the workers; worker i is pinned to cpus[i mod len(cpus)], or
// not at all without cpus.
func newPool(n int, cpus []int, qos machine.QoS) *pool {
	p := &pool{n: n, cpus: cpus, qos: qos, sleepers: make([]sleeper, n)}
	type settled struct{ pin, qos error }
	ready := make(chan settled, n)
	settle := func(w int) { ready <- settled{p.pin(w), machine.SetQoS(qos)} }
	// The first worker's thread is not known yet: try its core on another.
	go func() {
		runtime.LockOSThread() // never unlocked: a pinned thread ends with its goroutine
		settle(0)
	}()
	for w := 1; w < n; w++ {
		p.stopped.Go(func() {
			runtime.LockOSThread()
			settle(w)
			p.serve(w)
		})
	}
	for range n {
		s := <-ready
		p.pinErr, p.qosErr = cmp.Or(p.pinErr, s.pin), cmp.Or(p.qosErr, s.qos)
	}
	return p
}

func (p *pool) pin(w int) error {
	if len(p.cpus) == 0 {
		return nil
	}
	return machine.Pin([]int{p.cpus[w%len(p.cpus)]})
}

// bind makes the calling goroutine the first worker's for good: it is locked
// to its thread, and the thread to the first core and the scheduling class.
func (p *pool) bind() {
	runtime.LockOSThread()
	_ = p.pin(0) // newPool has tried both and kept the errors
	_ = machine.SetQoS(p.qos)
	_ = machine.SharpenTimers() // without it all works as well, and streams come later
}

// run calls f once as each worker, the first in the calling goroutine, and
// returns when all calls have.
func (p *pool) run(f func(w int)) {
	if p.n == 1 {
		f(0)
		return
	}
	p.work = f
	p.pending.Store(int32(p.n - 1))
	p.round.Add(1)
	p.wake()
	f(0)
	spin(func() bool { return p.pending.Load() == 0 })
	p.work = nil
}

// A sleeper is where a worker sleeps between runs.
type sleeper struct {
	machine.Parker
	asleep atomic.Bool
}

// wake wakes the workers that sleep.
func (p *pool) wake() {
	for w := range p.sleepers {
		if s := &p.sleepers[w]; s.asleep.Load() {
			s.Unpark()
		}
	}
}

// serve is the life of a worker but the first.
func (p *pool) serve(w int) {
	for round := uint32(1); ; round++ {
		begun := func() bool { return p.round.Load() == round || p.closed.Load() }
		for start := time.Now(); !begun() && time.Since(start) < lookout; {
			for i := 0; i < 200 && !begun(); i++ {
			}
		}
		for s := &p.sleepers[w]; !begun(); {
			// Who begins a round looks whether it is asleep after that, so either that
			// one sees it or begun sees the round.
			if s.asleep.Store(true); !begun() {
				s.Park()
			}
			s.asleep.Store(false)
		}
		if p.closed.Load() {
			return
		}
		p.work(w)
		p.pending.Add(-1)
	}
}

// barrier returns when all workers have called it. Only a function given to
// run may call it, and each worker as often as the others.
// A worker that waits does x's work meanwhile; x may be nil.
func (p *pool) barrier(x *idle) {
	if p.n == 1 {
		return
	}
	passed := p.passed.Load()
	if int(p.at.Add(1)) == p.n {
		p.at.Store(0)
		p.passed.Add(1)
		return
	}
	spin(func() bool {
		if x != nil {
			x.work()
		}
		return p.passed.Load() != passed
	})
}

// spin waits for a condition that another worker brings about. If that takes
// long, the worker was put off its core by something else. Yielding wakes and
// parks this locked thread in the kernel each time, so that is not done without
// end: on a crowded machine it cost more time than the work.
func spin(done func() bool) {
	const spins, yields = 20000, 40
	for i := 0; !done(); i++ {
		switch {
		case i < spins:
		case i < spins+yields:
			runtime.Gosched()
		default:
			time.Sleep(50 * time.Microsecond)
		}
	}
}

// close ends the workers. No run is in hand.
func (p *pool) close() {
	p.closed.Store(true)
	p.wake()
	p.stopped.Wait()
}

// share returns the part [lo, hi) of n items in groups of align that worker w
// of workers works on.
func share(n, align, w, workers int) (lo, hi int) {
	groups := (n + align - 1) / align
	return min(n, groups*w/workers*align), min(n, groups*(w+1)/workers*align)
}
