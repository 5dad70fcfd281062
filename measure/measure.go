// Package measure finds what the layers of a model take on the units of a
// machine, as the costs that package plan predicts from.
//
// On each unit in turn the whole model is one chunk, for all that a schedule may
// ask of it, and then each layer is a chunk of its own: that tells which part of
// the whole is whose, and what a chunk of several layers saves. Two units that
// can be used together are measured together: what handing over takes, and how
// much longer a task takes while the other unit is at work. All tasks are those
// of real streams; their times are the engine's records.
//
// Steps in which threads of the units waited for a CPU are left out by the rule
// of probe.Keep, and what is left is summed up by its median. Cold
// runs, the first of each chunk, are kept apart.
//
// Measuring is bounded in time, not in the number of trials: each unit and each
// pair of units has an equal share of [Config.Time], a unit that is very slow is
// measured with few and short tasks, and times of larger ones are carried on
// from those. Loading comes on top, and so do the few tasks without which
// nothing would be known.
package measure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tandemrun/tandem/engine"
	"github.com/tandemrun/tandem/model"
	"github.com/tandemrun/tandem/plan"
	"github.com/tandemrun/tandem/program"
	"github.com/tandemrun/tandem/unit"
)

// Config says what to measure.
type Config struct {
	Model *model.Model
	// Units are the names of the units, and Never by name those that cannot be
	// used beside it.
	Units []string
	Never map[string][]string
	// Open opens an engine with chunks on units, for so many streams, whose
	// records have their parts. Measure closes it before it opens the next.
	Open func(ctx context.Context, ranges []model.Range, units []string, streams int) (*engine.Engine, error)
	// Context, Block and KV are the engines'.
	Context, Block int
	KV             unit.KV
	// Together says that there is memory for the model on all units at once: then
	// the units take turns, so that a drift of the machine meets all alike.
	Together bool
	Streams  int // most streams that will be merged
	Depth    int // positions in the caches that decode steps are measured for
	// Delay tells how long the units' threads have waited for a CPU, as
	// machine.DelayMeter reads it; nil if nobody can tell. It is called by one
	// goroutine at a time. Those of the runtime must not count: on few cores they
	// wait behind workers that spin, and every step would look disturbed.
	Delay func() (time.Duration, bool)
	// Time is about how long measuring may take, without loading; 0 is
	// [DefaultTime].
	Time time.Duration
	// Progress, if not nil, is told what is being measured.
	Progress func(what string)

	limits limits
}

// DefaultTime is about how long measuring may take where nothing else is said.
const DefaultTime = time.Minute

// pieces is the most chunks that are measured one by one.
const pieces = 48

// Costs measures. The chunks of the result are the pieces that a model may be cut
// into: layers, or several where there are very many; [Ranges] tells which.
func Costs(ctx context.Context, c Config) (*plan.Costs, error) {
	ranges := Ranges(c.Model)
	out := &plan.Costs{Wanted: engine.WantedRows(c.Block, c.Model.Vocab)}
	if err := describe(c, ranges, out); err != nil {
		return nil, err
	}
	pairs := c.pairs()
	c.limits = limitsOf(cmp.Or(c.Time, DefaultTime) / time.Duration(len(c.Units)+len(pairs)))
	groups := [][]string{c.Units}
	if !c.Together {
		groups = nil
		for _, name := range c.Units {
			groups = append(groups, []string{name})
		}
	}
	for _, names := range groups {
		wholes, err := c.wholes(ctx, names)
		if err != nil {
			return nil, err
		}
		for i, name := range names {
			if err := c.unit(ctx, name, ranges, wholes[i], out); err != nil {
				return nil, fmt.Errorf("measuring %s: %w", name, err)
			}
		}
	}
	for _, p := range pairs {
		if err := c.pair(ctx, p[0], p[1], out); err != nil {
			return nil, fmt.Errorf("measuring %s beside %s: %w", p[0], p[1], err)
		}
	}
	return out, out.Check()
}

// pairs are the units that can be used together, if the model can be cut.
func (c Config) pairs() [][2]string {
	var out [][2]string
	for i, a := range c.Units {
		for _, b := range c.Units[i+1:] {
			if len(c.Model.Layers) > 1 && !slices.Contains(c.Never[a], b) && !slices.Contains(c.Never[b], a) {
				out = append(out, [2]string{a, b})
			}
		}
	}
	return out
}

// Ranges are the layers of each piece.
func Ranges(m *model.Model) []model.Range {
	n := min(len(m.Layers), pieces)
	var out []model.Range
	for i := range n {
		out = append(out, model.Range{First: i * len(m.Layers) / n, Last: (i + 1) * len(m.Layers) / n})
	}
	return out
}

// describe fills in what the pieces are to each other.
func describe(c Config, ranges []model.Range, out *plan.Costs) error {
	var programs []*program.Program
	for i, r := range ranges {
		p, err := c.Model.Program(r.First, r.Last)
		if err != nil {
			return err
		}
		x := plan.Chunk{Name: fmt.Sprintf("layer %d", r.First), WantedOnly: true, On: map[string]plan.Cost{}}
		for _, b := range p.Buffers {
			x.WantedOnly = x.WantedOnly && b.Rows == program.Wanted
		}
		for _, in := range p.Inputs {
			from := -1
			for k, q := range programs {
				if slices.ContainsFunc(q.Outputs, func(o program.Port) bool { return o.Name == in.Name }) {
					from = k
				}
			}
			if from < 0 {
				return fmt.Errorf("no layer before %d hands over %s", r.First, in.Name)
			}
			x.Takes = append(x.Takes, plan.Source{From: from, Name: in.Name, Bytes: int64(4 * in.View.Width)})
		}
		for _, cache := range p.Caches {
			if cache.Own {
				continue
			}
			from := slices.IndexFunc(ranges[:i], func(q model.Range) bool { return cache.Layer >= q.First && cache.Layer < q.Last })
			if from < 0 {
				return fmt.Errorf("no layer before %d has the cache of layer %d", r.First, cache.Layer)
			}
			x.Reads = append(x.Reads, plan.Source{From: from, Name: fmt.Sprint(cache.Layer), Bytes: c.KV.Size(cache.KeyWidth() + cache.ValueWidth())})
		}
		programs = append(programs, p)
		out.Chunks = append(out.Chunks, x)
	}
	return nil
}

