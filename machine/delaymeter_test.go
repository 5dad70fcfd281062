package machine

import (
	"runtime"
	"testing"
	"time"
)

// A meter never tells less than before, also when threads end, and holds no
// files in the end.
func TestDelayMeter(t *testing.T) {
	if _, ok := RunDelay(); !ok {
		t.Skip("this system does not tell run-queue delays (no schedstat)")
	}
	var m DelayMeter
	var last time.Duration
	for range 20 {
		done := make(chan bool)
		go func() {
			runtime.LockOSThread() // the thread ends with the goroutine
			close(done)
		}()
		<-done
		d, ok := m.Read()
		if !ok || d < last {
			t.Fatalf("%v after %v, %v", d, last, ok)
		}
		last = d
	}
	m.Close()
	if len(m.threads) != 0 {
		t.Error("files are open")
	}
}

func BenchmarkDelayMeter(b *testing.B) {
	var m DelayMeter
	for b.Loop() {
		m.Read()
	}
}
