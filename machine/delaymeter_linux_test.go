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

// Two pinned threads that share a CPU wait for each other, and that is counted;
// but not as much of it as another thread of the process ran.
func TestDelayMeterPinned(t *testing.T) {
	const each = 50 * time.Millisecond
	if waited := sharing(t, each, 0); waited < each/2 {
		t.Errorf("two threads that shared a CPU for %v waited %v", each, waited)
	}
	if waited := sharing(t, each, 3*each); waited > each/4 {
		t.Errorf("while another thread ran for %v, two threads that shared a CPU for %v are told to have waited for others for %v", 3*each, each, waited)
	}
}

// sharing lets two threads that are pinned to one CPU run for so long each, and
// one that is not pinned for as long as other says, and returns what a meter
// counts meanwhile.
func sharing(t *testing.T, each, other time.Duration) time.Duration {
	cpus, err := Affinity()
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := RunDelay(); !ok || len(cpus) < 2 {
		t.Skip("needs schedstat and two CPUs")
	}
	var m DelayMeter
	defer m.Close()
	start, done, end := make(chan bool), make(chan error), make(chan bool)
	defer close(end)
	threads := []time.Duration{each, each, other}
	for i, d := range threads {
		go func() {
			runtime.LockOSThread()
			var err error
			if i < 2 {
				err = Pin(cpus[:1])
			}
			done <- err
			<-start
			for begin := time.Now(); err == nil && time.Since(begin) < d; {
			}
			done <- nil
			<-end // the thread is there when it is read
		}()
	}
	for range threads {
		if err := <-done; err != nil {
			t.Skip(err)
		}
	}
	before, ok := m.Read()
	if !ok || !m.pinned {
		t.Fatalf("%v: pinned threads were not found", ok)
	}
	close(start)
	for range threads {
		<-done
	}
	after, _ := m.Read()
	return after - before
}

func BenchmarkDelayMeter(b *testing.B) {
	var m DelayMeter
	for b.Loop() {
		m.Read()
	}
}
