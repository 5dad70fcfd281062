package measure_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tandemrun/tandem/engine"
	"github.com/tandemrun/tandem/gguf"
	"github.com/tandemrun/tandem/measure"
	"github.com/tandemrun/tandem/model"
	"github.com/tandemrun/tandem/model/catalog"
	"github.com/tandemrun/tandem/model/tiny"
	"github.com/tandemrun/tandem/plan"
	"github.com/tandemrun/tandem/unit"
	"github.com/tandemrun/tandem/unit/cpu"
	"github.com/tandemrun/tandem/unit/cpu/kernel"
	"github.com/tandemrun/tandem/unit/sim"
)

// simulated measures the units of a device profile with one chunk in virtual
// time, and tells how long that took.
func simulated(t *testing.T, profile string, c measure.Config) (*plan.Costs, time.Duration) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "device.json")
	if err := os.WriteFile(file, []byte(profile), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := sim.Find(file)
	if err != nil {
		t.Fatal(err)
	}
	clock := sim.NewVirtual()
	device := sim.NewDevice(p, clock)
	c.Model = sim.Model(p)
	for _, u := range p.Units {
		c.Units = append(c.Units, u.Name)
	}
	c.Open = func(ctx context.Context, ranges []model.Range, units []string, streams int) (*engine.Engine, error) {
		us, err := device.Place(map[string]string{p.Chunks[0].Name: units[0]})
		if err != nil {
			return nil, err
		}
		return engine.New(ctx, c.Model, engine.Config{
			Ranges: ranges, Units: us, Slots: streams, Context: c.Context, Block: c.Block, KV: c.KV, Clock: clock, Observe: func(engine.Record) {},
		})
	}
	var out *plan.Costs
	begin := clock.Now()
	sim.Run(clock, func() { out, err = measure.Costs(t.Context(), c) })
	if err != nil {
		t.Fatal(err)
	}
	return out, clock.Now().Sub(begin)
}

// What a unit takes by its profile is what is measured, to the nanosecond.
func TestExact(t *testing.T) {
	const device = `{"name": "d", "hidden": 8, "units": [{"name": "a"}, {"name": "b"}], "handoffs": [], "chunks": [{"name": "x", "kv": 8, "on": {
		"a": {"ms": 2, "row_ms": 0.5, "stream_ms": 0.75, "cold_ms": 10},
		"b": {"ms": 3, "row_ms": 0.25}}}]}`
	got, _ := simulated(t, device, measure.Config{Context: 256, Block: 64, KV: unit.F16, Streams: 4, Depth: 100, Together: true})
	ms := func(x float64) time.Duration { return time.Duration(x * 1e6) }
	rows := func(first, further float64) (out []plan.Sample) {
		for _, n := range []int{1, 8, 32, 64} {
			out = append(out, plan.Sample{N: n, Time: ms(first + further*float64(n-1))})
		}
		return out
	}
	want := map[string]plan.Cost{
		"a": {Rows: rows(2, 0.5), Streams: []plan.Sample{{N: 1, Time: ms(2)}, {N: 2, Time: ms(2.75)}, {N: 4, Time: ms(4.25)}}, Cold: ms(10)},
		"b": {Rows: rows(3, 0.25), Cold: ms(3), Most: 1},
	}
	if d := cmp.Diff(want, got.Chunks[0].On); d != "" {
		t.Error(d)
	}
	for _, u := range got.Units {
		if u.Wake != 0 || len(u.Saved.Rows) > 0 {
			t.Errorf("%+v: a simulated unit begins at once, and one piece saves nothing", u)
		}
	}
	if got.Host != 0 || len(got.Contention) > 0 || len(got.Handoffs) > 0 {
		t.Errorf("%+v", got)
	}
	// And so a plan is predicted as the profile says.
	p, err := plan.Predict(got, plan.Schedule{Placement: []string{"a"}}, plan.Work{Streams: 1, Prompt: 32, Tokens: 11})
	if err != nil || p.TTFT != ms(2+31*0.5) || p.Wall != p.TTFT+10*ms(2) {
		t.Errorf("%+v, %v", p, err)
	}
}

// A unit that takes seconds for a token is measured with the fewest tasks, and
// what was measured of it is right all the same.
func TestSlow(t *testing.T) {
	const device = `{"name": "d", "hidden": 8, "units": [{"name": "a"}], "handoffs": [], "chunks": [{"name": "x", "kv": 8, "on": {"a": {"ms": 2000, "row_ms": 1000, "stream_ms": 1500}}}]}`
	c := measure.Config{Context: 2048, Block: 512, KV: unit.F16, Streams: 4, Depth: 1000, Time: time.Minute}
	costs, took := simulated(t, device, c)
	if took > 2*c.Time {
		t.Errorf("measuring took %v of simulated time, of %v", took, c.Time)
	}
	cost := costs.Chunks[0].On["a"]
	if x := cost.Rows; len(x) != 2 || x[0].Time != 2*time.Second || x[1].N != 8 || x[1].Time != 9*time.Second {
		t.Errorf("rows: %v", x)
	}
	if x := cost.Streams; len(x) != 3 || x[2].Time != 6500*time.Millisecond {
		t.Errorf("streams: %v", x)
	}
}

