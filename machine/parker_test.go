package machine_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/tandemrun/tandem/machine"
)

// Two goroutines that are locked to their threads wake each other in turn, and a
// garbage collection does not wait for one that is parked.
func TestParker(t *testing.T) {
	const turns = 2000
	var there, back machine.Parker
	n, done := 0, make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		for range turns {
			there.Park()
			n++
			back.Unpark()
		}
	}()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for i := range turns {
		if i%100 == 0 {
			runtime.GC()
		}
		there.Unpark()
		back.Park()
		if n != i+1 {
			t.Fatalf("%d turns of the other goroutine after %d", n, i+1)
		}
	}
	<-done
}

// Park returns at once where Unpark was called before, but once only.
func TestParkerBefore(t *testing.T) {
	var p machine.Parker
	p.Unpark()
	p.Unpark()
	p.Park()
	woken := make(chan struct{})
	go func() {
		p.Park()
		close(woken)
	}()
	time.Sleep(20 * time.Millisecond) // enough for it to return if it does
	select {
	case <-woken:
		t.Fatal("two calls of Unpark let Park return twice")
	default:
	}
	p.Unpark()
	<-woken
}

func BenchmarkParker(b *testing.B) {
	var there, back machine.Parker
	end := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		for {
			there.Park()
			select {
			case <-end:
				return
			default:
				back.Unpark()
			}
		}
	}()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for b.Loop() {
		there.Unpark()
		back.Park()
	}
	close(end)
	there.Unpark()
}
