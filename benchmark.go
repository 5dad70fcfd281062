package tandem

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tandemrun/tandem/machine"
	"github.com/tandemrun/tandem/quant"
	"github.com/tandemrun/tandem/speed"
	"github.com/tandemrun/tandem/unit/cpu/kernel"
	"github.com/tandemrun/tandem/unit/gpu"
)

// A Benchmark says what to measure: for each depth the prefill of each prompt,
// then decoding each number of tokens in each number of streams at once.
type Benchmark struct {
	Prompts     []int // tokens of a prompt
	Generate    []int // tokens decoded in each stream
	Depths      []int // tokens in the caches before; empty is 0
	Streams     []int // streams that decode at once; empty is 1
	Repetitions int   // samples of a test, after a run to warm up; 0 is 5
	// Options lay the model out. Context and Streams are at least what the tests
	// need. With TimeOps, results say where the time went.
	Options Options
	// Ready, if not nil, is called when the model is loaded.
	Ready func()
}

// BenchmarkSetup is what the results of a Benchmark have in common.
type BenchmarkSetup struct {
	File       string // path of the model
	Model      string // architecture, size and type: "llama 1B Q4_0"
	Size       int64  // bytes of all tensors
	Parameters int64
	Processor  string
	Kernels    string // instruction set of the kernels
	Units      []string
	Threads    int // of all units
	Block      int // most tokens of a prompt in one task
	KV         string
	GPUs       []string // devices of the units that are one
	Weights    int64    // bytes of weights that a decode step reads, as the file stores them
}

// A BenchmarkResult is what one test took and the ceiling it is held against.
type BenchmarkResult struct {
	Setup   BenchmarkSetup
	Test    string // as in llama-bench: pp512, tg128 @ d4096
	Prompt  int    // tokens of the prompt, or 0
	Decoded int    // tokens decoded in each stream, or 0
	Depth   int
	Streams int
	Begin   time.Time
	Samples []time.Duration // one for each repetition
	Rates   []float64       // tokens a second of all streams together, one for each repetition
	// Work is what a repetition must do at least. Of a prompt it is operations
	// of products with weights, a multiplication and an addition being two; when
	// tokens are decoded it is bytes of weights, read once a step for all streams.
	Work int64
	// Read and Multiply are ceilings of as many threads, in bytes a second from
	// memory and operations a second on 8-bit integers: medians of measurements
	// before, between and after the repetitions. Only the test's own was
	// measured, except with TimeOps; the other is 0.
	Read, Multiply float64
	// Share is Work by the mean time and the test's own ceiling (Multiply of a
	// prompt, Read of decoding); 1 is as fast as can be.
	Share float64
	// Ops says, with TimeOps, where the time of all repetitions went.
	Ops []OpTime
}

// Total is the time of all repetitions.
func (r BenchmarkResult) Total() time.Duration {
	var sum time.Duration
	for _, d := range r.Samples {
		sum += d
	}
	return sum
}

// Rate is the mean and the deviation of a repetition, in tokens a second.
func (r BenchmarkResult) Rate() (mean, deviation float64) {
	return speed.Mean(r.Rates), speed.Deviation(r.Rates)
}

// Duration is the mean and the deviation of a repetition.
func (r BenchmarkResult) Duration() (mean, deviation time.Duration) {
	ns := speed.Nanoseconds(r.Samples)
	return time.Duration(speed.Mean(ns)), time.Duration(speed.Deviation(ns))
}

