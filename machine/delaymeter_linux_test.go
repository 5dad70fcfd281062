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

// Two pinned threads that share a CPU wait for each other, and that is counted.
func TestDelayMeterPinned(t *testing.T) {
	cpus, err := Affinity()
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := RunDelay(); !ok || len(cpus) < 2 {
		t.Skip("needs schedstat and two CPUs")
	}
	var m DelayMeter
	defer m.Close()
	const each = 50 * time.Millisecond
	start, done, end := make(chan bool), make(chan error), make(chan bool)
	for range 2 {
		go func() {
			runtime.LockOSThread()
			err := Pin(cpus[:1])
			done <- err
			<-start
			for begin := time.Now(); err == nil && time.Since(begin) < each; {
			}
			done <- nil
			<-end // the thread is there when it is read
		}()
	}
	for range 2 {
		if err := <-done; err != nil {
			t.Skip(err)
		}
	}
	before, ok := m.Read()
	if !ok || !m.pinned {
		t.Fatalf("%v: pinned threads were not found", ok)
	}
	close(start)
	<-done
	<-done
	after, _ := m.Read()
	close(end)
	if after-before < each/2 {
		t.Errorf("two threads that shared a CPU for %v waited %v", each, after-before)
	}
}

func BenchmarkDelayMeter(b *testing.B) {
	var m DelayMeter
	for b.Loop() {
		m.Read()
	}
}
