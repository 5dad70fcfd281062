package spike

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tandemrun/tandem/engine"
	"github.com/tandemrun/tandem/plan"
)

// mergedTime is how long tasks of several streams are measured on a unit, and
// promptTime how long a prompt may take in one unit.
const (
	mergedTime = 1500 * time.Millisecond
	promptTime = 1500 * time.Millisecond
)

// Sizes of the prompt that is measured, in tokens. It is the longest that does
// not take too long, and flows in blocks of an eighth of it.
const (
	longestPrompt  = 512
	shortestPrompt = 64
	firstBlock     = 32 // tells how long a prompt will take
	blocksOfPrompt = 8
	blockTrials    = 3
)

// merged measures tasks of a row of several streams, as multiples of those of
// one stream measured in the same way.
func (s *session) merged(ctx context.Context, x *rig, name string) error {
	most := slices.Max(s.o.Streams)
	if most < 2 {
		return nil
	}
	var prompts []Prompt
	for range most {
		prompts = append(prompts, s.lab.Prompts()[0])
	}
	streams, err := x.prepare(ctx, prompts)
	defer closeStreams(streams)
	if err != nil {
		return err
	}
	for i, st := range streams {
		p := prompts[i].Tokens
		if err := st.Forward(ctx, p[len(p)-1:], engine.Last, func(int, []float32) error { return nil }); err != nil {
			return err
		}
	}
	s.stage("chunks on %s, several streams at once", name)
	kinds := []several{{1, 1}}
	for _, n := range s.o.Streams {
		if n > 1 {
			kinds = append(kinds, several{n, 0}, several{n, 1})
		}
	}
	type pass struct { // one round
		took  [][]float64 // by kind and chunk
		quiet []bool      // by kind
	}
	var seen []pass
	limit := make([]int, len(x.place)) // 0: none was found
	rounds := windows
	for round, begin := 0, x.e.Now(); round < rounds; round++ {
		if round == 1 {
			rounds = max(3, min(windows, int(mergedTime/max(x.e.Now().Sub(begin), 1))))
		}
		one := pass{make([][]float64, len(kinds)), make([]bool, len(kinds))}
		for n, k := range kinds {
			done, begin := s.watch(), x.e.Now()
			tasks := make([]float64, len(x.place))
			for i := range x.place {
				var most int
				if tasks[i], most, err = k.run(ctx, x, streams, i); err != nil {
					return err
				}
				if k.merge == 0 && most < k.streams {
					limit[i] = most
				}
			}
			d := x.e.Now().Sub(begin)
			delay, quiet := done(d)
			s.raw.add(Line{Kind: "merged", Unit: name, Streams: k.streams, Merge: &k.merge, MS: number(ms(d)), DelayMS: number(ms(delay)), Kept: &quiet})
			one.took[n], one.quiet[n] = tasks, quiet
		}
		seen = append(seen, one)
	}
	// ratio is how many times as long a kind takes in a chunk as one stream in the
	// same round, by the rounds in which both were undisturbed, if there are any.
	ratio := func(k several, i int) float64 {
		n := slices.Index(kinds, k)
		var quiet, all []float64
		for _, r := range seen {
			x := r.took[n][i] / r.took[0][i]
			all = append(all, x)
			if r.quiet[n] && r.quiet[0] {
				quiet = append(quiet, x)
			}
		}
		if len(quiet) == 0 {
			return median(all)
		}
		return median(quiet)
	}
	for i := range x.place {
		if x.place[i] != name {
			continue
		}
		c := s.costs.Chunks[i].On[name]
		c.Most = limit[i]
		for _, k := range kinds {
			if k.merge == 0 && (limit[i] == 0 || k.streams <= limit[i]) {
				c.Streams = append(c.Streams, plan.Sample{N: k.streams, Time: time.Duration(ratio(k, i) * float64(c.Rows[0].Time))})
			}
		}
		if c.Most == 1 {
			c.Streams = nil
		}
		row := several{most, 1} // one task as ever, and the others right behind it
		next := (ratio(row, i) - 1) / float64(most-1)
		c.Next = time.Duration(min(max(next, 0), 1) * float64(c.Rows[0].Time))
		s.costs.Chunks[i].On[name] = c
	}
	return nil
}

// several is a row each of some streams that ask for a chunk at once, in one task
// (merge 0) or one after the other (merge 1).
type several struct{ streams, merge int }

