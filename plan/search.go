package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
)

// A Goal is what a plan is to be good at.
type Goal string

// The goals.
const (
	GoalDecode  Goal = "decode"  // tokens a second of all streams together
	GoalPrefill Goal = "prefill" // the time until the last stream has its first token
	GoalMixed   Goal = "mixed"   // both: the time for the prompts and then the tokens
	GoalEnergy  Goal = "energy"  // joules a token while decoding
)

// Goals lists them.
func Goals() []Goal { return []Goal{GoalDecode, GoalPrefill, GoalMixed, GoalEnergy} }

// A Problem is what to find a plan for.
type Problem struct {
	Costs *Costs // of chunks, or of pieces that may be joined to chunks
	// Join says that they are pieces: their boundaries are searched, up to Most
	// chunks. Otherwise each is a chunk and stays one.
	Join bool
	Most int
	Work Work
	Goal Goal
	// Blocks are the block sizes to try.
	Blocks []int
	// Gain is by how much a plan must be better than one with fewer units or
	// chunks to come before it, as 0.05: what predictions may err.
	Gain float64
	// Fits, if not nil, tells the memory that a plan takes on each unit and
	// whether it fits. It is called for plans that would be among the best.
	Fits func(*Plan) (bool, error)
	// Top is how many plans are wanted.
	Top int
	// Limit bounds the layouts that are looked at one by one; 0 is two million.
	Limit int64
}

// A Plan is a layout and a schedule with what they are predicted to do.
type Plan struct {
	Cuts []int // first piece of each later chunk
	Schedule
	Costs   *Costs     // of its chunks
	Decode  Prediction // every stream decodes Work.Tokens
	Prefill Prediction // every stream evaluates Work.Prompt tokens and has its first token
	Energy  Energy     // of decoding
	Memory  []Memory   // as Problem.Fits told
}

// Memory is what a plan takes on a unit.
type Memory struct {
	Unit         string
	Bytes, Limit int64 // Limit is 0 where it is not known
}

