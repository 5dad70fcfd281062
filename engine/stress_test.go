package engine_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Sixteen streams of random lengths come, are cancelled and finish at random
// over six slots and two units. Every one that finishes has the logits of its
// run alone, and no slot is lost. It takes two seconds, or as long as
// TANDEM_STRESS says ("1m").
func TestStress(t *testing.T) {
	length := 2 * time.Second
	if s := os.Getenv("TANDEM_STRESS"); s != "" {
		var err error
		if length, err = time.ParseDuration(s); err != nil {
			t.Fatalf("TANDEM_STRESS: %v", err)
		}
	}
	const slots = 6
	m := load(t, "q8_0")
	type work struct {
		prompt []int32
		steps  int
		want   []uint64
	}
	var works []work
	alone := stream(t, open(t, m, layout{chunks: 1, block: 512}))
	for i, p := range prompts(t) {
		for _, n := range []int{2, 9, 40, len(p)} {
			w := work{prompt: p[:min(n, len(p))], steps: 1 + (i*5+n)%12}
			alone.Return(0)
			var err error
			if w.want, err = answer(t.Context(), alone, w.prompt, w.steps); err != nil {
				t.Fatal(err)
			}
			works = append(works, w)
		}
	}
	e := open(t, m, layout{block: 16, slots: slots, units: 2})
	var finished, cancelled atomic.Int64
	end := time.Now().Add(length)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 3))
			for time.Now().Before(end) {
				w := works[rng.IntN(len(works))]
				ctx, cancel := context.WithCancel(t.Context())
				if rng.IntN(3) == 0 {
					time.AfterFunc(time.Duration(rng.IntN(20_000))*time.Microsecond, cancel)
				}
				s, err := e.Stream(ctx)
				if err == nil {
					var got []uint64
					got, err = answer(ctx, s, w.prompt, w.steps)
					if err == nil && !slices.Equal(got, w.want) {
						t.Errorf("a prompt of %d tokens: logits differ from those of its run alone", len(w.prompt))
					}
					s.Close()
				}
				switch {
				case err == nil:
					finished.Add(1)
				case errors.Is(err, context.Canceled):
					cancelled.Add(1)
				default:
					t.Error(err)
				}
				cancel()
			}
		})
	}
	wg.Wait()
	t.Logf("%d finished, %d cancelled", finished.Load(), cancelled.Load())
	if finished.Load() == 0 || cancelled.Load() == 0 {
		t.Error("nothing finished, or nothing was cancelled")
	}
	for range slots { // all slots are free again
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		s, err := e.Stream(ctx)
		if err != nil {
			t.Fatalf("a slot is lost: %v", err)
		}
		defer s.Close()
	}
}
