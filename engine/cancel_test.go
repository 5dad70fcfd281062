package engine_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tandemrun/tandem/engine"
	"github.com/tandemrun/tandem/sampler"
	"github.com/tandemrun/tandem/unit/sim"
)

const cancelProfile = `{
	"name": "cancel", "description": "", "source": "", "model": "", "hidden": 8,
	"units": [{"name": "A"}, {"name": "B"}, {"name": "C"}],
	"chunks": [
		{"name": "w", "kv": 8, "on": {"A": {"ms": 4, "row_ms": 0.5, "stream_ms": 1}, "C": {"ms": 1, "row_ms": 1}}},
		{"name": "x", "kv": 8, "on": {"B": {"ms": 7, "row_ms": 0.2}, "C": {"ms": 2, "row_ms": 1}}},
		{"name": "y", "kv": 8, "on": {"A": {"ms": 5, "row_ms": 0.1}}},
		{"name": "z", "reads": ["x"], "on": {"B": {"ms": 3, "stream_ms": 1}}}
	],
	"handoffs": [{"from": "*", "to": "*", "call_ms": 0.3, "ns_per_byte": 1000}]
}`

// Sixteen streams share five slots of three simulated units. They come, are
// cancelled at random times and end. A stream that is cancelled has its slot
// back when the tasks that units had in hand at that moment are done; one that
// waits for a slot, at once; and no slot is lost.
func TestCancelWithinTask(t *testing.T) {
	for seed := range uint64(20) {
		cancelOnce(t, seed)
	}
}

func cancelOnce(t *testing.T, seed uint64) {
	const slots = 5
	p, err := sim.Parse("cancel", []byte(cancelProfile))
	if err != nil {
		t.Fatal(err)
	}
	clock := sim.NewVirtual()
	device := sim.NewDevice(p, clock)
	place := func(placement map[string]string) engine.Config {
		units, err := device.Place(placement)
		if err != nil {
			t.Fatal(err)
		}
		return engine.Config{Units: units}
	}
	var mu sync.Mutex
	var records []engine.Record
	cfg := place(nil)
	cfg.PrefillUnits = place(map[string]string{"w": "C", "x": "C"}).Units
	cfg.Ranges, cfg.Slots, cfg.Context, cfg.Block, cfg.BlockBeside, cfg.Clock = sim.Ranges(p), slots, 400, 64, 8, clock
	cfg.Observe = func(r engine.Record) {
		mu.Lock()
		defer mu.Unlock()
		records = append(records, r)
	}
	type ending struct {
		at, back time.Time // cancelled, and back
		waiting  bool      // for a slot
	}
	var endings []ending
	finished := 0
	sim.Run(clock, func() {
		e, err := engine.New(t.Context(), sim.Model(p), cfg)
		if err != nil {
			t.Error(err)
			return
		}
		defer e.Close()
		var fs []func()
		for i := range 16 {
			rng := rand.New(rand.NewPCG(seed, uint64(i)))
			ms := func(n int) time.Duration { return time.Duration(rng.IntN(n*1000)) * time.Microsecond }
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			end := ending{at: time.Unix(1<<40, 0)}
			arrives, prompt, steps := ms(400), 1+rng.IntN(200), 1+rng.IntN(20)
			if rng.IntN(3) > 0 {
				after := arrives + ms(2000)
				fs = append(fs, func() {
					_ = clock.Sleep(t.Context(), after)
					end.at = clock.Now()
					cancel()
				})
			}
			fs = append(fs, func() {
				_ = clock.Sleep(t.Context(), arrives)
				s, err := e.Stream(ctx)
				if end.waiting = err != nil; err == nil {
					err = steer(ctx, s, prompt, steps)
					s.Close()
				}
				end.back = clock.Now()
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					finished++
				case errors.Is(err, context.Canceled):
					endings = append(endings, end)
				default:
					t.Error(err)
				}
			})
		}
		sim.All(clock, fs...)
		for range slots {
			s, err := e.Stream(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
		}
	})
	if finished == 0 || len(endings) < 2 {
		t.Errorf("seed %d: %d finished, %d cancelled", seed, finished, len(endings))
	}
	for _, x := range endings {
		limit := x.at
		if !x.waiting {
			for _, r := range records {
				if r.Start.Before(x.at) && r.End.After(limit) {
					limit = r.End
				}
			}
		}
		if x.back.After(limit) {
			t.Errorf("seed %d: cancelled at %v, back %v later; the tasks in hand took %v more", seed, x.at, x.back.Sub(x.at), limit.Sub(x.at))
		}
	}
	if !slices.ContainsFunc(records, func(r engine.Record) bool { return r.Parts[0].Moved > 0 }) {
		t.Errorf("seed %d: no rows were moved", seed)
	}
}

// steer evaluates a prompt and a number of steps.
func steer(ctx context.Context, s *engine.Stream, prompt, steps int) error {
	next := make([]int32, prompt)
	for range steps {
		var id int32
		if err := s.Forward(ctx, next, engine.Last, func(_ int, x []float32) error {
			id = sampler.Best(x)
			return nil
		}); err != nil {
			return err
		}
		next = []int32{id}
	}
	return nil
}
