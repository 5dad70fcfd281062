package engine_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/tandemrun/tandem/engine"
	"github.com/tandemrun/tandem/unit/sim"
)

const companyProfile = `{
	"name": "company", "description": "", "source": "", "model": "", "hidden": 8,
	"units": [{"name": "A"}],
	"chunks": [
		{"name": "w", "kv": 8, "on": {"A": {"ms": 3, "row_ms": 0.5, "stream_ms": 1}}},
		{"name": "x", "kv": 8, "on": {"A": {"ms": 5, "row_ms": 0.2, "stream_ms": 1}}}
	],
	"handoffs": []
}`

// Streams whose callers take unlike times between steps stay together, unless
// one takes longer than a sixteenth of a step, and who leaves is not waited for.
func TestCompany(t *testing.T) {
	const steps, step = 6, 10 * time.Millisecond // 3 + 1 and 5 + 1
	for _, x := range []struct {
		gap    time.Duration // of the second stream
		leaves int           // steps of the second stream
		apart  int           // first chunk's tasks of one stream from the second step on
		took   time.Duration // behind the first steps; 0 is not looked at
	}{
		{gap: 0, leaves: steps, took: (steps - 1) * step},
		{gap: 500 * time.Microsecond, leaves: steps, took: (steps - 1) * (step + 500*time.Microsecond)},
		// The unit waits in vain, for a sixteenth of a step: then the first stream's task,
		// the second one's behind it, and both together at the second chunk.
		{gap: 2 * time.Millisecond, leaves: steps, apart: 2 * (steps - 1)},
		// Alone a step takes 8 ms.
		{gap: 0, leaves: 3, apart: steps - 3, took: 2*step + (steps-3)*8*time.Millisecond},
	} {
		p, err := sim.Parse("company", []byte(companyProfile))
		if err != nil {
			t.Fatal(err)
		}
		clock := sim.NewVirtual()
		var mu sync.Mutex
		var records []engine.Record
		sim.Run(clock, func() {
			units, err := sim.NewDevice(p, clock).Place(nil)
			if err != nil {
				t.Error(err)
				return
			}
			e, err := engine.New(context.Background(), sim.Model(p), engine.Config{
				Ranges: sim.Ranges(p), Units: units, Slots: 2, Context: 64, Block: 8, Clock: clock,
				Observe: func(r engine.Record) {
					mu.Lock()
					defer mu.Unlock()
					records = append(records, r)
				},
			})
			if err != nil {
				t.Error(err)
				return
			}
			defer e.Close()
			decode := func(n int, gap time.Duration) func() {
				return func() {
					s, err := e.Stream(context.Background())
					if err != nil {
						t.Error(err)
						return
					}
					defer s.Close()
					for range n {
						if err := s.Forward(context.Background(), []int32{1}, engine.Last, func(int, []float32) error { return nil }); err != nil {
							t.Error(err)
						}
						_ = clock.Sleep(context.Background(), gap)
					}
				}
			}
			sim.All(clock, decode(steps, 0), decode(x.leaves, x.gap))
		})
		var begin time.Time // end of the first steps
		apart, last, idle := 0, time.Time{}, time.Duration(0)
		for _, r := range records {
			if !last.IsZero() {
				idle = max(idle, r.Start.Sub(last))
			}
			switch {
			case r.Chunk == 1 && r.Streams == 2 && begin.IsZero():
				begin = r.End
			case r.Chunk == 0 && r.Streams == 1 && !begin.IsZero():
				apart++
			}
			last = r.End
		}
		if idle > time.Millisecond {
			t.Errorf("a gap of %v: the unit had nothing to do for %v", x.gap, idle)
		}
		if took := last.Sub(begin); apart != x.apart || x.took > 0 && took != x.took {
			t.Errorf("a gap of %v, %d steps: %d first tasks apart and %v behind the first steps, want %d and %v", x.gap, x.leaves, apart, took, x.apart, x.took)
		}
	}
}