// wholes measures the whole model as one chunk on each of some units, which take
// turns with the decode steps.
func (c Config) wholes(ctx context.Context, names []string) (out []*bench, err error) {
	defer func() {
		for _, b := range out {
			err = errors.Join(err, b.close())
		}
	}()
	all := []model.Range{{First: 0, Last: len(c.Model.Layers)}}
	for _, name := range names {
		c.say("%s: the whole model", name)
		b, err := c.bench(ctx, name, all, c.Streams)
		if err == nil {
			out = append(out, b)
			err = b.prepare(ctx)
		}
		if err != nil {
			return out, fmt.Errorf("measuring %s: %w", name, err)
		}
	}
	c.say("%s: decode steps in turn", strings.Join(names, ", "))
	for range rounds {
		for i, b := range out {
			if err := b.turn(ctx); err != nil {
				return out, fmt.Errorf("measuring %s: %w", names[i], err)
			}
		}
	}
	for _, b := range out {
		b.sum()
	}
	return out, nil
}

// unit measures which part of the whole is each piece's.
func (c Config) unit(ctx context.Context, name string, ranges []model.Range, x *bench, out *plan.Costs) (err error) {
	u := plan.Unit{Name: name, Never: c.Never[name], Wake: x.wake, WakeSoon: x.wake, Awake: 3 * x.host / 2}
	if out.Host == 0 || x.host < out.Host {
		out.Host = x.host
	}
	var step, block turn
	heads := make([]time.Duration, len(ranges))
	if len(ranges) > 1 {
		c.say("%s: layers one by one", name)
		b, err := c.bench(ctx, name, ranges, 1)
		if err != nil {
			return err
		}
		step, block, heads, err = b.parts(ctx)
		u.Next = step.gap
		if err = errors.Join(err, b.close()); err != nil {
			return err
		}
	}
	for i, cost := range divide(x.cost, step, block, heads, out.Chunks, &u) {
		out.Chunks[i].On[name] = cost
	}
	out.Units = append(out.Units, u)
	return nil
}

// divide gives each piece its part of what the whole takes. Pieces one by one
// take more than the whole: what each but the first adds is u.Saved.
func divide(whole plan.Cost, step, block turn, heads []time.Duration, chunks []plan.Chunk, u *plan.Unit) []plan.Cost {
	if len(chunks) == 1 {
		return []plan.Cost{whole}
	}
	out := make([]plan.Cost, len(chunks))
	n := time.Duration(len(chunks) - 1)
	saved := max((total(step.times)-whole.Rows[0].Time)/n, 0)
	add := func(samples []plan.Sample, took turn, wantedToo bool, to func(*plan.Cost) *[]plan.Sample) {
		var sum time.Duration
		n := time.Duration(-1)
		for i, t := range took.times {
			if wantedToo || !chunks[i].WantedOnly {
				sum, n = sum+t, n+1
			}
		}
		for _, s := range samples {
			*to(&u.Saved) = append(*to(&u.Saved), plan.Sample{N: s.N, Time: saved})
			for i, t := range took.times {
				x := time.Duration(0)
				if wantedToo || !chunks[i].WantedOnly {
					x = time.Duration(float64(s.Time+saved*max(n, 0)) * float64(t) / float64(max(sum, 1)))
				}
				*to(&out[i]) = append(*to(&out[i]), plan.Sample{N: s.N, Time: x})
			}
		}
	}
	rows := func(c *plan.Cost) *[]plan.Sample { return &c.Rows }
	streams := func(c *plan.Cost) *[]plan.Sample { return &c.Streams }
	add(whole.Rows[:1], step, true, rows)
	add(whole.Rows[1:], block, false, rows)
	add(whole.Streams, step, true, streams)
	for i, t := range step.times {
		out[i].Cold = time.Duration(float64(whole.Cold) * float64(t) / float64(max(total(step.times), 1)))
		out[i].Most = whole.Most
		out[i].Head = heads[i]
	}
	return out
}

func total(times []time.Duration) time.Duration {
	var sum time.Duration
	for _, t := range times {
		sum += t
	}
	return sum
}

// say tells what is being measured.
func (c Config) say(format string, args ...any) {
	if c.Progress != nil {
		c.Progress(fmt.Sprintf(format, args...))
	}
}

// bench opens an engine with chunks on a unit.
func (c Config) bench(ctx context.Context, name string, ranges []model.Range, streams int) (*bench, error) {
	e, err := c.Open(ctx, ranges, slices.Repeat([]string{name}, len(ranges)), max(streams, 1))
	if err != nil {
		return nil, err
	}
	return &bench{Config: c, e: e, chunks: len(ranges)}, nil
}

// open opens an engine and hands it to f.
func (c Config) open(ctx context.Context, ranges []model.Range, units []string, streams int, f func(*engine.Engine) error) (err error) {
	e, err := c.Open(ctx, ranges, units, streams)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	return f(e)
}
