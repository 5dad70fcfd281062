package measure

import (
	"context"
	"time"

	"github.com/tandemrun/tandem/engine"
	"github.com/tandemrun/tandem/plan"
	"github.com/tandemrun/tandem/sampler"
)

// How much is measured at most.
const (
	steps      = 32 // decode steps
	groupSteps = 8  // of them, one behind the other
	fewest     = 3  // trials, unless they are very long
	rounds     = 5  // turns of the units, of groupSteps each
	shallow    = 16 // positions in the caches for the first decode steps
	beside     = 64 // rows of a block of a prompt that is measured beside another
)

// limits are for how long something is measured on one unit or pair.
type limits struct {
	steps  time.Duration // decode steps of one kind, after the fewest
	block  time.Duration // a block of a prompt; longer ones are not measured
	prefix time.Duration // evaluating the positions before the decode steps
}

// limitsOf divides the time of a unit or a pair: there are about six kinds of
// steps, blocks of growing size of which the last are tried once, and positions
// before.
func limitsOf(share time.Duration) limits {
	return limits{steps: min(share/24, time.Second/2), block: min(share/4, 5*time.Second), prefix: min(share/5, 4*time.Second)}
}

// A bench measures chunks in an engine.
type bench struct {
	Config
	e      *engine.Engine
	chunks int

	// Of a model that is one chunk:
	cost       plan.Cost
	wake, host time.Duration
	stream     *engine.Stream // at the depth of decode steps
	taken      []turn         // so far
}

func (b *bench) close() error {
	if b.stream != nil {
		b.stream.Close()
	}
	return b.e.Close()
}

// prepare measures all of the one chunk of an engine but its decode steps: the
// cold run, what is for the wanted row only, blocks of prompts, and merged steps.
func (b *bench) prepare(ctx context.Context) error {
	var err error
	if b.stream, err = b.e.Stream(ctx); err != nil {
		return err
	}
	s := b.stream
	cold, err := b.forward(ctx, s, 1, engine.Last)
	if err != nil {
		return err
	}
	b.cost.Cold = cold.times[0]
	if err := b.reach(ctx, s, min(shallow, b.Depth)); err != nil {
		return err
	}
	full, err := b.decode(ctx, s, engine.Last)
	if err != nil {
		return err
	}
	blank, err := b.decode(ctx, s, engine.None)
	if err != nil {
		return err
	}
	b.cost.Head = max(full.times[0]-blank.times[0], 0)
	blocks, err := b.blocks(ctx, s, full.total)
	if err != nil {
		return err
	}
	b.cost.Rows = []plan.Sample{{N: 1}}
	for _, x := range blocks {
		b.cost.Rows = append(b.cost.Rows, plan.Sample{N: x.rows, Time: x.times[0]})
	}
	// As deep as time allows.
	depth, rate := b.Depth, 0.0 // tokens a second
	if n := len(blocks); n > 0 {
		rate = float64(blocks[n-1].rows) / blocks[n-1].total.Seconds()
		depth = min(depth, max(int(rate*b.limits.prefix.Seconds()), len(s.Tokens())))
	}
	if err := b.reach(ctx, s, depth); err != nil {
		return err
	}
	return b.merged(ctx, rate)
}

// turn takes some decode steps.
func (b *bench) turn(ctx context.Context) error {
	begin := b.e.Now()
	more, _, err := b.group(ctx, b.stream, engine.Last, func(n int) bool {
		return n >= groupSteps || n >= 1 && b.e.Now().Sub(begin) >= b.limits.steps
	})
	b.taken = append(b.taken, more...)
	return err
}

// sum sums the decode steps up.
func (b *bench) sum() {
	x := typical(b.taken)
	if len(b.taken) == 0 {
		x = turn{times: make([]time.Duration, b.chunks)} // there was no room
	}
	b.wake, b.host = x.wake, x.host
	b.cost.Rows[0].Time = x.times[0]
	if len(b.cost.Rows) == 1 {
		b.cost.Rows = plan.Linear(x.times[0], x.times[0]) // nothing better is known
	}
	for i := range b.cost.Streams { // they are what each takes more than the first
		b.cost.Streams[i].Time = max(x.times[0]+b.cost.Streams[i].Time, 0)
	}
}

