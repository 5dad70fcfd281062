package plan

import (
	"fmt"
	"slices"
	"time"
)

// A Schedule is which chunk runs where and what runs at once.
type Schedule struct {
	Placement []string // unit of each chunk
	Streams   int      // most sequences at once; 0 is all of them
	Block     int      // most rows of a stream in a task; 0 is 512
	Merge     int      // most streams of a task; 0 is as many as wait, 1 keeps them apart
}

// Work is sequences: each evaluates a prompt and generates tokens.
type Work struct {
	Streams int
	Prompt  int // tokens, at least 1
	Tokens  int // at least 1
	// Stagger is the time between their arrivals. Streams that come at the very
	// same time are merged from the first task on and stay so; real ones never
	// come at the very same time.
	Stagger time.Duration
}

// A Prediction is what a schedule makes of some work.
type Prediction struct {
	TTFT time.Duration // from the begin until the last stream has its first token
	Wall time.Duration // until the last stream has its last token
	// Aggregate is generated tokens a second over Wall. Steady is what the
	// streams decode together while all of them do, 0 if they never do.
	Aggregate, Steady float64
	Cold              time.Duration // what the first token ever takes, apart from all the rest
	Units             []Use         // in the order in which the placement names them
	// Overlap is how much of what could overlap does: with the busy times of the
	// units and the time in which at least one is busy,
	// (sum - any) / (sum - largest). It is 0 for one unit.
	Overlap float64
	// Step is a decode step of one stream, and Least the least time that a token
	// can take on average whatever the order of tasks: the longest chain of a
	// step by the number of streams, or the work of the busiest unit.
	Step  Step
	Least time.Duration
}

// Use is what a unit does.
type Use struct {
	Name string
	Busy time.Duration // in tasks and handoffs
}

const defaultBlock = 512

// Predict runs the work through the graph of dependencies.
func Predict(c *Costs, s Schedule, w Work) (Prediction, error) {
	if err := c.Check(); err != nil {
		return Prediction{}, err
	}
	step, err := StepOf(c, s.Placement)
	if err != nil {
		return Prediction{}, err
	}
	if w.Streams < 1 || w.Prompt < 1 || w.Tokens < 1 {
		return Prediction{}, fmt.Errorf("%d streams with %d tokens of a prompt and %d to generate: at least one of each is needed", w.Streams, w.Prompt, w.Tokens)
	}
	if s.Streams < 0 || s.Block < 0 || s.Merge < 0 {
		return Prediction{}, fmt.Errorf("%d streams at once, blocks of %d rows, %d streams merged: none can be negative", s.Streams, s.Block, s.Merge)
	}
	if s.Streams == 0 {
		s.Streams = w.Streams
	}
	if s.Block == 0 {
		s.Block = defaultBlock
	}
	f := newFlow(c, s, w)
	f.run()
	p := f.prediction()
	p.Step, p.Least = step, least(c, s, min(s.Streams, w.Streams), step)
	p.Cold = c.cold(s.Placement, step)
	return p, nil
}

// cold is the first token ever.
func (c *Costs) cold(placement []string, step Step) time.Duration {
	d := step.Time
	for i, x := range c.Chunks {
		if cost := x.On[placement[i]]; cost.Cold > 0 && slices.Contains(step.Path, x.Name) {
			d += cost.Cold - cost.one()
		}
	}
	return d
}

// least is the least time of a token.
func least(c *Costs, s Schedule, streams int, step Step) time.Duration {
	busy := map[string]time.Duration{}
	for i, x := range c.Chunks {
		on := s.Placement[i]
		cost := x.On[on]
		token := cost.one()
		if most := limit(streams, s.Merge, cost.most()); most > 1 {
			for n := 2; n <= most; n++ {
				token = min(token, at(cost.Streams, n)/time.Duration(n))
			}
		}
		for _, src := range slices.Concat(x.Takes, x.Reads) {
			if from := s.Placement[src.From]; from != on {
				token += c.handoff(from, on, src.Bytes)
			}
		}
		busy[c.Units[c.unit(on)].driver()] += token
	}
	d := step.Time / time.Duration(streams)
	for _, b := range busy {
		d = max(d, b)
	}
	return d
}

// driver is the name of the unit's driver, which no unit's own shares.
func (u Unit) driver() string {
	if u.Driver == "" {
		return "unit " + u.Name
	}
	return "driver " + u.Driver
}

// limit is the least of n and those limits that are set.
func limit(n int, limits ...int) int {
	for _, l := range limits {
		if l > 0 {
			n = min(n, l)
		}
	}
	return n
}

// prediction counts what has run.
func (f *flow) prediction() Prediction {
	p := Prediction{Wall: time.Duration(f.now)}
	var sum, most time.Duration
	for _, u := range f.units {
		busy := time.Duration(u.busy)
		p.Units = append(p.Units, Use{f.c.Units[u.index].Name, busy})
		sum, most = sum+busy, max(most, busy)
	}
	if sum > most {
		p.Overlap = float64(sum-time.Duration(f.any)) / float64(sum-most)
	}
	tokens := 0
	from, to := int64(0), f.now // while all streams decode
	for _, s := range f.streams {
		tokens += len(s.times)
		p.TTFT = max(p.TTFT, time.Duration(s.times[0]))
		from, to = max(from, s.times[0]), min(to, s.times[len(s.times)-1])
	}
	if f.now > 0 {
		p.Aggregate = float64(tokens) / p.Wall.Seconds()
	}
	for _, s := range f.streams {
		t := slices.DeleteFunc(s.times, func(at int64) bool { return at < from || at > to })
		if len(t) < 2 {
			p.Steady = 0
			break
		}
		p.Steady += float64(len(t)-1) / time.Duration(t[len(t)-1]-t[0]).Seconds()
	}
	return p
}
