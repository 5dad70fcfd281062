package engine_test

import (
	"context"
	"errors"
	"hash/maphash"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/tandemrun/tandem/engine"
	"github.com/tandemrun/tandem/internal/golden"
	"github.com/tandemrun/tandem/sampler"
	"github.com/tandemrun/tandem/unit"
)

var seed = maphash.MakeSeed()

// bits is a hash of the bits of a row of logits.
func bits(logits []float32) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for _, x := range logits {
		b := math.Float32bits(x)
		h.Write([]byte{byte(b), byte(b >> 8), byte(b >> 16), byte(b >> 24)})
	}
	return h.Sum64()
}

// answer evaluates a prompt and then n tokens greedily, and returns the hashes
// of the logits of each step.
func answer(ctx context.Context, s *engine.Stream, prompt []int32, n int) ([]uint64, error) {
	var out []uint64
	var id int32
	next := prompt
	for range n {
		err := s.Forward(ctx, next, engine.Last, func(_ int, logits []float32) error {
			out = append(out, bits(logits))
			id = sampler.Best(logits)
			return nil
		})
		if err != nil {
			return out, err
		}
		next = []int32{id}
	}
	return out, nil
}

// prompts are four of different lengths, three longer than the sliding window.
func prompts(t testing.TB) [][]int32 {
	g := golden.Answers(t, testdata)
	return [][]int32{g[9].Prompt, g[12].Prompt[:130], g[1].Prompt, g[13].Prompt[:99]}
}

// The logits of a position do not depend on the number of chunks, threads and
// units, the block size, other streams or what runs beside it: the whole grid
// is compared bit for bit with one stream in one chunk on one thread.
func TestGrid(t *testing.T) {
	const steps = 4
	ps := prompts(t)
	for _, kv := range unit.KVs() {
		m := load(t, "q8_0")
		var want [][]uint64
		for _, p := range ps {
			h, err := answer(t.Context(), stream(t, open(t, m, layout{chunks: 1, block: 512, kv: kv})), p, steps)
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, h)
		}
		for _, chunks := range []int{1, 2, 3, 4, 10} {
			for _, threads := range []int{1, 2} {
				for _, block := range []int{1, 7, 64, 512} {
					for _, slots := range []int{1, 4} {
						l := layout{chunks: chunks, threads: threads, block: block, slots: slots, units: 1, kv: kv}
						if slots == 4 {
							l.units = min(2, chunks) // chunks take turns on two units
						}
						if kv != unit.F32 && (block == 64 || chunks == 2 || chunks == 10) {
							continue
						}
						if testing.Short() && (chunks != 4 || block == 1 || block == 512) {
							continue
						}
						t.Run(l.String(), func(t *testing.T) {
							e := open(t, m, l)
							var wg sync.WaitGroup
							for i, p := range ps[len(ps)-slots:] {
								i += len(ps) - slots
								wg.Go(func() {
									s, err := e.Stream(t.Context())
									if err != nil {
										t.Error(err)
										return
									}
									defer s.Close()
									got, err := answer(t.Context(), s, p, steps)
									if err != nil {
										t.Error(err)
									}
									if !slices.Equal(got, want[i]) {
										t.Errorf("prompt %d: logits differ from those of one stream in one chunk", i)
									}
								})
							}
							wg.Wait()
						})
					}
				}
			}
		}
	}
}