// parts measures each chunk: a decode step, a block of a prompt, and what of a
// step is for the wanted row only in chunks that run for others too.
func (b *bench) parts(ctx context.Context) (step, block turn, heads []time.Duration, err error) {
	heads = make([]time.Duration, b.chunks)
	s, err := b.e.Stream(ctx)
	if err != nil {
		return step, block, heads, err
	}
	defer s.Close()
	if err = b.reach(ctx, s, min(shallow, b.Depth)); err != nil {
		return step, block, heads, err
	}
	if step, err = b.decode(ctx, s, engine.Last); err != nil {
		return step, block, heads, err
	}
	blank, err := b.decode(ctx, s, engine.None)
	if err != nil {
		return step, block, heads, err
	}
	for i, t := range blank.times {
		// A layer that has nothing of the kind differs by noise.
		if t > 0 && step.times[i] > t+t/10 {
			heads[i] = step.times[i] - t
		}
	}
	at := len(s.Tokens())
	sizes := BlockSizes(min(b.Block, b.Depth))
	if len(sizes) == 0 {
		return step, step, heads, nil
	}
	rows := sizes[0]
	for _, n := range sizes {
		// As large as is not slow and fits.
		if n <= 128 && at+n <= b.Context && step.total*time.Duration(n) < 4*b.limits.block {
			rows = n
		}
	}
	var all []turn
	for range fewest + 1 {
		if err := b.reach(ctx, s, min(at, b.Context-rows)); err != nil {
			return step, block, heads, err
		}
		waited := b.watch()
		t, err := b.forward(ctx, s, rows, engine.None)
		if err != nil {
			return step, block, heads, err
		}
		t.waited = waited()
		all = append(all, t)
		if t.total > b.limits.block/2 {
			break
		}
	}
	return step, typical(all[len(all)-max(len(all)-1, 1):]), heads, nil // the first one warms up
}

// forward evaluates n made-up tokens in one block.
func (b *bench) forward(ctx context.Context, s *engine.Stream, n int, want engine.Want) (turn, error) {
	tokens := make([]int32, n)
	for i := range tokens {
		tokens[i] = int32((len(s.Tokens()) + i*37 + 11) % b.e.Vocab())
	}
	start := b.e.Now()
	err := s.Forward(ctx, tokens, want, func(_ int, logits []float32) error {
		sampler.Best(logits) // as a stream does that generates
		return nil
	})
	t := turn{rows: n, times: make([]time.Duration, b.chunks), total: b.e.Now().Sub(start)}
	if err != nil {
		return t, err
	}
	var gaps []time.Duration
	for i, r := range s.Records() {
		t.times[r.Chunk] += r.End.Sub(r.Start)
		if i > 0 {
			gaps = append(gaps, r.Start.Sub(t.ended))
		} else if len(r.Parts) > 0 {
			t.submitted = r.Parts[0].Submitted
			t.wake = r.Start.Sub(t.submitted)
		}
		t.ended = r.End
	}
	t.gap = median(gaps)
	return t, nil
}

// watch begins to watch for disturbance; what it returns tells the share of the
// time since in which threads waited for a CPU, 0 where nobody can tell. Asking
// the system takes a while, so it is done around several steps and not between
// them.
func (b *bench) watch() (waited func() float64) {
	if b.Delay == nil {
		return func() float64 { return 0 }
	}
	before, known := b.Delay()
	start := b.e.Now()
	return func() float64 {
		took := b.e.Now().Sub(start)
		after, _ := b.Delay()
		if !known || took <= 0 {
			return 0
		}
		return float64(after-before) / float64(took)
	}
}

// reach brings a stream to a depth.
func (b *bench) reach(ctx context.Context, s *engine.Stream, depth int) error {
	if len(s.Tokens()) > depth && !s.Return(depth) {
		s.Return(0)
	}
	for len(s.Tokens()) < depth {
		if _, err := b.forward(ctx, s, min(depth-len(s.Tokens()), b.Block), engine.None); err != nil {
			return err
		}
	}
	return nil
}

// decode takes steps, in groups, and sums them up.
func (b *bench) decode(ctx context.Context, s *engine.Stream, want engine.Want) (turn, error) {
	var all []turn
	begin := b.e.Now()
	for full := false; !full && !b.enough(len(all), begin); {
		var more []turn
		var err error
		more, full, err = b.group(ctx, s, want, func(n int) bool { return n >= groupSteps || b.enough(len(all)+n, begin) })
		if err != nil {
			return turn{}, err
		}
		all = append(all, more...)
	}
	if len(all) == 0 {
		return turn{times: make([]time.Duration, b.chunks)}, nil
	}
	return typical(all), nil
}

// group takes steps with nothing between them, until it is enough or the context
// is full.
func (b *bench) group(ctx context.Context, s *engine.Stream, want engine.Want, enough func(n int) bool) (group []turn, full bool, err error) {
	waited := b.watch()
	var last time.Time
	for !enough(len(group)) {
		if full = len(s.Tokens()) >= b.Context; full {
			break
		}
		t, err := b.forward(ctx, s, 1, want)
		if err != nil {
			return nil, full, err
		}
		if !last.IsZero() { // the first one finds the unit asleep
			t.host = t.submitted.Sub(last)
			group = append(group, t)
		}
		last = t.ended
	}
	share := waited()
	group = level(group)
	for i := range group {
		group[i].waited = share
	}
	return group, full, nil
}

// enough reports whether n steps since a time are: steps that are long have less
// noise, so that fewer do.
func (b *bench) enough(n int, begin time.Time) bool {
	took := b.e.Now().Sub(begin)
	return n >= steps || n >= fewest && took >= b.limits.steps || n >= 1 && took >= 4*b.limits.steps
}