// run returns what they take together, in milliseconds, and the most streams of
// a task.
func (k several) run(ctx context.Context, x *rig, streams []*engine.Stream, chunk int) (float64, int, error) {
	x.e.SetMerge(k.merge)
	records, err := x.e.Again(ctx, reruns(streams[:k.streams], chunk)...)
	if err != nil {
		return 0, 0, err
	}
	var sum time.Duration
	most := 0
	for i, r := range records {
		if i == 0 || !r.Start.Equal(records[i-1].Start) { // merged ones share a record
			sum += r.End.Sub(r.Start)
		}
		most = max(most, r.Streams)
	}
	return ms(sum), most, nil
}

func reruns(streams []*engine.Stream, chunk int) []engine.Rerun {
	var out []engine.Rerun
	for _, s := range streams {
		out = append(out, engine.Rerun{Stream: s, Chunk: chunk})
	}
	return out
}

// size chooses how long the prompt is: as long as does not take too long on any
// unit that schedules use.
func (s *session) size(ctx context.Context) error {
	n := longestPrompt
	for _, name := range s.used() {
		x, err := s.rigs.get(ctx, s.only(name), longestPrompt)
		if err != nil {
			return err
		}
		s.stage("a block on %s", name)
		st, err := x.e.Stream(ctx)
		if err != nil {
			return err
		}
		d, err := s.block(ctx, x, st, firstBlock, nil)
		st.Close()
		if err != nil {
			return fmt.Errorf("a block on %s: %w", name, err)
		}
		for n > shortestPrompt && d*time.Duration(n/firstBlock) > promptTime {
			n /= 2
		}
	}
	s.r.Prefill.Tokens, s.r.Prefill.Block = n, n/blocksOfPrompt
	return nil
}

// blocks measures tasks of the rows of a block of a prompt, and of a whole one.
func (s *session) blocks(ctx context.Context, x *rig, name string) error {
	st, err := x.e.Stream(ctx)
	if err != nil {
		return err
	}
	defer st.Close()
	s.stage("chunks on %s, blocks of a prompt", name)
	for _, n := range []int{s.r.Prefill.Block, s.r.Prefill.Tokens} {
		took := make([][]float64, len(x.place))
		if _, err := s.block(ctx, x, st, n, took); err != nil {
			return err
		}
		for i := range x.place {
			if c := s.costs.Chunks[i].On[name]; x.place[i] == name && len(took[i]) > 0 {
				c.Rows = append(c.Rows, plan.Sample{N: n, Time: milliseconds(median(took[i]))})
				s.costs.Chunks[i].On[name] = c
			}
		}
	}
	return nil
}

// block evaluates a block of n tokens in the middle of the prompt, so that it sees
// as many positions as the prompt's blocks on average do, and runs each chunk that
// computes all of its rows some more times, adding to took. It returns the time of
// the first evaluation.
func (s *session) block(ctx context.Context, x *rig, st *engine.Stream, n int, took [][]float64) (time.Duration, error) {
	st.Return(0)
	before := max(s.r.Prefill.Tokens-n, 0) / 2
	tokens := s.promptOf(before + n)
	if before > 0 {
		if err := st.Forward(ctx, tokens[:before], engine.None, nil); err != nil {
			return 0, err
		}
	}
	begin := x.e.Now()
	if err := st.Forward(ctx, tokens[before:], engine.Last, func(int, []float32) error { return nil }); err != nil {
		return 0, err
	}
	d := x.e.Now().Sub(begin)
	disturbed := make([][]float64, len(took))
	trials := blockTrials
	if d > promptTime {
		trials = 1
	}
	for range trials {
		for i := range took {
			if s.costs.Chunks[i].WantedOnly {
				continue
			}
			done := s.watch()
			r, err := x.e.Again(ctx, engine.Rerun{Stream: st, Chunk: i})
			if err != nil {
				return 0, err
			}
			one := r[0].End.Sub(r[0].Start)
			delay, quiet := done(one)
			s.raw.add(Line{Kind: "block", Chunk: s.chunk(i), Unit: x.place[i], Rows: n, MS: number(ms(one)), DelayMS: number(ms(delay)), Kept: &quiet})
			if quiet {
				took[i] = append(took[i], ms(one))
			} else {
				disturbed[i] = append(disturbed[i], ms(one))
			}
		}
	}
	for i := range took {
		if len(took[i]) == 0 {
			took[i] = disturbed[i]
		}
	}
	return d, nil
}

// promptOf makes up a prompt of n tokens of what prompts there are.
func (s *session) promptOf(n int) []int32 {
	var out []int32
	for i := 0; len(out) < n; i++ {
		ps := s.lab.Prompts()
		out = append(out, ps[i%len(ps)].Tokens...)
	}
	return out[:n]
}
