// Package plan predicts how fast a model runs on several units from what its
// chunks take on each of them.
//
// [Costs] are what single tasks take, as they were measured or as a device
// profile says ([FromProfile]). [Predict] walks the graph of dependencies with
// them: the tasks of each stream, block and chunk go through one queue a unit,
// wait for what they need, are merged, are slowed by what runs on other units,
// and a stream's next step begins when it has its token. It shares no code with
// the engine or with simulated units, so that it can be compared with them.
//
// The figures are as good as the costs: a prediction knows nothing of a
// frequency that drops, of other processes, or of a context longer than the one
// that was measured.
//
// Costs are not changed by anything here and may be shared between goroutines.
package plan

import (
	"fmt"
	"slices"
	"time"
)

// Costs are what the chunks of a model take on the units of a machine.
type Costs struct {
	Name   string // of the machine or device
	Units  []Unit
	Chunks []Chunk
	// Handoffs are what it takes to bring something to another unit; the first
	// that fits counts, and what none fits is free.
	Handoffs []Handoff
	// Contention is how units slow each other; pairs that are not in it do not.
	Contention []Contention
	Host       time.Duration // of a stream's own work before each step, beside the units
	// Late is how much longer it takes until a stream, or a unit that had nothing
	// to do, goes on, if the unit that was awaited has other work to go on with, or
	// has woken another stream or unit before: it has no thread to hand over then,
	// and another one has to be found. So streams that were merged
	// come apart where that is longer than a unit waits for them (see company).
	Late   time.Duration
	Wanted int // most rows of a task whose logits are wanted; 0 is no limit
}

// A Unit is a compute unit with one queue.
type Unit struct {
	Name   string
	Driver string // units of one driver run one task at a time; "" is the unit's own
	// Wake is until a task begins on a unit that had nothing to do, and WakeSoon
	// where that was for no longer than Awake.
	Wake, WakeSoon, Awake time.Duration
	// Next is from the end of a task until the next one begins that was waiting.
	Next time.Duration
	// Between is from the end of a task to the begin of the next, if that waited.
	Between time.Duration
	// Never are units that this one cannot be used beside, such as a set of cores
	// that has some of its own.
	Never []string
	// Saved is what a chunk of several pieces takes less than they do, for each
	// piece but the first; see [Costs.Join].
	Saved Cost
	// BusyWatts and IdleWatts are nil where they are not known; Watts says how
	// they are: measured, stated or estimated.
	BusyWatts, IdleWatts *float64
	Watts                string
}

// A Chunk is a run of layers.
type Chunk struct {
	Name string
	// Takes are the rows that it takes from earlier chunks, and Reads the cache
	// rows of earlier chunks, one for each layer, of which it keeps a copy on
	// another unit. Bytes are those of a position.
	Takes, Reads []Source
	// WantedOnly says that it runs only for positions whose logits are wanted:
	// one of a whole prompt.
	WantedOnly bool
	On         map[string]Cost // by unit
}

// A Source is what a chunk needs of an earlier one.
type Source struct {
	From  int    // index of that chunk
	Name  string // of the rows, or of the layer
	Bytes int64
}

// Cost is what a chunk takes on a unit, without handoffs. Between the samples
// times are interpolated, and beyond the last they go on as between the last
// two.
type Cost struct {
	// Rows is a task of one stream, by its rows. The first sample is of one row
	// whose logits are wanted, a decode step; in the others none are wanted.
	Rows []Sample
	// Next is a decode step's task right behind another one of the same chunk, whose
	// weights may still be in a cache; 0 is like the others.
	Next    time.Duration
	Head    time.Duration // what a wanted row takes beside that in a task of several rows
	Streams []Sample      // a task of one row of each stream, by streams; none: it takes one stream a task
	Cold    time.Duration // the first task ever; 0 is like the others
	Most    int           // most streams of a task; 0 is no limit
}

// A Sample is what a task of N rows or streams takes.
type Sample struct {
	N    int
	Time time.Duration
}

// A Handoff is what it takes to bring a unit the rows that one task of one
// stream takes from a chunk on another unit, or the new cache rows of one layer.
// "*" stands for any unit. It is paid for where it arrives, before the task.
type Handoff struct {
	From, To string
	Call     time.Duration
	PerByte  float64 // nanoseconds
}

