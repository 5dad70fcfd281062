package plan

import (
	"time"

	"github.com/tandemrun/tandem/unit/sim"
)

// FromProfile are the costs that a device profile states. It says nothing of
// contention, so there is none. Its rules about buffers are not followed; they
// only matter where a profile has backed outputs.
func FromProfile(p *sim.Profile) *Costs {
	ms := func(x float64) time.Duration { return time.Duration(x*1e6 + 0.5) }
	c := &Costs{Name: p.Name, Host: p.Host()}
	for _, u := range p.Units {
		c.Units = append(c.Units, Unit{Name: u.Name, Driver: u.Driver, BusyWatts: u.Busy, IdleWatts: u.Idle, Watts: u.Watts})
	}
	index := map[string]int{}
	own := 0 // behind the last chunk that reads no other's cache
	for i, x := range p.Chunks {
		index[x.Name] = i
		if len(x.Reads) == 0 {
			own = i + 1
		}
	}
	for i, x := range p.Chunks {
		k := Chunk{Name: x.Name, WantedOnly: i >= own, On: map[string]Cost{}}
		if i > 0 {
			k.Takes = append(k.Takes, Source{i - 1, "state", int64(4 * p.Hidden)})
		}
		for from := range i {
			if n := x.Takes[p.Chunks[from].Name]; n > 0 {
				k.Takes = append(k.Takes, Source{from, "rows", int64(4 * n)})
			}
		}
		for _, name := range x.Reads {
			from := index[name]
			k.Reads = append(k.Reads, Source{from, name, int64(2 * p.Chunks[from].KV)})
		}
		for name, cost := range x.On {
			first := ms(cost.MS)
			row := first
			if cost.RowMS != nil {
				row = ms(*cost.RowMS)
			}
			out := Cost{Rows: Linear(first, row)}
			if cost.StreamMS != nil {
				out.Streams = Linear(first, ms(*cost.StreamMS))
			}
			if cost.ColdMS != nil {
				out.Cold = ms(*cost.ColdMS)
			}
			k.On[name] = out
		}
		c.Chunks = append(c.Chunks, k)
	}
	for _, h := range p.Handoffs {
		c.Handoffs = append(c.Handoffs, Handoff{h.From, h.To, ms(h.CallMS), h.NSPerByte})
	}
	return c
}
