package cpu

import (
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tandemrun/tandem/machine"
	"github.com/tandemrun/tandem/unit/cpu/kernel"
)

// All workers of a unit have its scheduling class, the goroutine that serves
// the unit's queue among them.
func TestQoS(t *testing.T) {
	const schedIdle = 5
	u, err := New(Config{Name: "cpu", Threads: 3, ISA: kernel.Best(), QoS: machine.QoSBackground})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	var mu sync.Mutex
	classes := map[int]uint32{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		u.Bind()
		u.pool.run(func(w int) {
			a, err := unix.SchedGetAttr(0, 0)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			classes[w] = a.Policy
			mu.Unlock()
		})
	}()
	<-done
	for w := range 3 {
		if classes[w] != schedIdle {
			t.Errorf("worker %d: class %d, want %d", w, classes[w], schedIdle)
		}
	}
}