// Contention is how many times as long a task takes on a unit while another
// unit is at work, because they share the memory: decode for tasks of one row a
// stream and prefill for others.
type Contention struct {
	Unit, With      string
	Decode, Prefill float64
}

// one is what a task of one row takes.
func (c Cost) one() time.Duration { return c.Rows[0].Time }

// task is what a warm task takes, by the rows of its parts and how many of all
// of them are wanted, beside those of parts of one row.
func (c Cost) task(rows []int, wanted int) time.Duration {
	d := time.Duration(wanted) * c.Head
	if len(rows) == 1 {
		return d + c.block(rows[0])
	}
	d += at(c.Streams, len(rows))
	for _, n := range rows {
		d += c.block(n) - c.one()
	}
	return d
}

// block is what a task of one stream takes, without the wanted rows of several.
func (c Cost) block(n int) time.Duration {
	if n > 1 && len(c.Rows) > 1 && n < c.Rows[1].N {
		// The first sample has a wanted row.
		return at(c.Rows, n) - time.Duration(float64(c.Head)*float64(c.Rows[1].N-n)/float64(c.Rows[1].N-1))
	}
	return at(c.Rows, n)
}

// most is the most streams of a task.
func (c Cost) most() int {
	if len(c.Streams) == 0 {
		return 1
	}
	return c.Most
}

// at reads a curve of samples, which ascend.
func at(samples []Sample, n int) time.Duration {
	if n <= samples[0].N || len(samples) == 1 {
		return samples[0].Time
	}
	i := 1
	for i < len(samples)-1 && samples[i].N < n {
		i++
	}
	a, b := samples[i-1], samples[i]
	slope := float64(b.Time-a.Time) / float64(b.N-a.N)
	return max(b.Time+time.Duration(slope*float64(n-b.N)), 0)
}

// Linear are the samples of a cost that grows by the same amount with each row
// or stream.
func Linear(first, further time.Duration) []Sample {
	return []Sample{{1, first}, {2, first + further}}
}

// unit is the index of a unit, or -1.
func (c *Costs) unit(name string) int {
	return slices.IndexFunc(c.Units, func(u Unit) bool { return u.Name == name })
}

// handoff is what it takes to bring n bytes from one unit to another.
func (c *Costs) handoff(from, to string, n int64) time.Duration {
	for _, h := range c.Handoffs {
		if (h.From == from || h.From == "*") && (h.To == to || h.To == "*") {
			return h.Call + time.Duration(h.PerByte*float64(n))
		}
	}
	return 0
}

// Check returns the first thing that is wrong with costs.
func (c *Costs) Check() error {
	if len(c.Units) == 0 || len(c.Chunks) == 0 {
		return fmt.Errorf("costs: %d units and %d chunks", len(c.Units), len(c.Chunks))
	}
	for i, x := range c.Chunks {
		for _, s := range slices.Concat(x.Takes, x.Reads) {
			if s.From < 0 || s.From >= i {
				return fmt.Errorf("costs: %s takes something from chunk %d, which is not before it", x.Name, s.From+1)
			}
		}
		for name, cost := range x.On {
			if c.unit(name) < 0 {
				return fmt.Errorf("costs: %s is on %q, which is no unit", x.Name, name)
			}
			if len(cost.Rows) == 0 {
				return fmt.Errorf("costs: nothing is known of what %s takes on %s", x.Name, name)
			}
			for _, samples := range [][]Sample{cost.Rows, cost.Streams} {
				for k, s := range samples {
					if s.Time < 0 || k == 0 && s.N != 1 || k > 0 && s.N <= samples[k-1].N {
						return fmt.Errorf("costs: %s on %s: sample %d is of %d rows or streams in %v; they begin with one and ascend", x.Name, name, k+1, s.N, s.Time)
					}
				}
			}
		}
	}
	for _, x := range c.Contention {
		if !(x.Decode >= 1) || !(x.Prefill >= 1) {
			return fmt.Errorf("costs: %s beside %s takes %g and %g times as long; at least 1 is possible", x.Unit, x.With, x.Decode, x.Prefill)
		}
	}
	return nil
}