// blocks measures blocks of a prompt of growing size, halfway into a prompt of
// Depth positions, as long as they do not take too long. Step is what a decode
// step takes: blocks that take much longer than that lets expect are tried
// again, for something may have come between.
func (b *bench) blocks(ctx context.Context, s *engine.Stream, step time.Duration) ([]turn, error) {
	var out []turn
	for _, n := range BlockSizes(min(b.Block, b.Depth)) {
		likely := step * time.Duration(n)
		if k := len(out); k > 0 {
			likely = out[k-1].total * time.Duration(n) / time.Duration(out[k-1].rows)
		}
		if likely > b.limits.block && len(out) > 0 {
			break
		}
		depth := min((b.Depth-n)/2, len(s.Tokens()))
		var all []turn
		begin := b.e.Now()
		for trial := 0; trial < fewest || b.e.Now().Sub(begin) < b.limits.block/10 && trial < 3*fewest; trial++ {
			if err := b.between(ctx, s); err != nil {
				return nil, err
			}
			if err := b.reach(ctx, s, depth); err != nil {
				return nil, err
			}
			waited := b.watch()
			t, err := b.forward(ctx, s, n, engine.None)
			if err != nil {
				return nil, err
			}
			t.waited = waited()
			if trial > 0 || t.total > b.limits.block/5 { // the first one warms up
				all = append(all, t)
			}
			if t.total > b.limits.block/5 && (t.total < 2*likely || len(all) >= fewest) {
				break
			}
		}
		out = append(out, typical(all))
	}
	return out, nil
}

// between decodes some tokens. A prompt comes after something else: right behind
// another block its own working memory would still be in the caches, and it
// would take some ten per cent less than it does.
func (b *bench) between(ctx context.Context, s *engine.Stream) error {
	begin := b.e.Now()
	_, _, err := b.group(ctx, s, engine.Last, func(n int) bool {
		return n >= groupSteps-1 || n >= 1 && b.e.Now().Sub(begin) >= b.limits.steps/4
	})
	return err
}

// BlockSizes are the sizes of blocks that are measured, up to the largest that
// an engine takes.
func BlockSizes(most int) []int {
	var out []int
	for _, n := range []int{8, 32, 128, 512} {
		if n < most {
			out = append(out, n)
		}
	}
	if most > 1 {
		out = append(out, most)
	}
	return out
}

// merged measures how much more than one row a task of one row of each of
// several streams takes. The rate is that of prompts, in tokens a second; 0 if
// it is not known.
func (b *bench) merged(ctx context.Context, rate float64) error {
	if b.Streams < 2 {
		return nil
	}
	streams := []*engine.Stream{b.stream}
	// As deep as the first, if the prompts of so many do not take long.
	depth := min(b.Depth, max(int(rate*b.limits.prefix.Seconds())/b.Streams, 1))
	for len(streams) < b.Streams {
		s, err := b.e.Stream(ctx)
		if err != nil {
			return err
		}
		defer s.Close()
		if err := b.reach(ctx, s, depth); err != nil {
			return err
		}
		streams = append(streams, s)
	}
	for _, s := range streams {
		if len(s.Tokens()) >= b.Context {
			s.Return(b.Context - 1)
		}
		if _, err := b.forward(ctx, s, 1, engine.Last); err != nil {
			return err
		}
	}
	alone, _, err := b.again(ctx, streams[:1])
	if err != nil {
		return err
	}
	b.cost.Streams = []plan.Sample{{N: 1}}
	for n := 2; ; n = min(2*n, b.Streams) {
		t, together, err := b.again(ctx, streams[:n])
		if err != nil {
			return err
		}
		if !together {
			if b.cost.Most = n / 2; b.cost.Most == 1 {
				b.cost.Streams = nil // it takes one stream a task
			}
			return nil
		}
		b.cost.Streams = append(b.cost.Streams, plan.Sample{N: n, Time: t - alone})
		if n == b.Streams {
			return nil
		}
	}
}

// again runs a step of streams again as one merged task, and tells whether they
// were merged.
func (b *bench) again(ctx context.Context, streams []*engine.Stream) (time.Duration, bool, error) {
	var reruns []engine.Rerun
	for _, s := range streams {
		reruns = append(reruns, engine.Rerun{Stream: s})
	}
	var all []turn
	together := true
	begin := b.e.Now()
	for !b.enough(len(all), begin) {
		waited := b.watch()
		var group []turn
		for len(group) <= groupSteps && !b.enough(len(all)+len(group)-1, begin) {
			records, err := b.e.Again(ctx, reruns...)
			if err != nil {
				return 0, false, err
			}
			group = append(group, turn{total: records[0].End.Sub(records[0].Start)})
			together = together && records[0].Streams == len(streams)
		}
		share := waited()
		for i := range group {
			group[i].waited = share
		}
		all = append(all, level(group[1:])...) // the first one finds the unit asleep
	}
	return typical(all).total, together, nil
}
