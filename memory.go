package tandem

import (
	"fmt"
	"slices"

	"github.com/tandemrun/tandem/machine"
	"github.com/tandemrun/tandem/unit"
)

// UnitNeed is what a layout needs on one unit, in bytes.
type UnitNeed struct {
	Unit    string `json:"unit"`
	Weights int64  `json:"weight_bytes"`
	KV      int64  `json:"kv_bytes"`
	Buffers int64  `json:"buffer_bytes"`
	Total   int64  `json:"total_bytes"`
	// Own says that the unit has memory of its own, apart from the machine's.
	Own bool `json:"own_memory,omitempty"`
	// Available is what is free of the unit's memory, or all of it where its
	// driver does not tell; units without memory of their own share what the
	// machine has. 0 is unknown.
	Available int64 `json:"available_bytes"`
}

// memory adds up the plans of a layout by unit.
func (l *layout) memory(plans []unit.Bytes) ([]UnitNeed, error) {
	var free int64
	if host, err := machine.Detect(); err == nil {
		free = host.Memory.Available
	}
	var out []UnitNeed
	for k, p := range plans {
		name := slices.Concat(l.names, l.prefillTwins())[k]
		i := slices.IndexFunc(out, func(x UnitNeed) bool { return x.Unit == name })
		if i < 0 {
			i = len(out)
			x := UnitNeed{Unit: name, Available: free}
			total, own, err := ownMemory(name)
			if err != nil {
				return nil, err
			}
			if total > 0 {
				x.Own, x.Available = true, own
				if own < 0 {
					x.Available = total
				}
			}
			out = append(out, x)
		}
		x := &out[i]
		x.Weights, x.KV, x.Buffers = x.Weights+p.Weights, x.KV+p.KV, x.Buffers+p.Buffers
		x.Total = x.Weights + x.KV + x.Buffers
	}
	return out, nil
}

// prefillTwins are the units of the layout's twins.
func (l *layout) prefillTwins() []string {
	var out []string
	for _, i := range l.twins {
		out = append(out, l.prefill[i])
	}
	return out
}

// checkMemory refuses a layout that does not fit into the memory of its units.
func (m *Model) checkMemory(l layout) error {
	plans, err := m.plan(l)
	if err != nil {
		return err
	}
	units, err := l.memory(plans)
	if err != nil {
		return err
	}
	shared := UnitNeed{}
	for _, u := range units {
		if !u.Own {
			shared.Weights, shared.KV, shared.Buffers = shared.Weights+u.Weights, shared.KV+u.KV, shared.Buffers+u.Buffers
			shared.Total, shared.Available = shared.Total+u.Total, u.Available
			continue
		}
		if err := m.fits(l, u, " on unit "+u.Unit); err != nil {
			return err
		}
	}
	return m.fits(l, shared, "")
}

func (m *Model) fits(l layout, u UnitNeed, where string) error {
	if u.Available == 0 || u.Total <= u.Available {
		return nil // it fits, or nothing is known of the memory
	}
	return fmt.Errorf("%s: needs %s%s (weights %s, KV cache %s for %d streams of %d positions, buffers %s), but %s of memory are available; use a smaller --ctx or --kv f16 or q8_0",
		m.Name(), mib(u.Total), where, mib(u.Weights), mib(u.KV), l.o.Slots, l.o.Context, mib(u.Buffers), mib(u.Available))
}
