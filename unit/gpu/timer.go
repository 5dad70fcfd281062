package gpu

import (
	"slices"
	"time"

	"github.com/tandemrun/tandem/unit"
	"github.com/tandemrun/tandem/unit/gpu/compute"
)

// opTimes adds up what dispatches took, by operation and class of rows.
type opTimes struct {
	list []unit.OpTime
}

func (t *opTimes) at(name, rows string) *unit.OpTime {
	i := slices.IndexFunc(t.list, func(x unit.OpTime) bool { return x.Name == name && x.Rows == rows })
	if i < 0 {
		i = len(t.list)
		t.list = append(t.list, unit.OpTime{Name: name, Rows: rows})
	}
	return &t.list[i]
}

// add adds a submission of total that ran list. What the device's timestamps do
// not account for is submitting and waiting; without timestamps that is all.
func (t *opTimes) add(list []compute.Dispatch, took []time.Duration, total time.Duration) {
	for i, d := range list {
		x := t.at(d.Op, d.Rows)
		x.Calls++
		x.Bytes += d.Bytes
		x.Ops += d.Ops
		if i < len(took) {
			x.Time += took[i]
			total -= took[i]
		}
	}
	x := t.at("submit", "")
	x.Calls++
	x.Time += max(total, 0)
}

// host adds what the host took to take results from the device.
func (t *opTimes) host(took time.Duration) {
	x := t.at("handoff", "")
	x.Calls++
	x.Time += took
}

// OpTimes returns what dispatches took since the last call; see [unit.OpTimer].
// "submit" is the time of submissions in which the device ran no dispatch.
func (c *Chunk) OpTimes() []unit.OpTime {
	out := c.times.list
	c.times.list = nil
	return out
}
