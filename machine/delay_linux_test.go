package machine

import (
	"runtime"
	"testing"
	"time"
)

// More busy threads than CPUs wait for each other.
func TestRunDelay(t *testing.T) {
	cpus, err := Affinity()
	if err != nil {
		t.Fatal(err)
	}
	before, ok := RunDelay()
	if !ok {
		t.Skip("this system does not tell run-queue delays (no schedstat)")
	}
	const each = 50 * time.Millisecond
	done := make(chan error)
	for range 2 {
		go func() {
			runtime.LockOSThread()
			if err := Pin(cpus[:1]); err != nil {
				done <- err
				return
			}
			for end := time.Now().Add(each); time.Now().Before(end); {
			}
			done <- nil
			select {} // the thread stays, and with it its figures
		}()
	}
	for range 2 {
		if err := <-done; err != nil {
			t.Skip(err)
		}
	}
	after, _ := RunDelay()
	if after-before < each/5 {
		t.Errorf("two threads that spun on one CPU for %v waited %v", each, after-before)
	}
}