// tests lists a benchmark's tests in order and what they need.
func (b *Benchmark) tests() (tests []speed.Test, positions, streams int, err error) {
	depths, at := b.Depths, b.Streams
	if len(depths) == 0 {
		depths = []int{0}
	}
	if len(at) == 0 {
		at = []int{1}
	}
	add := func(t speed.Test) {
		tests = append(tests, t)
		positions, streams = max(positions, t.Positions()), max(streams, t.Streams)
	}
	for _, list := range []struct {
		what string
		n    []int
		low  int
	}{{"a prompt", b.Prompts, 0}, {"new tokens", b.Generate, 0}, {"the depth", depths, 0}, {"streams", at, 1}} {
		for _, n := range list.n {
			if n < list.low {
				return nil, 0, 0, fmt.Errorf("benchmark: %s cannot be %d; it must be at least %d", list.what, n, list.low)
			}
		}
	}
	for _, d := range depths {
		for _, p := range b.Prompts {
			if p > 0 {
				add(speed.Test{Prompt: p, Depth: d, Streams: 1})
			}
		}
		for _, n := range b.Generate {
			for _, s := range at {
				if n > 0 {
					add(speed.Test{Generate: n, Depth: d, Streams: s})
				}
			}
		}
	}
	if len(tests) == 0 {
		return nil, 0, 0, errors.New("benchmark: there is nothing to measure: all prompts and numbers of new tokens are 0")
	}
	return tests, positions, streams, nil
}

