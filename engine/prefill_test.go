package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tandemrun/tandem/engine"
	"github.com/tandemrun/tandem/sampler"
	"github.com/tandemrun/tandem/unit"
)

// A conversation prefills and decodes in turn, goes back and goes on: parts are
// the prompts of its turns.
type conversation struct {
	parts [][]int32
	steps int // decoded after each
	back  int // tokens to which it returns at last
}

func conversations(t testing.TB) []conversation {
	p := prompts(t)
	return []conversation{
		{[][]int32{p[0][:90], p[1][:20], p[2]}, 4, 100},
		{[][]int32{p[1], p[3][:70]}, 5, 120},
		{[][]int32{p[2], p[2][:1], p[0][:40]}, 3, 9},
		{[][]int32{p[3], p[3][:2]}, 7, 95},
	}
}

// run returns the hashes of the logits of each turn's end and each step.
func (c conversation) run(ctx context.Context, s *engine.Stream) ([]uint64, error) {
	var out []uint64
	for _, p := range c.parts {
		got, err := answer(ctx, s, p, c.steps)
		if err != nil {
			return nil, err
		}
		out = append(out, got...)
	}
	// Caches of other shapes may or may not go back so far.
	before := slices.Clone(s.Tokens()[:c.back])
	if !s.Return(c.back) {
		if err := s.Forward(ctx, before, engine.None, nil); err != nil {
			return nil, err
		}
	}
	for _, p := range [][]int32{{7}, {9, 11}} {
		got, err := answer(ctx, s, p, 2)
		if err != nil {
			return nil, err
		}
		out = append(out, got...)
	}
	return out, nil
}