// Units are the units of a plan, each once, in the order of the chunks.
func (p *Plan) Units() []string {
	var out []string
	for _, name := range p.Placement {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// pattern names the units of the chunks in order: of the plans that have them in
// common, only the best is of interest.
func (p *Plan) pattern() string { return fmt.Sprint(p.Placement) }

// Found is what a search found.
type Found struct {
	Plans    []Plan // best first, of different units for the chunks
	Baseline Plan   // the best that uses a single unit
	// Layouts is how many ways there are to cut and place the chunks, and Space
	// how many plans with the numbers of streams, of streams merged and of rows in
	// a block. Predicted counts the schedules that were run through the graph.
	Layouts, Space int64
	Predicted      int
	// Exact says that no plan of the space is predicted better than the first.
	// Otherwise the boundaries were moved one at a time, from equal parts, as
	// long as that helped.
	Exact bool
	// Refused counts plans that do not fit into memory.
	Refused int
}

// better is how much better a is than b for a goal: 1.1 is ten per cent.
func (g Goal) better(a, b *Plan) float64 { return g.score(a) / g.score(b) }

// score is larger for a better plan.
func (g Goal) score(p *Plan) float64 {
	switch g {
	case GoalPrefill:
		return 1 / p.Prefill.TTFT.Seconds()
	case GoalMixed:
		return 1 / (p.Prefill.TTFT + p.Decode.Wall).Seconds()
	case GoalEnergy:
		if p.Energy.Joules == nil || *p.Energy.Joules <= 0 {
			return 0
		}
		return 1 / *p.Energy.Joules
	}
	return p.Decode.Aggregate
}

// A layout is where the chunks are cut and where they are.
type layout struct {
	cuts      []int
	placement []string
	bound     float64 // no schedule of it has a higher score
}

// Search finds the best plans. It is done early, with the context's error, if
// the context is.
func Search(ctx context.Context, p Problem) (Found, error) {
	s, err := newSearch(ctx, p)
	if err != nil {
		return Found{}, err
	}
	if s.found.Exact {
		err = s.all()
	} else {
		err = s.local()
	}
	if err != nil {
		return Found{}, err
	}
	return s.finish()
}

// search is a search in progress.
type search struct {
	Problem
	ctx     context.Context
	found   Found
	streams []int
	merges  []int
	best    map[string]*Plan // by pattern
	tables  map[string]table
}

func newSearch(ctx context.Context, p Problem) (*search, error) {
	if err := p.Costs.Check(); err != nil {
		return nil, err
	}
	if !slices.Contains(Goals(), p.Goal) {
		return nil, fmt.Errorf("goal %q: it must be one of %v", p.Goal, Goals())
	}
	if p.Work.Streams < 1 || p.Work.Prompt < 1 || p.Work.Tokens < 1 {
		return nil, fmt.Errorf("%d streams with %d tokens of a prompt and %d to generate: at least one of each is needed", p.Work.Streams, p.Work.Prompt, p.Work.Tokens)
	}
	if len(p.Blocks) == 0 {
		p.Blocks = []int{defaultBlock}
	}
	p.Blocks = slices.Clone(p.Blocks)
	slices.SortFunc(p.Blocks, func(a, b int) int { return b - a })
	p.Top = max(p.Top, 1)
	if p.Limit == 0 {
		p.Limit = 2e6
	}
	s := &search{Problem: p, ctx: ctx, best: map[string]*Plan{}, merges: []int{0}}
	for n := 1; n < p.Work.Streams; n *= 2 {
		s.streams = append(s.streams, n)
	}
	s.streams = append(s.streams, p.Work.Streams)
	if p.Work.Streams > 1 {
		s.merges = append(s.merges, 1)
	}
	if !p.Join || p.Most < 1 || p.Most > len(p.Costs.Chunks) {
		s.Most = len(p.Costs.Chunks)
	}
	s.found.Layouts = s.count()
	s.found.Space = s.found.Layouts * int64(len(s.streams)*len(s.merges)*len(p.Blocks))
	s.found.Exact = s.found.Layouts <= p.Limit
	s.tables = s.sums()
	return s, nil
}

// all looks at every layout, in the order of their bounds, until no other can be
// among the best.
func (s *search) all() error {
	var layouts []layout
	s.each(func(l layout) {
		l.bound = s.bound(l)
		layouts = append(layouts, l)
	})
	if len(layouts) == 0 {
		return errors.New("no unit can run all the chunks, alone or with others")
	}
	slices.SortStableFunc(layouts, func(a, b layout) int { return cmp.Compare(b.bound, a.bound) })
	single := false
	for _, l := range layouts {
		one := len(slices.Compact(slices.Sorted(slices.Values(l.placement)))) == 1
		if own := s.best[fmt.Sprint(l.placement)]; own != nil && l.bound < s.Goal.score(own) {
			continue // another of the same units is better
		}
		if len(s.best) >= s.Top && l.bound < s.worst() && (single || !one) {
			continue
		}
		single = single || one
		if err := s.try(l); err != nil {
			return err
		}
	}
	return nil
}

// worst is the score of the last of the best plans so far.
func (s *search) worst() float64 {
	var scores []float64
	for _, p := range s.best {
		scores = append(scores, s.Goal.score(p))
	}
	slices.Sort(scores)
	return scores[max(len(scores)-s.Top, 0)]
}

// local improves the boundaries of each pattern of units.
func (s *search) local() error {
	for k := 1; k <= s.Most; k++ {
		for _, placement := range s.patterns(k) {
			n := len(s.Costs.Chunks)
			cuts := make([]int, k-1)
			for i := range cuts {
				cuts[i] = (i + 1) * n / k
			}
			if err := s.climb(layout{cuts: cuts, placement: placement}); err != nil {
				return err
			}
		}
	}
	return nil
}

// climb moves one boundary at a time as long as the bound gets better, and then
// as long as the prediction does.
func (s *search) climb(l layout) error {
	if !s.able(l) {
		return nil
	}
	for _, score := range []func(layout) (float64, error){
		func(l layout) (float64, error) { return s.bound(l), nil },
		func(l layout) (float64, error) {
			before := s.best[fmt.Sprint(l.placement)]
			if err := s.try(l); err != nil {
				return 0, err
			}
			after := s.best[fmt.Sprint(l.placement)]
			if after == nil || after == before {
				return 0, nil
			}
			return s.Goal.score(after), nil
		},
	} {
		at, err := score(l)
		if err != nil {
			return err
		}
		for moved := true; moved; {
			moved = false
			for i := range l.cuts {
				for _, step := range []int{-1, 1} {
					next := layout{cuts: slices.Clone(l.cuts), placement: l.placement}
					next.cuts[i] += step
					if !ascend(next.cuts, len(s.Costs.Chunks)) {
						continue
					}
					x, err := score(next)
					if err != nil {
						return err
					}
					if x > at {
						l, at, moved = next, x, true
					}
				}
			}
		}
	}
	return nil
}

func ascend(cuts []int, n int) bool {
	last := 0
	for _, c := range cuts {
		if c <= last || c >= n {
			return false
		}
		last = c
	}
	return true
}

// try predicts the schedules of a layout and keeps the best of each pattern.
func (s *search) try(l layout) error {
	if err := s.ctx.Err(); err != nil {
		return context.Cause(s.ctx)
	}
	costs := s.Costs
	if s.Join {
		var err error
		if costs, err = costs.Join(l.cuts); err != nil {
			return err
		}
	}
	for _, streams := range s.streams {
		p, err := s.decode(costs, l, streams)
		if err != nil {
			return err
		}
		old := s.best[p.pattern()]
		if s.Goal == GoalDecode && old != nil && s.Goal.score(old) > s.Goal.score(p) {
			continue
		}
		if err := s.prompts(p); err != nil {
			return err
		}
		if old != nil && !s.before(p, old) {
			continue
		}
		if s.Fits != nil {
			fits, err := s.Fits(p)
			if err != nil {
				return err
			}
			if !fits {
				s.found.Refused++
				continue
			}
		}
		s.best[p.pattern()] = p
	}
	return nil
}

// decode finds the best merging for decoding of a layout with so many streams
// at once.
func (s *search) decode(costs *Costs, l layout, streams int) (*Plan, error) {
	work := s.Work
	work.Prompt = 1
	p := &Plan{Cuts: l.cuts, Costs: costs}
	x := Schedule{Placement: l.placement, Streams: streams, Block: s.Blocks[0]}
	for _, m := range s.merges {
		if m == 1 && streams == 1 {
			continue
		}
		x.Merge = m
		d, err := Predict(costs, x, work)
		if err != nil {
			return nil, err
		}
		s.found.Predicted++
		if m == s.merges[0] || d.Wall < p.Decode.Wall {
			p.Schedule, p.Decode = x, d
		}
	}
	p.Energy = energyOf(costs, p.Decode, work.Streams*work.Tokens)
	return p, nil
}

// prompts finds the best block size of a plan for prompts: the largest, unless
// another is surely better.
func (s *search) prompts(p *Plan) error {
	work, x := s.Work, p.Schedule
	work.Tokens = 1
	for i, b := range s.Blocks { // the largest first
		x.Block = b
		d, err := Predict(p.Costs, x, work)
		if err != nil {
			return err
		}
		s.found.Predicted++
		if i == 0 || d.TTFT.Seconds()*(1+s.Gain) < p.Prefill.TTFT.Seconds() {
			p.Block, p.Prefill = b, d
		}
	}
	return nil
}

// finish puts the best plans in order.
func (s *search) finish() (Found, error) {
	f := s.found
	var plans []*Plan
	var base *Plan
	for _, p := range s.best {
		plans = append(plans, p)
		if len(p.Units()) == 1 && (base == nil || s.before(p, base)) {
			base = p
		}
	}
	if len(plans) == 0 {
		return f, fmt.Errorf("none of %d plans fits into memory", f.Refused)
	}
	slices.SortFunc(plans, func(a, b *Plan) int {
		if s.before(a, b) {
			return -1
		}
		return 1
	})
	if base != nil {
		f.Baseline = *base
	}
	// What is surely better comes first, and of the rest what is simplest.
	first := 0
	for i, p := range plans {
		if s.Goal.better(plans[0], p) < 1+s.Gain && simpler(p, plans[first]) {
			first = i
		}
	}
	best := plans[first]
	copy(plans[1:first+1], plans[:first])
	plans[0] = best
	for _, p := range plans[:min(len(plans), s.Top)] {
		f.Plans = append(f.Plans, *p)
	}
	return f, nil
}

// simpler reports whether a uses fewer units than b, or as many and fewer
// chunks.
func simpler(a, b *Plan) bool {
	return cmp.Or(cmp.Compare(len(a.Units()), len(b.Units())), cmp.Compare(len(a.Placement), len(b.Placement))) < 0
}

// before orders plans: by score, and where scores are equal by what is simpler.
func (s *search) before(a, b *Plan) bool {
	x, y := s.Goal.score(a), s.Goal.score(b)
	if d := x - y; d > 1e-9*max(x, y) || -d > 1e-9*max(x, y) {
		return x > y
	}
	return cmp.Or(
		cmp.Compare(len(a.Units()), len(b.Units())),
		cmp.Compare(len(a.Placement), len(b.Placement)),
		-cmp.Compare(a.Decode.Aggregate, b.Decode.Aggregate),
		cmp.Compare(a.Prefill.TTFT, b.Prefill.TTFT),
		-cmp.Compare(a.Streams, b.Streams),
		slices.Compare(a.Placement, b.Placement),
		slices.Compare(a.Cuts, b.Cuts),
	) < 0
}
