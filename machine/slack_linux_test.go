package machine

import (
	"runtime"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// As many goroutines as can run at once have threads with a timer slack of 1 ns
// afterwards, but for one now and then that the runtime has just started.
func TestSharpenTimers(t *testing.T) {
	const rounds = 50
	n := runtime.GOMAXPROCS(0)
	sharp := 0
	for range rounds {
		if err := SharpenTimers(); err != nil {
			t.Fatal(err)
		}
		slack := make([]int, n)
		var all, done sync.WaitGroup
		all.Add(n)
		for i := range n {
			done.Go(func() {
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				var err error
				if slack[i], err = unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0); err != nil {
					t.Error(err)
				}
				all.Done()
				all.Wait()
			})
		}
		done.Wait()
		for _, ns := range slack {
			if ns == 1 {
				sharp++
			}
		}
	}
	if sharp < 3*rounds*n/4 {
		t.Errorf("%d of %d threads had a timer slack of 1 ns", sharp, rounds*n)
	}
}
