package machine

import (
	"runtime"
	"testing"
)

// Every class is taken by the system.
func TestSetQoS(t *testing.T) {
	for _, q := range append(classes, QoSDefault) {
		done := make(chan error)
		go func() {
			runtime.LockOSThread() // the thread ends with the goroutine
			done <- SetQoS(q)
		}()
		if err := <-done; err != nil {
			t.Errorf("%q: %v", q, err)
		}
	}
}
