package engine_test

import (
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tandemrun/tandem/engine"
)

// Spinning workers and long assembly calls must not keep the collector
// waiting. The time a collection takes beside a busy engine, and without one,
// is reported.
func TestCollectionUnderLoad(t *testing.T) {
	if procs := runtime.GOMAXPROCS(0); procs < 3 {
		runtime.GOMAXPROCS(3) // as tandem.Model.Open does for two workers
		defer runtime.GOMAXPROCS(procs)
	}
	collect := func() []time.Duration {
		var out []time.Duration
		for range 30 {
			start := time.Now()
			runtime.GC()
			out = append(out, time.Since(start))
			time.Sleep(time.Millisecond)
		}
		slices.Sort(out)
		return out
	}
	m := load(t, "f32")
	e := open(t, m, layout{threads: 2, block: 64})
	idle := collect()
	s := stream(t, e)
	p := prompts(t)[1]
	var stop atomic.Bool
	done := make(chan int)
	go func() {
		n := 0
		for ; !stop.Load(); n++ {
			s.Return(0)
			if err := s.Forward(t.Context(), p, engine.Every, func(int, []float32) error { return nil }); err != nil {
				t.Error(err)
				break
			}
		}
		done <- n
	}()
	busy := collect()
	stop.Store(true)
	if n := <-done; n == 0 {
		t.Fatal("the engine did nothing beside the collections")
	}
	report := func(name string, x []time.Duration) {
		t.Logf("collection %s: median %v, worst %v", name, x[len(x)/2], x[len(x)-1])
	}
	report("beside an idle engine", idle)
	report("beside a busy engine", busy)
}