// Benchmark loads the model, runs the tests and calls each with the result of
// one after the other; an error of each ends it.
func (m *Model) Benchmark(ctx context.Context, b Benchmark, each func(BenchmarkResult) error) (err error) {
	tests, positions, streams, err := b.tests()
	if err != nil {
		return err
	}
	o := b.Options
	for _, t := range tests {
		if t.Positions() > m.model.Context {
			return fmt.Errorf("%s needs %d positions; %s was trained for up to %d", t.Name(), t.Positions(), m.Name(), m.model.Context)
		}
	}
	o.Context, o.Streams = max(o.Context, positions), max(o.Streams, streams)
	setup, cores, err := m.setup(o)
	if err != nil {
		return err
	}
	whole, err := m.model.Program(0, len(m.model.Layers))
	if err != nil {
		return err
	}
	setup.Weights, _ = whole.Bytes()
	e, err := m.Open(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	var gauge *speed.Gauge // the ceilings of GPUs are not measured
	if len(cores) > 0 {
		if gauge, err = newGauge(cores); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, gauge.Close()) }()
	}
	if b.Ready != nil {
		b.Ready()
	}
	bench := speed.Bench{Engine: e.e, Gauge: gauge, Program: whole, Repetitions: b.Repetitions, TimeOps: o.TimeOps}
	if bench.Repetitions == 0 {
		bench.Repetitions = 5
	}
	for _, t := range tests {
		r, err := bench.Run(ctx, t)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", m.Name(), t.Name(), err)
		}
		err = each(BenchmarkResult{
			Setup: setup, Test: t.Name(), Prompt: t.Prompt, Decoded: t.Generate, Depth: t.Depth, Streams: t.Streams,
			Begin: r.Begin, Samples: r.Samples, Rates: r.Rates(), Work: r.Work,
			Read: speed.Median(r.Read), Multiply: speed.Median(r.Multiply), Share: r.Share(), Ops: r.Ops,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// setup describes the model and its layout, and lists the cores that the units'
// workers run on.
func (m *Model) setup(o Options) (BenchmarkSetup, []int, error) {
	s := BenchmarkSetup{File: m.Name(), Model: m.describe(), Kernels: kernel.Best().String()}
	for _, t := range m.file.Tensors() {
		s.Size += int64(len(t.Data))
		s.Parameters += int64(t.Elements())
	}
	l, err := m.layout(o)
	if err != nil {
		return s, nil, err
	}
	s.Block, s.KV = l.o.Block, l.o.KV.String()
	host, err := machine.Detect()
	if err != nil {
		return s, nil, fmt.Errorf("finding the cores of this machine: %w", err)
	}
	s.Processor = host.Model
	var cores []int
	for _, name := range l.units() {
		s.Units = append(s.Units, name)
		c, err := unitCores(name, host)
		if err != nil {
			return s, nil, err
		}
		if gpu.Is(name) {
			d, err := findGPU(name)
			if err != nil {
				return s, nil, err
			}
			s.GPUs = addNew(s.GPUs, d.Name)
		}
		if o.Threads > 0 {
			c = c[:min(len(c), o.Threads)]
		}
		for _, id := range c {
			cores = addNew(cores, id)
		}
	}
	s.Threads = len(cores)
	return s, cores, nil
}

func addNew[T comparable](list []T, x T) []T {
	for _, y := range list {
		if x == y {
			return list
		}
	}
	return append(list, x)
}

func newGauge(cores []int) (*speed.Gauge, error) {
	host, err := machine.Detect()
	if err != nil {
		return nil, fmt.Errorf("finding the cores of this machine: %w", err)
	}
	return speed.NewGauge(speed.GaugeConfig{CPUs: cores, ISA: kernel.Best(), Bytes: speed.ReadBytes(host)})
}

// describe names the architecture, size and type of the model as llama-bench
// does: "llama 1B Q4_0".
func (m *Model) describe() string {
	label, err := m.file.String("general.size_label")
	if err != nil {
		var n float64
		for _, t := range m.file.Tensors() {
			n += float64(t.Elements())
		}
		switch {
		case n >= 1e9:
			label = fmt.Sprintf("%.2gB", n/1e9)
		case n >= 1e6:
			label = fmt.Sprintf("%.0fM", n/1e6)
		default:
			label = fmt.Sprintf("%.0fK", n/1e3)
		}
	}
	return strings.Join([]string{m.model.Arch, label, m.fileType()}, " ")
}

// fileTypes are the names of general.file_type where they are not those of a
// block type alone.
var fileTypes = map[uint64]string{
	0: "all F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K - Medium", 11: "Q3_K - Small",
	12: "Q3_K - Medium", 13: "Q3_K - Large", 14: "Q4_K - Small", 15: "Q4_K - Medium", 16: "Q5_K - Small",
	17: "Q5_K - Medium", 18: "Q6_K", 25: "IQ4_NL", 30: "IQ4_XS", 32: "BF16", 38: "MXFP4 MoE",
}

// fileType is the type that the file says it has, or the one that most of its
// values have.
func (m *Model) fileType() string {
	if id, err := m.file.Uint("general.file_type"); err == nil && fileTypes[id] != "" {
		return fileTypes[id]
	}
	count := map[quant.Type]uint64{}
	var most quant.Type
	for _, t := range m.file.Tensors() {
		count[t.Type] += t.Elements()
		if count[t.Type] > count[most] {
			most = t.Type
		}
	}
	return most.String()
}

// Ceilings are how fast a number of threads can be at most: medians and the
// best of several measurements.
type Ceilings struct {
	Threads                int
	Read, BestRead         float64 // bytes a second from memory
	Multiply, BestMultiply float64 // operations a second on 8-bit integers
	Samples                int
}

// Roofline measures the ceilings of this process's cores with numbers of
// threads; without any, with one and with one a core.
func Roofline(ctx context.Context, threads ...int) ([]Ceilings, error) {
	host, err := machine.Detect()
	if err != nil {
		return nil, fmt.Errorf("finding the cores of this machine: %w", err)
	}
	cores := host.Usable()
	if len(threads) == 0 {
		threads = addNew([]int{1}, len(cores))
	}
	var out []Ceilings
	for _, n := range threads {
		if n < 1 || n > len(cores) {
			return nil, fmt.Errorf("%d threads: this process may use 1 to %d cores", n, len(cores))
		}
		c, err := ceilings(ctx, cores[:n])
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// rooflineSamples is how many measurements Roofline takes of each ceiling.
const rooflineSamples = 11

func ceilings(ctx context.Context, cores []int) (c Ceilings, err error) {
	g, err := newGauge(cores)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	var read, multiply []float64
	for range rooflineSamples {
		if ctx.Err() != nil {
			return c, context.Cause(ctx)
		}
		read, multiply = append(read, g.Read()), append(multiply, g.Multiply())
	}
	c = Ceilings{Threads: g.Threads(), Read: speed.Median(read), Multiply: speed.Median(multiply), Samples: rooflineSamples}
	for i := range read {
		c.BestRead, c.BestMultiply = max(c.BestRead, read[i]), max(c.BestMultiply, multiply[i])
	}
	return c, nil
}
