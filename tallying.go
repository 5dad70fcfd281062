package tandem

import (
	"sync"
	"time"

	"github.com/tandemrun/tandem/machine"
	"github.com/tandemrun/tandem/tally"
)

// A Tally counts what engines do: tokens, the times between them, and how long
// units were busy. Give it to [Options]. The zero value is ready; it is safe for
// concurrent use.
type Tally struct {
	mu      sync.Mutex
	engines []*tallied
}

// A Usage is what one engine did from the end of [Model.Open] to
// [Engine.Close], or so far.
type Usage struct {
	tally.Report
	Opened time.Time `json:"opened"`
	Closed time.Time `json:"closed"`
	// Others is the share of the time of this process's CPUs that somebody else had
	// meanwhile (see machine.Others); nil where the system does not tell.
	Others *float64 `json:"others,omitempty"`
}

type tallied struct {
	count  *tally.Tally
	before time.Duration
	known  bool
	usage  Usage // set at the begin and the end
}

// add begins to count for an engine; units are those of its chunks, some of them
// maybe named several times.
func (t *Tally) add(chunks int, units []string) *tallied {
	var different []string
	for _, u := range units {
		different = addNew(different, u)
	}
	x := &tallied{count: tally.New(chunks, different)}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.engines = append(t.engines, x)
	return x
}

// observer adds the count to what observes already.
func (x *tallied) observer(also func(Record)) func(Record) {
	if also == nil {
		return x.count.Observe
	}
	return func(r Record) {
		x.count.Observe(r)
		also(r)
	}
}

func (x *tallied) opened() {
	x.before, _, x.known = machine.Others()
	x.usage.Opened = time.Now()
}

func (x *tallied) close() {
	x.usage.Closed = time.Now()
	all := x.usage.Closed.Sub(x.usage.Opened).Seconds()
	if after, cpus, known := machine.Others(); known && x.known && all > 0 {
		x.usage.Others = new(max(0, (after-x.before).Seconds()/all/float64(cpus)))
	}
}

// Usage is what each engine did, in the order in which they were opened. Call it
// when they are closed.
func (t *Tally) Usage() []Usage {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := []Usage{}
	for _, x := range t.engines {
		u := x.usage
		u.Report = x.count.Report()
		out = append(out, u)
	}
	return out
}