// Wanting the logits of every position changes none of them.
func TestEveryPosition(t *testing.T) {
	m, p := load(t, "q8_0"), prompts(t)[1]
	run := func(l layout, want engine.Want) map[int]uint64 {
		out := map[int]uint64{}
		err := stream(t, open(t, m, l)).Forward(t.Context(), p, want, func(pos int, logits []float32) error {
			out[pos] = bits(logits)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	all := run(layout{chunks: 4, threads: 2, block: 32, units: 2}, engine.Every)
	if len(all) != len(p) {
		t.Fatalf("logits of %d positions of %d", len(all), len(p))
	}
	if same := run(layout{chunks: 1, block: 512}, engine.Every); !mapsEqual(all, same) {
		t.Error("logits of all positions depend on the layout")
	}
	last := run(layout{chunks: 4, threads: 2, block: 64, units: 2}, engine.Last)
	if len(last) != 1 || last[len(p)-1] != all[len(p)-1] {
		t.Error("the last position's logits depend on whether others are wanted")
	}
}

func mapsEqual(a, b map[int]uint64) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if b[k] != v {
			return false
		}
	}
	return true
}

// A stream brought back to an earlier token, or given back after a cancelled
// call, continues as one that never went further.
func TestReturnEqualsPlainRun(t *testing.T) {
	m, ps := load(t, "q8_0"), prompts(t)
	e := open(t, m, layout{threads: 2, block: 16, units: 2, context: 320})
	want, err := answer(t.Context(), stream(t, open(t, m, layout{block: 16, context: 320})), ps[0], 3)
	if err != nil {
		t.Fatal(err)
	}
	s := stream(t, e)
	for _, extra := range []int{1, 5, 17, 90} {
		// What the stream sees first shares the prompt but for its end.
		first := append(slices.Clone(ps[0][:len(ps[0])-1]), ps[1][:extra]...)
		s.Return(0)
		if err := s.Forward(t.Context(), first, engine.None, nil); err != nil {
			t.Fatal(err)
		}
		n := s.Reuse(ps[0])
		if extra <= 16 && n != len(ps[0])-1 {
			t.Errorf("%d tokens further, %d of %d were kept", extra, n, len(ps[0])-1)
		}
		got, err := answer(t.Context(), s, ps[0][n:], 3)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d tokens further and back, the logits differ", extra)
		}
	}
	for range 5 {
		ctx, cancel := context.WithCancel(t.Context())
		s.Return(0)
		tasks := 0
		err := s.Forward(ctx, ps[1], engine.Every, func(int, []float32) error {
			if tasks++; tasks == 20 {
				cancel()
			}
			return nil
		})
		cancel()
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("cancelled: %v", err)
		}
		n := s.Reuse(ps[0])
		got, err := answer(t.Context(), s, ps[0][n:], 3)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Error("after a cancelled call the logits differ")
		}
	}
}

// A full context ends a generation with a reason, a prompt that does not fit is
// an error, and streams beyond the slots wait.
func TestLimits(t *testing.T) {
	m, p := load(t, "q8_0"), prompts(t)[2]
	e := open(t, m, layout{block: 16, context: len(p) + 3})
	s := stream(t, e)
	r, err := s.Generate(t.Context(), engine.Generation{Prompt: p, Picker: sampler.New(sampler.Options{})}, func(engine.Token) bool { return true })
	if err != nil || r.End != engine.EndContext || len(r.Tokens) != 4 {
		t.Errorf("%d tokens, %s, %v; want 4, context_full", len(r.Tokens), r.End, err)
	}
	_, err = s.Generate(t.Context(), engine.Generation{Prompt: prompts(t)[0], Picker: sampler.New(sampler.Options{})}, nil)
	if !errors.Is(err, engine.ErrContext) {
		t.Errorf("a prompt past the context: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Stream(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a stream too many: %v", err)
	}
	if err := s.Forward(ctx, p[:1], engine.Last, nil); !errors.Is(err, context.Canceled) && !errors.Is(err, engine.ErrContext) {
		t.Errorf("a cancelled call: %v", err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	s.Return(0)
	if err := s.Forward(t.Context(), p[:1], engine.Last, nil); !errors.Is(err, engine.ErrClosed) {
		t.Errorf("a closed engine: %v", err)
	}
}

// A bad token is an error of its stream alone.
func TestBadToken(t *testing.T) {
	m := load(t, "q8_0")
	e := open(t, m, layout{block: 16, slots: 2, units: 2})
	s := stream(t, e)
	for _, id := range []int32{-1, 2048, math.MaxInt32} {
		if err := s.Forward(t.Context(), []int32{2, id}, engine.Last, nil); err == nil {
			t.Errorf("token %d was taken", id)
		}
	}
	if _, err := answer(t.Context(), stream(t, e), prompts(t)[2], 1); err != nil {
		t.Error(err)
	}
}