// More time is used for more, but not more than there is.
func TestTime(t *testing.T) {
	const device = `{"name": "d", "hidden": 8, "units": [{"name": "a"}, {"name": "b"}], "handoffs": [], "chunks": [{"name": "x", "kv": 8, "on": {
		"a": {"ms": 40, "row_ms": 20, "stream_ms": 30}, "b": {"ms": 80, "row_ms": 40}}}]}`
	var last time.Duration
	var sizes int
	for _, d := range []time.Duration{5 * time.Second, time.Minute} {
		costs, took := simulated(t, device, measure.Config{Context: 2048, Block: 512, KV: unit.F16, Streams: 2, Depth: 1000, Time: d})
		n := len(costs.Chunks[0].On["a"].Rows)
		if took > 2*d || took <= last || n <= sizes {
			t.Errorf("of %v it took %v of simulated time, after %v; %d sizes of blocks, before %d", d, took, last, n, sizes)
		}
		last, sizes = took, n
	}
}

// The model in the binary, on two sets of cores.
func TestCosts(t *testing.T) {
	f, err := gguf.Read(tiny.Name, tiny.File())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, err := catalog.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	units := map[string]unit.Unit{}
	for _, name := range []string{"cpu:0", "cpu:1"} {
		u, err := cpu.New(cpu.Config{Name: name, Threads: 1, ISA: kernel.Best()})
		if err != nil {
			t.Skip(err) // there is one core
		}
		units[name] = u
	}
	var said []string
	open := 0
	c := measure.Config{
		Model: m, Units: []string{"cpu:0", "cpu:1"}, Context: 128, Block: 32, KV: unit.F32, Together: true, Streams: 2, Depth: 40, Time: 2 * time.Second,
		Progress: func(what string) { said = append(said, what) },
		Open: func(ctx context.Context, ranges []model.Range, names []string, streams int) (*engine.Engine, error) {
			open++
			x := engine.Config{Ranges: ranges, Slots: streams, Context: 128, Block: 32, KV: unit.F32, Observe: func(engine.Record) {}}
			for _, name := range names {
				x.Units = append(x.Units, units[name])
			}
			return engine.New(ctx, m, x)
		},
	}
	got, err := measure.Costs(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Chunks) != len(m.Layers) || len(got.Chunks) != len(measure.Ranges(m)) || len(got.Units) != 2 {
		t.Fatalf("%d chunks of %d layers on %d units", len(got.Chunks), len(m.Layers), len(got.Units))
	}
	wanted := 0
	for i, x := range got.Chunks {
		if x.WantedOnly {
			wanted++
		}
		if i > 0 && len(x.Takes) == 0 {
			t.Errorf("%s takes nothing", x.Name)
		}
		for _, name := range c.Units {
			cost := x.On[name]
			if len(cost.Rows) != 3 || cost.Rows[2].N != 32 || len(cost.Streams) != 2 || cost.Rows[0].Time <= 0 {
				t.Errorf("%s on %s: %+v", x.Name, name, cost)
			}
		}
	}
	// The last layers share the caches of earlier ones, and read them.
	if last := got.Chunks[len(got.Chunks)-1]; wanted == 0 || len(last.Reads) == 0 || !last.WantedOnly {
		t.Errorf("%d layers for wanted rows only, the last reads %v", wanted, last.Reads)
	}
	// All pieces together are the whole, which was measured.
	whole, err := got.Join(nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range c.Units {
		p, err := plan.Predict(whole, plan.Schedule{Placement: []string{name}}, plan.Work{Streams: 1, Prompt: 1, Tokens: 11})
		least := 11 * (whole.Chunks[0].On[name].Rows[0].Time + got.Host)
		if most := least + 11*got.Units[i].Wake; err != nil || p.Wall < least || p.Wall > most {
			t.Errorf("%s: %v for 11 tokens, not from %v to %v (%v)", name, p.Wall, least, most, err)
		}
	}
	for _, pair := range [][2]string{{"cpu:0", "cpu:1"}, {"cpu:1", "cpu:0"}} {
		if !slices.ContainsFunc(got.Contention, func(x plan.Contention) bool { return [2]string{x.Unit, x.With} == pair }) {
			t.Errorf("no contention of %v", pair)
		}
		if !slices.ContainsFunc(got.Handoffs, func(x plan.Handoff) bool { return [2]string{x.From, x.To} == pair }) {
			t.Errorf("no handoff of %v", pair)
		}
	}
	for _, want := range []string{"cpu:0: the whole model", "cpu:1: layers one by one", "cpu:0 beside cpu:1"} {
		if !slices.Contains(said, want) {
			t.Errorf("%q was not said: %s", want, strings.Join(said, "; "))
		}
	}
	if open != 5 { // two wholes, two of layers, a pair
		t.Errorf("%d engines were opened", open)
	}
	// Units that cannot be used together are not.
	open = 0
	c.Never = map[string][]string{"cpu:1": {"cpu:0"}}
	if got, err = measure.Costs(t.Context(), c); err != nil || len(got.Contention)+len(got.Handoffs) > 0 || open != 4 {
		t.Errorf("%+v, %v, %d engines", got, err, open)
	}
	// A measurement ends with its context.
	ctx, stop := context.WithCancel(t.Context())
	c.Progress = func(string) { stop() }
	if _, err := measure.Costs(ctx, c); err == nil {
		t.Error("measured after the end of its context")
	}
}
