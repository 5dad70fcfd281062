package tandem

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tandemrun/tandem/engine"
	"github.com/tandemrun/tandem/gguf"
	"github.com/tandemrun/tandem/machine"
	"github.com/tandemrun/tandem/model"
	"github.com/tandemrun/tandem/spike"
	"github.com/tandemrun/tandem/synth"
	"github.com/tandemrun/tandem/unit/gpu"
)

// A Spike measures what a model gains if some of its chunks move to another
// unit. See package spike and docs/spike.md.
type Spike struct {
	// Layout is how the model is split and placed before; without a placement
	// everything is on cpu:0, and of a device where its profile has it. Where
	// prompts are placed says where one flows through chunks in blocks; without it
	// that is found out.
	Layout Options
	// Move names the chunks that move, with their units: "c3=cpu:1", which is also
	// the default of a model; of a device it is c3, or else the first chunk that
	// can, on another unit.
	Move    string
	Streams []int // numbers of streams at once; nil is 1, 2, 4
	Tokens  int   // of each stream in a trial; 0 is 64
	Trials  int   // of each schedule; 0 is 4, one for each kind of prompt
	Probes  int   // trials of the overlap probe; 0 is 10
	// Stage, if not nil, is told what is being measured, from one goroutine.
	Stage func(what string)
}

// A SpikeReport is what a Spike found. It writes itself as text, and as files.
type SpikeReport = spike.Report

// A SpikeSummary is a report as programs read it.
type SpikeSummary = spike.Summary

// SpikeFiles are the names of the files that SpikeReport.WriteFiles writes.
func SpikeFiles() []string { return spike.Files() }

// Defaults of a Spike.
const (
	spikeTokens = 64
	spikeTrials = 4
	spikeProbes = 10
	spikeBase   = "cpu:0"
	spikeUnit   = "cpu:1"
	spikeChunk  = 2 // c3
)

// Spike measures on this model.
func (m *Model) Spike(ctx context.Context, s Spike) (*SpikeReport, error) {
	return m.spike(ctx, s, nil)
}

// SpikeDefault measures times on a synthetic Gemma 4 made in memory, the chunks
// of which take milliseconds, and compares tokens on the embedded model too,
// whose chunks are too small to be timed.
func SpikeDefault(ctx context.Context, s Spike) (*SpikeReport, error) {
	if s.Stage != nil {
		s.Stage("making a synthetic model")
	}
	data, err := synth.Bytes(ctx, synth.Options{Shape: spikeShape(), Type: "q4_0", Seed: 1})
	if err != nil {
		return nil, err
	}
	f, err := gguf.Read("a synthetic Gemma 4 (E2B at half its width, 12 layers)", data)
	if err != nil {
		return nil, err
	}
	m, err := read(f)
	if err != nil {
		return nil, err
	}
	texts, err := Embedded()
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	r, err := m.spike(ctx, s, texts)
	return r, errors.Join(err, m.Close(), texts.Close())
}

// spikeShape is Gemma 4 E2B's with half its width, fewer layers and a
// small vocabulary: 80 MB of weights to read in a step, over which a core takes
// six to ten milliseconds, and no table that takes long to make.
func spikeShape() synth.Shape {
	s, err := synth.ShapeNamed("gemma4-e2b")
	if err != nil {
		panic(err) // it is a shape of that package
	}
	s.Name, s.Title = "gemma4-half", "Gemma 4 E2B at half its width"
	s.Layers, s.Shared, s.Hidden, s.FFN, s.Heads, s.Vocab = 12, 6, 768, 3072, 4, 8192
	return s
}

