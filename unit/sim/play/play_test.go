package play_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tandemrun/tandem/engine"
	"github.com/tandemrun/tandem/unit/sim"
	"github.com/tandemrun/tandem/unit/sim/play"
)

func find(t testing.TB, name string) *sim.Profile {
	t.Helper()
	p, err := sim.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func parse(t testing.TB, text string) *sim.Profile {
	t.Helper()
	p, err := sim.Parse("test", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func run(t testing.TB, c play.Config) play.Result {
	t.Helper()
	r, err := play.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func ms(x float64) time.Duration { return time.Duration(math.Round(x * 1e6)) }

var split = map[string]string{"c3": "gpu"}

// The seeds' table: one stream is a chain on any placement.
func TestMacStudioOneStream(t *testing.T) {
	for _, x := range []struct {
		placement  map[string]string
		step, cold float64
	}{{nil, 30.3, 30.3}, {split, 39.4, 1222.8}} {
		r := run(t, play.Config{Profile: find(t, "mac-studio"), Placement: x.placement, Streams: play.Same(1, 1, 64)})
		if r.Cold != ms(x.cold) {
			t.Errorf("%v: the first token took %v, not %g ms", x.placement, r.Cold, x.cold)
		}
		for i, took := range r.Streams[0].Took {
			if took != ms(x.step) {
				t.Errorf("%v: step %d took %v, not %g ms", x.placement, i, took, x.step)
			}
		}
		if want := 1000 / x.step; math.Abs(r.Aggregate-want) > 1e-6 || math.Abs(r.Steady-want) > 1e-6 {
			t.Errorf("%v: %.3f and %.3f tok/s, not %.3f", x.placement, r.Aggregate, r.Steady, want)
		}
	}
}

// Two streams that begin together part, so that both units have work: with half of
// four equal chunks on each unit they would follow each other otherwise, at two
// thirds of that. Of more streams each unit has one anyway.
func TestStreamsPart(t *testing.T) {
	p := parse(t, `{
		"name": "even", "hidden": 1, "units": [{"name": "A"}, {"name": "B"}],
		"chunks": [
			{"name": "c1", "on": {"A": {"ms": 2}}}, {"name": "c2", "on": {"A": {"ms": 2}}},
			{"name": "c3", "on": {"B": {"ms": 2}}}, {"name": "c4", "on": {"B": {"ms": 2}}}
		]
	}`)
	for _, n := range []int{2, 3, 4} {
		r := run(t, play.Config{Profile: p, Placement: map[string]string{"c1": "A", "c2": "A", "c3": "B", "c4": "B"}, Merge: 1, Streams: play.Same(n, 1, 64)})
		if r.Steady < 0.98*1000/4 {
			t.Errorf("%d streams: %.1f tok/s, not 250", n, r.Steady)
		}
	}
}

// What the first seed hoped for is there for two streams, and only on the split.
func TestMacStudioTwoStreams(t *testing.T) {
	p := find(t, "mac-studio")
	base := run(t, play.Config{Profile: p, Streams: play.Same(2, 1, 64)})
	moved := run(t, play.Config{Profile: p, Placement: split, Streams: play.Same(2, 1, 64)})
	if base.Aggregate > 33.1 || base.Aggregate < 32.9 {
		t.Errorf("without the split %.2f tok/s, not 33.0", base.Aggregate)
	}
	if moved.Aggregate < 43 || moved.Aggregate > 1000/22.8 || math.Abs(moved.Steady-1000/22.8) > 1e-6 {
		t.Errorf("on the split %.2f tok/s, steady %.2f; at least 43, at most and steadily %.2f", moved.Aggregate, moved.Steady, 1000/22.8)
	}
	// 64 rounds in which the Neural Engine is never free after the first.
	if want := 2 * ms(64*22.8); moved.Units[0].Busy != want {
		t.Errorf("the Neural Engine was busy for %v, not %v", moved.Units[0].Busy, want)
	}
	if !reflect.DeepEqual(tokens(base), tokens(moved)) {
		t.Error("tokens depend on the placement")
	}
	want := 1*moved.Units[0].Busy.Seconds() + 0
	if u := moved.Units[0]; math.Abs(u.Joules-want) > 1e-9 || u.Basis != "estimated from stated watts" {
		t.Errorf("%.3f J (%s), not %.3f", u.Joules, u.Basis, want)
	}
	if u := moved.Units[1]; math.Abs(u.Joules-4*u.Busy.Seconds()) > 1e-9 || !strings.Contains(u.Basis, "idle watts are not known") {
		t.Errorf("%.3f J (%s)", u.Joules, u.Basis)
	}
	cold := run(t, play.Config{Profile: p, Placement: split, Streams: play.Same(2, 1, 64), Cold: true})
	if cold.Cold != 0 || cold.Wall < moved.Wall+ms(1100) {
		t.Errorf("with the cold run %v, without %v", cold.Wall, moved.Wall)
	}
}

func tokens(r play.Result) (out [][]int32) {
	for _, s := range r.Streams {
		out = append(out, s.Tokens)
	}
	return out
}

const twoSides = `{
	"name": "two sides", "description": "", "source": "", "model": "", "hidden": 8,
	"units": [{"name": "A"}, {"name": "B"}],
	"chunks": [
		{"name": "x", "kv": 8, "on": {"A": {"ms": 10, "row_ms": 1}, "B": {"ms": 4, "cold_ms": 9}}},
		{"name": "y", "reads": ["x"], "on": {"A": {"ms": 10}, "B": {"ms": 4}}}
	],
	"handoffs": [{"from": "*", "to": "*", "call_ms": 1, "ns_per_byte": 62500}]
}`

// Prefill on A, decode on B: before the first step on B, the cache rows of the
// prompt's three positions are moved there, 16 bytes each.
func TestPrefillPlacement(t *testing.T) {
	all := func(unit string) map[string]string { return map[string]string{"x": unit, "y": unit} }
	r := run(t, play.Config{Profile: parse(t, twoSides), Placement: all("B"), Prefill: all("A"), Streams: play.Same(1, 3, 3)})
	var got []string
	for _, x := range r.Records {
		at := func(t time.Time) float64 { return t.Sub(r.Begin).Seconds() * 1e3 }
		got = append(got, fmt.Sprintf("%s on %d %.0f-%.0f rows %d moved %d copy %.0f", "xy"[x.Chunk:x.Chunk+1], x.Unit, at(x.Start), at(x.End), x.Rows, x.Parts[0].Moved, x.CopyTime.Seconds()*1e3))
	}
	want := []string{ // unit 0 is B: the units of decode come first
		"x on 1 0-12 rows 3 moved 0 copy 0",
		"y on 1 12-22 rows 3 moved 0 copy 0",
		"x on 1 22-22 rows 0 moved 3 copy 0",
		"x on 0 22-26 rows 0 moved 3 copy 4",
		"x on 0 26-30 rows 1 moved 0 copy 0",
		"y on 0 30-34 rows 1 moved 0 copy 0",
		"x on 0 34-38 rows 1 moved 0 copy 0",
		"y on 0 38-42 rows 1 moved 0 copy 0",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s\nnot\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	// A token on B, cold, and a prompt of two on A, to which its row goes.
	if r.Cold != ms(9+4+(1+1)+11+10) {
		t.Errorf("the first dispatches took %v", r.Cold)
	}
	same := run(t, play.Config{Profile: parse(t, twoSides), Placement: all("B"), Streams: play.Same(1, 3, 3)})
	if !reflect.DeepEqual(tokens(r), tokens(same)) {
		t.Error("tokens depend on the placement of prefill")
	}
	if _, err := play.Run(t.Context(), play.Config{Profile: parse(t, twoSides), Prefill: map[string]string{"x": "C"}, Streams: play.Same(1, 3, 3)}); err == nil || !strings.Contains(err.Error(), "prefill") {
		t.Errorf("prefill on a unit that is not there: %v", err)
	}
}

func TestIPhone(t *testing.T) {
	p := find(t, "iphone-17-pro")
	r := run(t, play.Config{Profile: p, Streams: play.Same(1, 1, 10)})
	for _, took := range r.Streams[0].Took[1:] {
		if got := fmt.Sprintf("%.1f", took.Seconds()*1e3); got != "71.7" {
			t.Errorf("a step took %s ms, not 71.7", got)
		}
	}
	if got := fmt.Sprintf("%.1f %.1f", r.Aggregate, r.Steady); got != "14.0 14.0" {
		t.Errorf("%s tok/s, not 14.0", got)
	}
	// The host's work is no unit's: two streams hide it.
	if two := run(t, play.Config{Profile: p, Streams: play.Same(2, 1, 10)}); math.Abs(two.Steady-1000/70.6) > 1e-6 {
		t.Errorf("two streams: %.3f tok/s, not %.3f", two.Steady, 1000/70.6)
	}
	// Outputs backed by buffers that were inputs: sixteen times slower.
	backed := *p
	backed.Units = slices.Clone(p.Units)
	rules := *p.Units[0].Buffers
	rules.Backed = true
	backed.Units[0].Buffers = &rules
	r = run(t, play.Config{Profile: &backed, Streams: play.Same(1, 1, 10), Cold: true})
	if took := r.Streams[0].Took; took[1] != ms(70.6+1.07+6*176.533) || took[1] != took[9] {
		t.Errorf("with backed outputs steps take %v", took)
	}
}

// unseen has everything at once. Rows are 400 bytes.
const unseen = `{
	"name": "unseen", "hidden": 100,
	"units": [{"name": "A", "busy_watts": 2, "idle_watts": 0.5, "watts": "measured"}, {"name": "B"}, {"name": "C"}],
	"chunks": [
		{"name": "x", "on": {"A": {"ms": 4, "row_ms": 2, "stream_ms": 1, "cold_ms": 10}}},
		{"name": "y", "kv": 50, "on": {"B": {"ms": 3, "stream_ms": 2}}},
		{"name": "z", "reads": ["y"], "on": {"C": {"ms": 5, "stream_ms": 0.5, "cold_ms": 20}}}
	],
	"handoffs": [
		{"from": "A", "to": "B", "call_ms": 1, "ns_per_byte": 2500},
		{"from": "*", "to": "C", "call_ms": 0.5}
	]
}`

// The timeline of three streams, worked out by hand. Streams 0 and 1 are there
// at 0 with a prompt of one token, stream 2 at 1 ms with three; each generates
// two.
//
//	x 0,1   0.0 cold 10 + 1                                        11.0
//	x 2    11.0 4 + 2·2                                            19.0
//	y 0,1  11.0 two rows from A: 2·(1 + 1), then 3 + 2             20.0
//	y 2    20.0 three rows from A: 1 + 3, then 3·3                 33.0
//	z 0,1  20.0 two times cache rows and a row: 4·0.5, 20 + 0.5    42.5
//	z 2    42.5 2·0.5, 5                                           48.5
//	x 0,1  42.5 4 + 1                                              47.5
//	x 2    48.5 4                                                  52.5
//	y 0,1  47.5 4, 3 + 2                                           56.5
//	y 2    56.5 2, 3                                               61.5
//	z 0,1  56.5 2, 5 + 0.5                                         64.0
//	z 2    64.0 1, 5                                               70.0
func TestUnseenProfile(t *testing.T) {
	r := run(t, play.Config{Profile: parse(t, unseen), Cold: true, Streams: []play.Stream{
		{Prompt: 1, Tokens: 2}, {Prompt: 1, Tokens: 2}, {Arrives: ms(1), Prompt: 3, Tokens: 2},
	}})
	var got []string
	for _, x := range r.Records {
		at := func(t time.Time) float64 { return t.Sub(r.Begin).Seconds() * 1e3 }
		got = append(got, fmt.Sprintf("%s%d %.1f-%.1f rows %d copy %.1f", "xyz"[x.Chunk:x.Chunk+1], x.Parts[0].Stream, at(x.Start), at(x.End), x.Rows, x.CopyTime.Seconds()*1e3))
	}
	want := []string{
		"x0 0.0-11.0 rows 2 copy 0.0",
		"x2 11.0-19.0 rows 3 copy 0.0",
		"y0 11.0-20.0 rows 2 copy 4.0",
		"y2 20.0-33.0 rows 3 copy 4.0",
		"z0 20.0-42.5 rows 2 copy 2.0",
		"x0 42.5-47.5 rows 2 copy 0.0",
		"z2 42.5-48.5 rows 3 copy 1.0",
		"x2 48.5-52.5 rows 1 copy 0.0",
		"y0 47.5-56.5 rows 2 copy 4.0",
		"y2 56.5-61.5 rows 1 copy 2.0",
		"z0 56.5-64.0 rows 2 copy 2.0",
		"z2 64.0-70.0 rows 1 copy 1.0",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s\nnot\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if r.Wall != ms(70) || r.Tokens != 6 {
		t.Errorf("%d tokens in %v", r.Tokens, r.Wall)
	}
	for i, busy := range []float64{28, 36, 42} {
		if r.Units[i].Busy != ms(busy) {
			t.Errorf("%s was busy for %v, not %g ms", r.Units[i].Name, r.Units[i].Busy, busy)
		}
	}
	if j := r.Units[0].Joules; math.Abs(j-(2*0.028+0.5*0.042)) > 1e-12 {
		t.Errorf("%g J", j)
	}
	if r.Units[1].Basis != "unavailable" {
		t.Errorf("B, whose watts nobody knows: %s", r.Units[1].Basis)
	}
	if r.Steady != 0 {
		t.Errorf("steady %.3f tok/s, though no stream has two tokens while all decode", r.Steady)
	}
}

// Kept apart, streams take turns; merged without a gain they would wait for
// each other.
func TestMerge(t *testing.T) {
	p := parse(t, unseen)
	for _, x := range []struct{ merge, most int }{{0, 3}, {1, 1}, {2, 2}} {
		r := run(t, play.Config{Profile: p, Merge: x.merge, Streams: play.Same(3, 1, 8)})
		most := 0
		for _, rec := range r.Records {
			most = max(most, rec.Streams)
		}
		if most != x.most {
			t.Errorf("merging at most %d: %d streams ran as one", x.merge, most)
		}
	}
	for _, rec := range run(t, play.Config{Profile: find(t, "mac-studio"), Streams: play.Same(3, 1, 8)}).Records {
		if rec.Streams != 1 {
			t.Fatalf("a chunk without a cost of further streams ran %d as one", rec.Streams)
		}
	}
}

// Units that share a driver do not overlap, whatever their queues hold.
func TestDriver(t *testing.T) {
	const device = `{"name": "d", "hidden": 8,
		"units": [{"name": "A"%[1]s}, {"name": "B"%[1]s}],
		"chunks": [{"name": "x", "on": {"A": {"ms": 5}}}, {"name": "y", "on": {"B": {"ms": 5}}}]}`
	shared := run(t, play.Config{Profile: parse(t, fmt.Sprintf(device, `, "driver": "d"`)), Streams: play.Same(2, 1, 10)})
	own := run(t, play.Config{Profile: parse(t, fmt.Sprintf(device, "")), Streams: play.Same(2, 1, 10)})
	if shared.Wall != ms(2*10*10) || own.Wall != ms(2*10*5+5) {
		t.Errorf("with one driver %v, with two %v; not 200 ms and 105 ms", shared.Wall, own.Wall)
	}
	if busy := shared.Units[0].Busy + shared.Units[1].Busy; busy != shared.Wall {
		t.Errorf("the units were busy for %v of %v", busy, shared.Wall)
	}
}

// Prefill flows through chunks on different units, and chunks that read caches
// only see the wanted row.
func TestPrefillPipelines(t *testing.T) {
	const device = `{"name": "d", "hidden": 8, "units": [{"name": "A"}, {"name": "B"}],
		"chunks": [{"name": "x", "on": {"A": {"ms": 5, "row_ms": 1}}}, {"name": "y", "kv": 2, "on": {"B": {"ms": 5, "row_ms": 1}}},
			{"name": "z", "reads": ["y"], "on": {"A": {"ms": 7}}}]}`
	r := run(t, play.Config{Profile: parse(t, device), Block: 4, Streams: play.Same(1, 16, 1)})
	if want := ms(5*8 + 7); r.Wall != want {
		t.Errorf("four blocks of 8 ms over two units and 7 ms: %v, not %v", r.Wall, want)
	}
}

// The same simulation twice gives the same records, however busy the machine is.
func TestDeterminism(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var streams []play.Stream
	for range 16 {
		streams = append(streams, play.Stream{Arrives: ms(float64(random.IntN(40))), Prompt: 1 + random.IntN(100), Tokens: 1 + random.IntN(20)})
	}
	for _, p := range []*sim.Profile{parse(t, unseen), find(t, "mac-studio"), find(t, "iphone-17-pro")} {
		c := play.Config{Profile: p, Block: 16, Streams: streams}
		if p.Name == "mac-studio" {
			c.Placement = split
		}
		first := run(t, c)
		for range 4 {
			if again := run(t, c); !reflect.DeepEqual(first, again) {
				t.Fatalf("%s: another run differs", p.Name)
			}
		}
	}
}

// In scaled time the same happens, as exactly as timers are.
func TestScaled(t *testing.T) {
	clock, err := sim.NewScaled(0.02)
	if err != nil {
		t.Fatal(err)
	}
	c := play.Config{Profile: find(t, "mac-studio"), Placement: split, Streams: play.Same(2, 3, 5)}
	want := run(t, c)
	c.Clock = clock
	got := run(t, c)
	if !reflect.DeepEqual(tokens(got), tokens(want)) || len(got.Records) != len(want.Records) {
		t.Errorf("%d tasks, tokens %v; in virtual time %d, %v", len(got.Records), tokens(got), len(want.Records), tokens(want))
	}
	for _, x := range got.Records {
		if d := x.End.Sub(x.Start); d < ms(5.3) {
			t.Errorf("a task of chunk %d took %v", x.Chunk, d)
		}
	}
	if _, err := sim.NewScaled(0); err == nil {
		t.Error("a scale of 0 was taken")
	}
}

func TestErrors(t *testing.T) {
	p := find(t, "mac-studio")
	done, cancel := context.WithCancel(t.Context())
	cancel()
	for _, x := range []struct {
		ctx  context.Context
		c    play.Config
		want string
	}{
		{t.Context(), play.Config{Streams: play.Same(1, 1, 1)}, "no device profile"},
		{t.Context(), play.Config{Profile: p}, "no streams"},
		{t.Context(), play.Config{Profile: p, Streams: play.Same(1, 0, 1)}, "prompt of 0"},
		{t.Context(), play.Config{Profile: p, Streams: play.Same(1, 1, 1), Placement: map[string]string{"c9": "ane"}}, `no chunk "c9"; it has c1, c2, c3, c4`},
		{t.Context(), play.Config{Profile: p, Streams: play.Same(1, 1, 1), Placement: map[string]string{"c1": "gpu"}}, `c1 on "gpu"; it can be on ane`},
		{done, play.Config{Profile: p, Streams: play.Same(1, 1, 1)}, "canceled"},
	} {
		_, err := play.Run(x.ctx, x.c)
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%v, not %q", err, x.want)
		}
	}
}

// engineOn opens an engine on a profile in virtual time and calls f in it.
func engineOn(t *testing.T, p *sim.Profile, placement map[string]string, slots int, f func(*sim.Virtual, *engine.Engine)) {
	t.Helper()
	clock := sim.NewVirtual()
	sim.Run(clock, func() {
		units, err := sim.NewDevice(p, clock).Place(placement)
		if err != nil {
			t.Error(err)
			return
		}
		e, err := engine.New(context.Background(), sim.Model(p), engine.Config{
			Ranges: sim.Ranges(p), Units: units, Slots: slots, Context: 100, Block: 8, Clock: clock,
		})
		if err != nil {
			t.Error(err)
			return
		}
		f(clock, e)
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}

func ignore(int, []float32) error { return nil }

// A cancelled stream's task in hand ends, and nothing of it begins; who waits
// for its slot has it then. Who stops waiting has stopped at once.
func TestCancel(t *testing.T) {
	engineOn(t, find(t, "mac-studio"), nil, 1, func(c *sim.Virtual, e *engine.Engine) {
		at := func() time.Duration { return c.Now().Sub(time.Unix(0, 0)) }
		ctx, cancel := context.WithCancel(context.Background())
		impatient, giveUp := context.WithCancel(context.Background())
		sim.All(c, func() {
			s, err := e.Stream(ctx)
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			err = s.Forward(ctx, []int32{1}, engine.Last, ignore)
			if !errors.Is(err, context.Canceled) || at() != ms(5.4+6.8) {
				t.Errorf("cancelled in c2, it ended at %v with %v", at(), err)
			}
		}, func() {
			_, err := e.Stream(impatient)
			if !errors.Is(err, context.Canceled) || at() != ms(3) {
				t.Errorf("giving up at 3 ms, it ended at %v with %v", at(), err)
			}
		}, func() {
			s, err := e.Stream(context.Background())
			if err != nil || at() != ms(5.4+6.8) {
				t.Errorf("the slot was free at %v, %v", at(), err)
				return
			}
			defer s.Close()
			if err := s.Forward(context.Background(), []int32{1}, engine.Last, ignore); err != nil || at() != ms(12.2+30.3) {
				t.Errorf("the next stream ended at %v, %v", at(), err)
			}
		}, func() {
			_ = c.Sleep(context.Background(), ms(3))
			giveUp()
			_ = c.Sleep(context.Background(), ms(7))
			cancel()
		})
	})
}

// Closing an engine ends streams whose next task is on another unit than the
// one in hand.
func TestCloseInFlight(t *testing.T) {
	engineOn(t, find(t, "mac-studio"), split, 2, func(c *sim.Virtual, e *engine.Engine) {
		sim.All(c, func() {
			s, err := e.Stream(context.Background())
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			err = s.Forward(context.Background(), []int32{1}, engine.Last, ignore)
			if now := c.Now().Sub(time.Unix(0, 0)); !errors.Is(err, engine.ErrClosed) || now != ms(12.2+1200) {
				t.Errorf("closed during c3, it ended at %v with %v", now, err)
			}
		}, func() {
			_ = c.Sleep(context.Background(), ms(20))
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		})
	})
}

// A stream that comes in the middle of another's step catches up with it, and
// they go on as one.
func TestStreamsMeet(t *testing.T) {
	const device = `{"name": "d", "hidden": 8, "units": [{"name": "A"}], "chunks": [
		{"name": "x", "on": {"A": {"ms": 4, "stream_ms": 1}}},
		{"name": "y", "on": {"A": {"ms": 4, "stream_ms": 1}}},
		{"name": "z", "on": {"A": {"ms": 4, "stream_ms": 1}}}]}`
	streams := []play.Stream{{Prompt: 1, Tokens: 3}, {Arrives: ms(5), Prompt: 1, Tokens: 3}}
	r := run(t, play.Config{Profile: parse(t, device), Streams: streams})
	var got []string
	for _, x := range r.Records {
		got = append(got, fmt.Sprintf("%s%d", "xyz"[x.Chunk:x.Chunk+1], x.Streams))
	}
	// The second one's x and y go before the first one's z.
	if want := "x1 y1 x1 y1 z2 x2 y2 z2 x2 y2 z2"; strings.Join(got, " ") != want {
		t.Errorf("tasks and their streams %v, not %s", got, want)
	}
	streams[1].Arrives = 0
	apart := run(t, play.Config{Profile: parse(t, device), Streams: streams, Merge: 1})
	for i, x := range apart.Records[:6] {
		if want := []int{0, 0, 1, 1, 2, 2}[i]; x.Chunk != want {
			t.Errorf("kept apart, task %d is of chunk %d, not %d: first come, first served", i, x.Chunk, want)
		}
	}
}
