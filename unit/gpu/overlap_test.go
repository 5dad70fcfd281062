package gpu

import (
	"slices"
	"sync"
	"testing"

	"github.com/tandemrun/tandem/engine"
	"github.com/tandemrun/tandem/unit"
)

// With a model split across CPU and device, two streams have both units at work
// at once, the device tells how long it was, and handoffs take time.
func TestOverlap(t *testing.T) {
	u, c := openOwned(t, Config{}), openCPU(t, "cpu:0")
	var mu sync.Mutex
	var records []engine.Record
	e := start(t, loadModel(t, "tiny/tiny-q8_0.gguf"), []unit.Unit{c, c, u, c}, func(cfg *engine.Config) {
		cfg.Merge = 1
		cfg.Observe = func(r engine.Record) {
			mu.Lock()
			defer mu.Unlock()
			records = append(records, r)
		}
	})
	defer closeEngine(t, e)
	var done sync.WaitGroup
	for range 2 {
		s, err := e.Stream(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		done.Go(func() {
			for i := range int32(40) {
				if err := s.Forward(t.Context(), []int32{i + 200}, engine.Last, func(int, []float32) error { return nil }); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	done.Wait()
	device := e.Units()
	at := slices.Index(device, "gpu")
	overlaps := 0
	for _, g := range records {
		if g.Unit != at {
			continue
		}
		if u.dev.(*vulkanDevice).d.Info().Limits.TimestampNanos > 0 && (g.Device <= 0 || g.Device > g.End.Sub(g.Start)) {
			t.Errorf("the device was at work for %v of a task of %v", g.Device, g.End.Sub(g.Start))
		}
		if g.CopyTime <= 0 || g.CopyOutTime <= 0 || g.CopyTime > g.End.Sub(g.Start) {
			t.Errorf("handoffs took %v, %v of them out, of a task of %v", g.CopyTime, g.CopyOutTime, g.End.Sub(g.Start))
		}
		for _, c := range records {
			if c.Unit != at && c.Start.Before(g.End) && g.Start.Before(c.End) {
				overlaps++
				break
			}
		}
	}
	if overlaps == 0 {
		t.Errorf("no task of the device ran beside one of the CPU, of %d tasks", len(records))
	}
	t.Logf("%d tasks of the device beside others, of %d", overlaps, len(records)/4)
}