func (m *Model) spike(ctx context.Context, s Spike, texts *Model) (*SpikeReport, error) {
	if s.Layout.Place == "" {
		s.Layout.Place = spikeBase
	}
	lab, err := m.bench(s.Layout)
	if err != nil {
		return nil, err
	}
	o := s.options()
	if o.Base, err = place("place", s.Layout.Place, slices.Repeat([]string{defaultUnit}, len(lab.ranges))); err != nil {
		return nil, err
	}
	move := s.Move
	if move == "" {
		move = fmt.Sprintf("c%d=%s", min(spikeChunk, len(lab.ranges)-1)+1, spikeUnit)
	}
	if o.Moved, err = moved(o.Base, move); err != nil {
		return nil, err
	}
	if s.Layout.PlacePrefill != "" {
		if o.Prefill, err = place("place-prefill", s.Layout.PlacePrefill, o.Moved); err != nil {
			return nil, err
		}
	}
	if err := lab.find(o.Base, o.Moved, o.Prefill); err != nil {
		return nil, err
	}
	if texts != nil {
		other, err := texts.bench(Options{Threads: s.Layout.Threads})
		if err != nil {
			return nil, err
		}
		if err := other.find(o.Base, o.Moved); err != nil {
			return nil, err
		}
		defer func() { other.delay.Close() }()
		o.Texts = other
	}
	r, err := spike.Measure(ctx, lab, o)
	lab.delay.Close()
	if err != nil {
		return nil, err
	}
	r.Machine = lab.machine
	return r, nil
}

func (s *Spike) options() spike.Options {
	o := spike.Options{Streams: slices.Clone(s.Streams), Tokens: s.Tokens, Trials: s.Trials, Probes: s.Probes, Stage: s.Stage}
	if len(o.Streams) == 0 {
		o.Streams = []int{1, 2, 4}
	}
	slices.Sort(o.Streams)
	o.Streams = slices.Compact(o.Streams)
	for _, n := range []struct {
		to  *int
		def int
	}{{&o.Tokens, spikeTokens}, {&o.Trials, spikeTrials}, {&o.Probes, spikeProbes}} {
		if *n.to == 0 {
			*n.to = n.def
		}
	}
	return o
}

// moved is a placement with some chunks moved.
func moved(base []string, move string) ([]string, error) {
	out := slices.Clone(base)
	for _, pair := range strings.Split(move, ",") {
		chunk, name, ok := strings.Cut(pair, "=")
		n, err := strconv.Atoi(strings.TrimPrefix(chunk, "c"))
		if !ok || err != nil || !strings.HasPrefix(chunk, "c") || name == "" {
			return nil, fmt.Errorf("--move %s: %q is not of the form c3=UNIT", move, pair)
		}
		if n < 1 || n > len(base) {
			return nil, fmt.Errorf("--move %s: there is no chunk %s; there are c1 to c%d", move, chunk, len(base))
		}
		if base[n-1] == name {
			return nil, fmt.Errorf("--move %s: %s is on %s already; choose another unit, or another --place", move, chunk, name)
		}
		out[n-1] = name
	}
	return out, nil
}

// bench is a model on this machine as package spike sees it.
type bench struct {
	spike.Wall
	m       *Model
	o       Options
	ranges  []model.Range
	units   []spike.Unit
	placed  []string // of them, those of the placements
	prompts []spike.Prompt
	most    int
	machine string

	mu    sync.Mutex
	delay machine.DelayMeter
}

func (m *Model) bench(o Options) (*bench, error) {
	l, err := m.layout(o)
	if err != nil {
		return nil, err
	}
	b := &bench{m: m, o: o, ranges: l.ranges, most: 1}
	set, err := m.testPrompts()
	if err != nil {
		return nil, err
	}
	for _, p := range set { // one of each kind, the longest that is not long
		i := slices.IndexFunc(b.prompts, func(x spike.Prompt) bool { return x.Category == p.Kind })
		x := spike.Prompt{Category: p.Kind, Name: p.Name, Tokens: p.Tokens}
		switch {
		case i < 0 || p.Kind == "ids" && len(b.prompts) < 4:
			b.prompts = append(b.prompts, x)
		case p.Kind != "ids" && len(p.Tokens) > len(b.prompts[i].Tokens) && len(p.Tokens) <= 48:
			b.prompts[i] = x
		}
	}
	return b, nil
}