// Prefill may be on other units than decode, whatever they are, and no bit of
// any logits changes.
func TestPrefillPlacement(t *testing.T) {
	cs := conversations(t)
	rng := rand.New(rand.NewPCG(5, 7))
	random := func(n, units int) []int {
		var out []int
		for range n {
			out = append(out, rng.IntN(units))
		}
		return out
	}
	for _, kv := range []unit.KV{unit.F32, unit.F16} {
		m := load(t, "q8_0")
		want := make([][]uint64, len(cs))
		for i, c := range cs {
			var err error
			if want[i], err = c.run(t.Context(), stream(t, open(t, m, layout{chunks: 1, block: 512, kv: kv}))); err != nil {
				t.Fatal(err)
			}
		}
		for _, chunks := range []int{1, 2, 4, 10} {
			for _, block := range []int{3, 16, 512} {
				for k := range 6 {
					l := layout{chunks: chunks, threads: 1, block: block, units: 3, kv: kv, slots: len(cs), beside: 5}
					l.place, l.prefill = random(chunks, 3), random(chunks, 3)
					if k == 0 { // all of one on one unit, all of the other on another
						l.place, l.prefill = make([]int, chunks), slices.Repeat([]int{1}, chunks)
					}
					if testing.Short() && (k > 2 || kv == unit.F16 && block != 16) {
						continue
					}
					t.Run(l.String(), func(t *testing.T) {
						e := open(t, m, l)
						var wg sync.WaitGroup
						for i, c := range cs {
							wg.Go(func() {
								s, err := e.Stream(t.Context())
								if err != nil {
									t.Error(err)
									return
								}
								defer s.Close()
								got, err := c.run(t.Context(), s)
								if err != nil {
									t.Error(err)
								}
								if !slices.Equal(got, want[i]) {
									t.Errorf("conversation %d: logits differ from those on one unit", i)
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

// What moves when a stream goes from prefill to decode and back is what the
// other side does not have, and of a sliding window no more than it shows.
func TestMovedRows(t *testing.T) {
	m := load(t, "q8_0")
	const chunks, window = 4, 64
	for _, x := range []struct {
		name           string
		place, prefill []int
		// Layers that move, for a sliding and a full one.
		sliding, full int
	}{
		// c1 and c2 own the caches of layers 0 to 4; c4, which is layer 9, reads
		// that of layer 4, the full one.
		{"all", []int{0}, []int{1}, 4, 1},
		{"none", []int{0}, []int{0}, 0, 0},
		// Each side's c4 is on the unit of the other side's c2, to whose store it
		// copies the rows it reads: those of layer 4 are never missing.
		{"crossed", []int{0, 0, 0, 1}, []int{1, 1, 1, 0}, 4, 0},
	} {
		t.Run(x.name, func(t *testing.T) {
			l := layout{chunks: chunks, block: 32, units: 2}
			for i := range chunks {
				l.place = append(l.place, x.place[min(i, len(x.place)-1)])
				l.prefill = append(l.prefill, x.prefill[min(i, len(x.prefill)-1)])
			}
			var mu sync.Mutex
			var moved []int
			var bytes int64
			e := openWith(t, m, l, func(c *engine.Config) {
				c.Observe = func(r engine.Record) {
					mu.Lock()
					defer mu.Unlock()
					for _, p := range r.Parts {
						if p.Moved == 0 {
							continue
						}
						if r.Rows != 0 || r.Streams != 1 || r.CopiedBytes == 0 || len(r.Parts) != 1 {
							t.Errorf("a move of rows: %+v", r)
						}
						moved = append(moved, p.Moved)
						bytes += r.CopiedBytes
					}
				}
			})
			s := stream(t, e)
			next := int32(2)
			forward := func(n int) {
				t.Helper()
				tokens := make([]int32, n)
				for i := range tokens {
					tokens[i] = next%50 + 2
					next += 7
				}
				if err := s.Forward(t.Context(), tokens, engine.Last, func(int, []float32) error { return nil }); err != nil {
					t.Fatal(err)
				}
			}
			check := func(when string, sliding, full int) {
				t.Helper()
				mu.Lock()
				defer mu.Unlock()
				slices.Sort(moved)
				// Each is read and written.
				var want []int
				if full > 0 {
					want = append(slices.Repeat([]int{sliding}, 2*x.sliding), slices.Repeat([]int{full}, 2*x.full)...)
				}
				if slices.Sort(want); !slices.Equal(moved, want) {
					t.Errorf("%s: rows moved %v, not %v", when, moved, want)
				}
				if b := int64(4 * 2 * (2*x.sliding*sliding*32 + 2*x.full*full*64)); bytes != b {
					t.Errorf("%s: %d bytes, not %d", when, bytes, b)
				}
				moved, bytes = nil, 0
			}
			forward(100)
			check("the first prompt", 0, 0)
			forward(1)
			check("the first step", window-1, 100)
			forward(1)
			check("the second step", 0, 0)
			forward(40)
			check("the second prompt", 2, 2)
			forward(1)
			check("a step after it", 40, 40)
		})
	}
}

// After a cancelled call, however far it came, the caches on both sides are
// what the stream says they are.
func TestCancelledMove(t *testing.T) {
	m, c := load(t, "q8_0"), conversations(t)[0]
	want, err := c.run(t.Context(), stream(t, open(t, m, layout{chunks: 1, block: 512})))
	if err != nil {
		t.Fatal(err)
	}
	var at, stop int
	cancel := func() {}
	e := openWith(t, m, layout{chunks: 4, block: 16, units: 3, place: []int{0, 0, 1, 2}, prefill: []int{1, 0, 2, 1}}, func(c *engine.Config) {
		c.Merge = 1
		var mu sync.Mutex
		c.Observe = func(engine.Record) {
			mu.Lock()
			defer mu.Unlock()
			if at++; at == stop {
				cancel()
			}
		}
	})
	s := stream(t, e)
	prompt := slices.Concat(c.parts[1], c.parts[0])
	ended := 0
	for stop = 1; stop < 90; stop++ {
		s.Return(0)
		at = 0
		var ctx context.Context
		ctx, cancel = context.WithCancel(t.Context())
		_, err := answer(ctx, s, prompt, 3)
		cancel()
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if err != nil {
			ended++
		}
		n := len(s.Tokens())
		// The same tokens again, from where it ended, by another way: each alone.
		for _, id := range append(slices.Clone(prompt), 1)[min(n, len(prompt)):] {
			if err := s.Forward(t.Context(), []int32{id}, engine.Last, func(_ int, x []float32) error {
				sampler.Best(x)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}
		if stop%9 != 0 {
			continue // most of the time only that nothing is lost
		}
		s.Return(0)
		cancelledAt := stop
		stop = -1
		got, err := c.run(t.Context(), s)
		stop = cancelledAt
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("after a call that was cancelled at task %d the logits differ", stop)
		}
	}
	if ended < 40 {
		t.Errorf("only %d calls were cancelled", ended)
	}
}

// Chunks says where decode is, and PrefillChunks what was compiled once more.
func TestPrefillChunks(t *testing.T) {
	e := open(t, load(t, "q8_0"), layout{chunks: 4, block: 16, units: 2, place: []int{0, 0, 0, 0}, prefill: []int{0, 1, 0, 1}})
	var got []string
	for _, c := range append(e.Chunks(), e.PrefillChunks()...) {
		got = append(got, fmt.Sprintf("%s@%s", c.Name, c.Unit))
		if c.Bytes.Weights == 0 {
			t.Errorf("%s has no weights", c.Name)
		}
	}
	if s := strings.Join(got, " "); s != "c1@cpu:0 c2@cpu:0 c3@cpu:0 c4@cpu:0 c2@cpu:1 c4@cpu:1" {
		t.Error(s)
	}
	if u := strings.Join(e.Units(), " "); u != "cpu:0 cpu:1" {
		t.Error(u)
	}
}
