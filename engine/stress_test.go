package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tandemrun/tandem/engine"
)

// work is a prompt and the hashes of its answer's logits.
type work struct {
	prompt []int32
	steps  int
	want   []uint64
}

// Sixteen streams of random lengths come, are cancelled and finish at random
// over six slots and three units, with decode and prefill placed at random anew
// in each round. Every one that finishes has the logits of its run alone, and no
// slot is lost. It takes two seconds, or as long as TANDEM_STRESS says ("1m").
func TestStress(t *testing.T) {
	length, rounds := 2*time.Second, 4
	if s := os.Getenv("TANDEM_STRESS"); s != "" {
		var err error
		if length, err = time.ParseDuration(s); err != nil {
			t.Fatalf("TANDEM_STRESS: %v", err)
		}
		rounds = 1 + int(length/(4*time.Second))
	}
	const slots = 6
	m := load(t, "q8_0")
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
	var finished, cancelled atomic.Int64
	for i := range rounds {
		rng := rand.New(rand.NewPCG(uint64(i), 11))
		l := layout{chunks: 4, block: 16, slots: slots, units: 3, beside: 1 + rng.IntN(16)}
		for range l.chunks {
			l.place, l.prefill = append(l.place, rng.IntN(3)), append(l.prefill, rng.IntN(3))
		}
		e := open(t, m, l)
		end := time.Now().Add(length / time.Duration(rounds))
		var wg sync.WaitGroup
		for k := range 16 {
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(i), uint64(k)))
				for time.Now().Before(end) {
					w := works[rng.IntN(len(works))]
					if err := stressed(t, e, rng, w); err == nil {
						finished.Add(1)
					} else if errors.Is(err, context.Canceled) {
						cancelled.Add(1)
					} else {
						t.Errorf("place %d, prefill %d: %v", l.place, l.prefill, err)
					}
				}
			})
		}
		wg.Wait()
		for range slots { // all slots are free again
			ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
			defer cancel()
			s, err := e.Stream(ctx)
			if err != nil {
				t.Fatalf("a slot is lost: %v", err)
			}
			defer s.Close()
		}
	}
	t.Logf("%d finished, %d cancelled", finished.Load(), cancelled.Load())
	if finished.Load() == 0 || cancelled.Load() == 0 {
		t.Error("nothing finished, or nothing was cancelled")
	}
}

// stressed opens a stream and answers a prompt, once or, after a time that a
// person would read, once more. One in three is cancelled at a random time; one
// in two of these goes on then with what it has.
func stressed(t *testing.T, e *engine.Engine, rng *rand.Rand, w work) error {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if rng.IntN(3) == 0 {
		time.AfterFunc(time.Duration(rng.IntN(20_000))*time.Microsecond, cancel)
	}
	s, err := e.Stream(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	ended := error(nil)
	for range 1 + rng.IntN(2) {
		got, err := answer(ctx, s, w.prompt[s.Reuse(w.prompt):], w.steps)
		if errors.Is(err, context.Canceled) && rng.IntN(2) == 0 {
			ended, ctx = err, t.Context()
			got, err = answer(ctx, s, w.prompt[s.Reuse(w.prompt):], w.steps)
		}
		if err != nil {
			return err
		}
		if !slices.Equal(got, w.want) {
			return fmt.Errorf("a prompt of %d tokens: logits differ from those of its run alone", len(w.prompt))
		}
	}
	return ended
}
