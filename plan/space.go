package plan

import (
	"math"
	"slices"
	"time"
)

// patterns are the ways to put k chunks on units. Of pieces that may be joined,
// neighbours on one unit would be one chunk.
func (s *search) patterns(k int) [][]string {
	var out [][]string
	var names []string
	var add func()
	add = func() {
		if len(names) == k {
			out = append(out, slices.Clone(names))
			return
		}
		for _, u := range s.Costs.Units {
			if s.Join && len(names) > 0 && names[len(names)-1] == u.Name {
				continue
			}
			if s.Costs.apart(names, u) {
				continue
			}
			if !s.Join {
				if _, ok := s.Costs.Chunks[len(names)].On[u.Name]; !ok {
					continue
				}
			}
			names = append(names, u.Name)
			add()
			names = names[:len(names)-1]
		}
	}
	add()
	return out
}

// apart reports whether a unit cannot be used beside some of others.
func (c *Costs) apart(names []string, u Unit) bool {
	for _, name := range names {
		if slices.Contains(u.Never, name) || slices.Contains(c.Units[c.unit(name)].Never, u.Name) {
			return true
		}
	}
	return false
}

// count is the number of layouts.
func (s *search) count() int64 {
	if !s.Join {
		// Patterns may be too many to be listed; then this is at most their number.
		n := 1.0
		for _, x := range s.Costs.Chunks {
			n *= float64(len(x.On))
		}
		return int64(min(n, 1e18))
	}
	var n int64
	for k := 1; k <= s.Most; k++ {
		n += int64(len(s.patterns(k))) * choose(len(s.Costs.Chunks)-1, k-1)
	}
	return n
}

func choose(n, k int) int64 {
	out := int64(1)
	for i := range k {
		out = out * int64(n-i) / int64(i+1)
	}
	return out
}

// each lists all layouts.
func (s *search) each(f func(layout)) {
	n := len(s.Costs.Chunks)
	if !s.Join {
		cuts := make([]int, n-1)
		for i := range cuts {
			cuts[i] = i + 1
		}
		for _, p := range s.patterns(n) {
			f(layout{cuts: cuts, placement: p})
		}
		return
	}
	for k := 1; k <= s.Most; k++ {
		patterns := s.patterns(k)
		cuts := make([]int, 0, k-1)
		var cut func(from int)
		cut = func(from int) {
			if len(cuts) == k-1 {
				for _, p := range patterns {
					if l := (layout{cuts: slices.Clone(cuts), placement: p}); s.able(l) {
						f(l)
					}
				}
				return
			}
			for c := from; c <= n-(k-1-len(cuts)); c++ {
				cuts = append(cuts, c)
				cut(c + 1)
				cuts = cuts[:len(cuts)-1]
			}
		}
		cut(1)
	}
}

// able reports whether every piece can be on the unit of its chunk.
func (s *search) able(l layout) bool {
	for i := range s.Costs.Chunks {
		if math.IsInf(s.tables[l.unit(i)].token[i+1], 1) {
			return false
		}
	}
	return true
}

// unit is the unit of a piece.
func (l layout) unit(piece int) string {
	i, found := slices.BinarySearch(l.cuts, piece)
	if found {
		i++
	}
	return l.placement[i]
}

// A table has, for one unit, sums over the pieces before each: seconds that a
// token takes alone and at least, and that a row of a prompt takes at least.
type table struct {
	alone, token, row []float64
	saved             [3]float64 // of them, for each further piece of a chunk
	watts             float64
}

func (s *search) sums() map[string]table {
	out := map[string]table{}
	for _, u := range s.Costs.Units {
		n := len(s.Costs.Chunks)
		t := table{make([]float64, n+1), make([]float64, n+1), make([]float64, n+1), [3]float64{}, 0}
		if u.BusyWatts != nil {
			t.watts = *u.BusyWatts
		}
		for i, x := range s.Costs.Chunks {
			a, b, r := math.Inf(1), math.Inf(1), math.Inf(1)
			if cost, ok := x.On[u.Name]; ok {
				a, b, r = s.pieces(cost)
				if x.WantedOnly {
					r = 0
				}
			}
			t.alone[i+1], t.token[i+1], t.row[i+1] = t.alone[i]+a, t.token[i]+b, t.row[i]+r
		}
		if s.Join && len(u.Saved.Rows) > 0 {
			// Saved by one row; what several rows or streams save is less for each.
			x := max(u.Saved.one().Seconds(), 0)
			t.saved = [3]float64{x, x, x}
		}
		out[u.Name] = t
	}
	return out
}

// pieces is what a token takes alone and at least, and a row of a prompt at least.
func (s *search) pieces(cost Cost) (alone, token, row float64) {
	per := func(d time.Duration, n int) float64 { return d.Seconds() / float64(n) }
	alone = cost.one().Seconds()
	token = alone
	for n := 2; n <= limit(s.Work.Streams, cost.most()); n++ {
		token = min(token, per(at(cost.Streams, n), n))
	}
	row = alone
	for n := 1; n <= slices.Max(s.Blocks); n *= 2 {
		row = min(row, per(cost.block(n), n))
	}
	for _, n := range append([]int{s.Work.Prompt}, s.Blocks...) {
		row = min(row, per(cost.block(n), n))
	}
	return alone, token, row
}

// bound is a score that no schedule of a layout has: handoffs, waking, queues
// and the host are left out.
func (s *search) bound(l layout) float64 {
	var alone, joules float64
	token, row := map[string]float64{}, map[string]float64{}
	from := 0
	for i, name := range l.placement {
		to := len(s.Costs.Chunks)
		if i < len(l.cuts) {
			to = l.cuts[i]
		}
		t := s.tables[name]
		further := float64(to - from - 1)
		span := func(sums []float64, k int) float64 { return max(sums[to]-sums[from]-further*t.saved[k], 0) }
		alone += span(t.alone, 0)
		token[name] += span(t.token, 1)
		row[name] += span(t.row, 2)
		joules += t.watts * span(t.token, 1)
		from = to
	}
	streams, tokens, prompt := float64(s.Work.Streams), float64(s.Work.Tokens), float64(s.Work.Prompt)
	decode := max(alone/streams, s.busiest(l, token)) // seconds a token
	var ttft float64
	for _, b := range row {
		ttft = max(ttft, streams*prompt*b)
	}
	switch s.Goal {
	case GoalPrefill:
		return 1 / ttft
	case GoalMixed:
		return 1 / (ttft + decode*streams*tokens)
	case GoalEnergy:
		return 1 / joules
	}
	return 1 / decode
}

// busiest is the least time in which units do what each has to: the time of the
// busiest, and of two that slow each other what both need with that.
func (s *search) busiest(l layout, busy map[string]float64) float64 {
	var most float64
	for _, b := range busy {
		most = max(most, b)
	}
	if len(busy) != 2 {
		return most
	}
	first := l.placement[0]
	second := first
	for _, name := range l.placement {
		if name != first {
			second = name
		}
	}
	x, y := s.slow(first, second), s.slow(second, first)
	a, b := busy[first], busy[second]
	both := min(a*x, b*y) // for so long both are at work, if they are as much as can be
	return max(most, min(a+b, both+max(a-both/x, 0)+max(b-both/y, 0)))
}

func (s *search) slow(unit, with string) float64 {
	for _, x := range s.Costs.Contention {
		if x.Unit == unit && x.With == with {
			return x.Decode
		}
	}
	return 1
}
