package plan

import (
	"fmt"
	"slices"
	"time"
)

// Join makes the costs of chunks of several pieces from those of the pieces, the
// smallest chunks that were measured. Cuts are the first piece of each chunk but
// the first, and ascend. The chunks are called c1, c2 and so on.
//
// A chunk takes as long as its pieces one after the other, less what
// [Unit.Saved] says for each of them but the first. What pieces of one chunk
// hand to each other needs no handoff; what they take of one earlier chunk
// under one name is one handoff.
func (c *Costs) Join(cuts []int) (*Costs, error) {
	bounds := slices.Concat([]int{0}, cuts, []int{len(c.Chunks)})
	for i := 1; i < len(bounds); i++ {
		if bounds[i] <= bounds[i-1] {
			return nil, fmt.Errorf("cuts %v of %d pieces: they must ascend and lie between them", cuts, len(c.Chunks))
		}
	}
	out := *c
	out.Chunks = make([]Chunk, len(bounds)-1)
	chunkOf := func(piece int) int {
		i, found := slices.BinarySearch(bounds, piece)
		if !found {
			i--
		}
		return i
	}
	for i := range out.Chunks {
		pieces := c.Chunks[bounds[i]:bounds[i+1]]
		x := Chunk{Name: fmt.Sprintf("c%d", i+1), WantedOnly: true, On: map[string]Cost{}}
		for _, p := range pieces {
			x.WantedOnly = x.WantedOnly && p.WantedOnly
			for _, s := range p.Takes {
				x.Takes = gather(x.Takes, Source{chunkOf(s.From), s.Name, s.Bytes}, i, true)
			}
			for _, s := range p.Reads {
				x.Reads = gather(x.Reads, Source{chunkOf(s.From), s.Name, s.Bytes}, i, false)
			}
		}
		for _, u := range c.Units {
			if cost, ok := joined(pieces, u, x.WantedOnly); ok {
				x.On[u.Name] = cost
			}
		}
		out.Chunks[i] = x
	}
	return &out, nil
}

// gather adds a source to those of a chunk, unless it is in the chunk itself.
func gather(list []Source, s Source, chunk int, add bool) []Source {
	if s.From == chunk {
		return list
	}
	i := slices.IndexFunc(list, func(x Source) bool { return x.From == s.From && x.Name == s.Name })
	if i < 0 {
		return append(list, s)
	}
	if add {
		list[i].Bytes += s.Bytes
	}
	return list
}

// joined is the cost of pieces as one chunk on a unit.
func joined(pieces []Chunk, u Unit, wantedOnly bool) (Cost, bool) {
	var out Cost
	all := -1 // pieces that run for all rows, but the first
	cold := false
	for k, p := range pieces {
		cost, ok := p.On[u.Name]
		if !ok {
			return out, false
		}
		if k == 0 {
			out = Cost{Rows: zeroes(cost.Rows), Streams: zeroes(cost.Streams), Most: cost.Most}
		}
		if len(cost.Rows) < len(out.Rows) || len(cost.Streams) < len(out.Streams) {
			return out, false // they were not measured together
		}
		for i := range out.Rows {
			if i == 0 || wantedOnly || !p.WantedOnly {
				out.Rows[i].Time += cost.Rows[i].Time
			}
		}
		for i := range out.Streams {
			out.Streams[i].Time += cost.Streams[i].Time
		}
		cold = cold || cost.Cold > 0
		if cost.Cold > 0 {
			out.Cold += cost.Cold
		} else {
			out.Cold += cost.one()
		}
		out.Head += cost.Head
		out.Most = limit(max(out.Most, cost.Most), out.Most, cost.Most)
		if p.WantedOnly && !wantedOnly {
			out.Head += cost.one()
		}
		if wantedOnly || !p.WantedOnly {
			all++
		}
	}
	if !cold {
		out.Cold = 0
	}
	further := len(pieces) - 1
	for i, s := range u.Saved.Rows {
		n := further
		if i > 0 {
			n = all
		}
		if i < len(out.Rows) && n > 0 {
			out.Rows[i].Time = max(out.Rows[i].Time-time.Duration(n)*s.Time, 0)
		}
	}
	for i, s := range u.Saved.Streams {
		if i < len(out.Streams) {
			out.Streams[i].Time = max(out.Streams[i].Time-time.Duration(further)*s.Time, 0)
		}
	}
	return out, true
}

func zeroes(samples []Sample) []Sample {
	out := slices.Clone(samples)
	for i := range out {
		out[i].Time = 0
	}
	return out
}