// find lists the units to measure: those of the placements, and of the others
// that this machine has all that are not single cores. Where two names mean one
// device or the same cores, the first is taken.
func (b *bench) find(placements ...[]string) error {
	host, err := Units()
	if err != nil {
		return err
	}
	b.machine = fmt.Sprintf("%s, %d cores, %s", host.Model, len(host.Cores), host.Kernels)
	detected, err := machine.Detect()
	if err != nil {
		return err
	}
	taken := map[string]bool{}
	add := func(name string, u UnitInfo) {
		if what := u.hardware(); !taken[what] {
			taken[what] = true
			b.units = append(b.units, spike.Unit{Name: name, Kind: u.Kind})
		}
	}
	for _, name := range slices.Concat(placements...) {
		if slices.ContainsFunc(b.units, func(u spike.Unit) bool { return u.Name == name }) {
			continue
		}
		u, err := host.unit(name, detected)
		if err == nil && !u.Usable {
			err = fmt.Errorf("unit %s: %s", name, u.Why)
		}
		if err != nil {
			return fmt.Errorf("%w; choose another with --move or --place, or a device with --device mac-studio", err)
		}
		if taken[u.hardware()] {
			return fmt.Errorf("unit %s: another unit of --place and --move is the same under another name; use one name", name)
		}
		add(name, u)
		b.placed = append(b.placed, name)
	}
	for _, u := range host.Units {
		if u.Usable && len(u.Cores) != 1 {
			add(u.Name, u)
		}
	}
	o := b.o
	o.Place, o.Streams = placement(placements[0]), 4
	l, err := b.m.layout(o)
	if err != nil {
		return err
	}
	plans, err := b.m.plan(l)
	if err != nil {
		return err
	}
	var need int64
	for _, p := range plans {
		need += p.Weights + p.KV + p.Buffers
	}
	const margin = 0.8 // of what is available
	if host.Available > 0 && need > 0 {
		b.most = max(1, int(margin*float64(host.Available)/float64(need)))
	}
	return nil
}

// unit is a unit by any of its names.
func (h *Host) unit(name string, m *machine.Machine) (UnitInfo, error) {
	i := slices.IndexFunc(h.Units, func(u UnitInfo) bool { return u.Name == name })
	if gpu.Is(name) {
		d, err := findGPU(name)
		if err != nil {
			return UnitInfo{}, err
		}
		i = slices.IndexFunc(h.Units, func(u UnitInfo) bool { return u.Name == fmt.Sprintf("gpu:%d", d.Index) })
	}
	if i >= 0 {
		return h.Units[i], nil
	}
	cores, err := unitCores(name, m)
	return UnitInfo{Name: name, Usable: true, Kind: "cpu/" + h.Kernels, Cores: cores}, err
}

// hardware names what a unit is, whatever it is called.
func (u *UnitInfo) hardware() string {
	if len(u.Cores) > 0 {
		return fmt.Sprint("cores ", u.Cores)
	}
	return u.Name
}

func (b *bench) Name() string            { return b.m.Name() }
func (b *bench) Model() *model.Model     { return b.m.model }
func (b *bench) Ranges() []model.Range   { return b.ranges }
func (b *bench) Units() []spike.Unit     { return b.units }
func (b *bench) CanRun(int, string) bool { return true }
func (b *bench) Prompts() []spike.Prompt { return b.prompts }
func (b *bench) Token(id int32) string   { return b.m.Token(id) }
func (b *bench) Most() int               { return b.most }

// Delay is how long threads have waited for a CPU.
func (b *bench) Delay() (time.Duration, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.delay.Read()
}

// Others is for how long others have had the CPUs.
func (b *bench) Others() (time.Duration, int, bool) { return machine.Others() }

// Text is what tokens say up to the end of the turn.
func (b *bench) Text(ids []int32) string {
	if i := slices.IndexFunc(ids, b.m.ends); i >= 0 {
		ids = ids[:i]
	}
	text, err := b.m.Detokenize(ids, false)
	if err != nil {
		return ""
	}
	return text
}

// Open opens an engine.
func (b *bench) Open(ctx context.Context, l spike.Layout) (*engine.Engine, error) {
	o := b.o
	o.Place, o.Streams, o.Context, o.Block, o.Merge, o.Observe = placement(l.Place), l.Streams, l.Context, l.Block, 0, l.Observe
	o.BlockBeside = l.Block // what is measured in a moment is not to be cut by what was just before
	o.besideUnits = b.placed
	if o.PlacePrefill = ""; l.Prefill != nil {
		o.PlacePrefill = placement(l.Prefill)
	}
	if o.Context > b.m.model.Context {
		return nil, fmt.Errorf("%s: %d positions are needed to measure; the model was trained for %d: use a smaller -n", b.m.Name(), o.Context, b.m.model.Context)
	}
	e, err := b.m.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	return e.e, nil
}
