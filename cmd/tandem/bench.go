package main

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/tandemrun/tandem"
)

type benchCmd struct {
	modelFlags
	layoutFlags
	Prompt      []int  `short:"p" name:"n-prompt" default:"512" placeholder:"N" help:"Tokens of a prompt to prefill; 0 for none. Default: 512."`
	Gen         []int  `short:"n" name:"n-gen" default:"128" placeholder:"N" help:"Tokens to decode; 0 for none. Default: 128."`
	Depth       []int  `short:"d" name:"n-depth" default:"0" placeholder:"N" help:"Tokens in the caches before each test. Default: 0."`
	Streams     []int  `default:"1" placeholder:"N" help:"Streams that decode at once. Default: 1."`
	Repetitions int    `short:"r" default:"5" placeholder:"N" help:"Samples of each test, after a run to warm up. Default: 5."`
	Output      string `short:"o" enum:"md,csv,json,jsonl,sql" default:"md" placeholder:"FORMAT" help:"md, csv, json, jsonl or sql. Default: md."`
	Ops         bool   `help:"Print where the time of each test goes, by kind of operation, instead of its speed."`
	Load        bool   `help:"Measure the phases of loading the model instead: map, repack, compile, the first step, steady ones."`
	DropCache   bool   `help:"With --load: drop the file from the page cache before each sample (Linux)."`
	Roofline    bool   `help:"Measure only the ceilings of this machine; no model is loaded."`
}

// Help is shown by tandem bench --help.
func (benchCmd) Help() string {
	return `Examples:

    tandem bench -m model.gguf
    tandem bench -m model.gguf -p 512 -n 128 -d 0,4096 --threads 2 -o json
    tandem bench -m model.gguf -p 0 -n 64 --streams 1,2,4
    tandem bench -m model.gguf --ops
    tandem bench -m model.gguf --load -r 5
    tandem bench --roofline

Rows and keys are those of llama-bench: ppN is the prefill of N tokens, tgN the
decoding of N, @ dN with N in the caches before. The ceiling is measured between
the repetitions with as many threads: memory read for tg, 8-bit integer
operations for pp; share is the part of it that was reached.`
}

// Run measures.
func (b *benchCmd) Run(c *console) error {
	if b.Repetitions < 1 {
		return fmt.Errorf("-r %d: it must be at least 1", b.Repetitions)
	}
	switch {
	case b.Roofline && b.Ops:
		return errors.New("--roofline and --ops exclude each other")
	case b.Load && (b.Roofline || b.Ops):
		return errors.New("--load excludes --roofline and --ops")
	case b.DropCache && !b.Load:
		return errors.New("--drop-cache is for --load; other tests do not read the file")
	}
	ctx, stop := c.context()
	defer stop()
	if b.Roofline {
		return cause(ctx, b.roofline(ctx, c))
	}
	if b.Load {
		return cause(ctx, b.loading(ctx, c))
	}
	return cause(ctx, b.measure(ctx, c))
}

func (b *benchCmd) measure(ctx context.Context, c *console) (err error) {
	o, err := b.options()
	if err != nil {
		return err
	}
	o.TimeOps = b.Ops
	print, end, err := b.printer(c)
	if err != nil {
		return err
	}
	m, err := b.load()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	p := c.progress()
	defer p.clear()
	o.Progress = p.update
	begun := false
	err = m.Benchmark(ctx, tandem.Benchmark{
		Prompts: b.Prompt, Generate: b.Gen, Depths: b.Depth, Streams: b.Streams, Repetitions: b.Repetitions,
		Options: o, Ready: p.clear,
	}, func(r tandem.BenchmarkResult) error {
		begun = true
		return print(r)
	})
	if err != nil && !begun {
		return err
	}
	return errors.Join(err, end()) // what was printed is whole
}

// printer returns what prints a result and what ends the output.
func (b *benchCmd) printer(c *console) (func(tandem.BenchmarkResult) error, func() error, error) {
	nothing := func() error { return nil }
	if b.Output == "md" {
		if b.Ops {
			return func(r tandem.BenchmarkResult) error { return printOps(c, r) }, nothing, nil
		}
		streams := slices.ContainsFunc(b.Streams, func(n int) bool { return n != 1 })
		return markdownResults(c, streams), nothing, nil
	}
	table := "llama_bench"
	if b.Ops {
		table = "operations"
	}
	p, err := newPrinter(c.out, b.Output, table)
	if err != nil {
		return nil, nil, err
	}
	return func(r tandem.BenchmarkResult) error {
		if !b.Ops {
			return p.print(resultRecord(r))
		}
		for _, x := range opRows(r) {
			if err := p.print(x.record(r)); err != nil {
				return err
			}
		}
		return nil
	}, p.end, nil
}

// markdownResults prints results as a table like llama-bench's.
func markdownResults(c *console, streams bool) func(tandem.BenchmarkResult) error {
	columns := []column{
		{"model", 30, false}, {"size", 10, true}, {"params", 10, true}, {"backend", 10, false}, {"threads", 7, true},
		{"streams", 7, true}, {"test", 15, true}, {"t/s", 20, true}, {"ceiling", 12, true}, {"share", 7, true},
	}
	const at = 5 // of streams
	if !streams {
		columns = slices.Delete(columns, at, at+1)
	}
	table := &markdown{w: c.out, columns: columns}
	return func(r tandem.BenchmarkResult) error {
		s := r.Setup
		mean, deviation := r.Rate()
		value, unit := ceiling(r)
		cells := []string{
			s.Model, size(s.Size), parameters(s.Parameters), backends(s), fmt.Sprint(s.Threads), fmt.Sprint(r.Streams), r.Test,
			fmt.Sprintf("%.2f ± %.2f", mean, deviation), unavailable(value, "%.1f "+unit), unavailable(100*r.Share, "%.1f %%"),
		}
		if !streams {
			cells = slices.Delete(cells, at, at+1)
		}
		return table.row(cells...)
	}
}

// backends names the kinds of units, as llama-bench does.
func backends(s tandem.BenchmarkSetup) string {
	switch len(s.GPUs) {
	case 0:
		return "CPU"
	case len(s.Units):
		return "Vulkan"
	}
	return "CPU,Vulkan"
}

// unavailable writes a figure that may not have been measured.
func unavailable(value float64, format string) string {
	if value == 0 {
		return "unavailable"
	}
	return fmt.Sprintf(format, value)
}

// ceiling is the test's own ceiling; 0 was not measured.
func ceiling(r tandem.BenchmarkResult) (value float64, unit string) {
	if r.Prompt > 0 {
		return r.Multiply / 1e9, "GOPS"
	}
	return r.Read / 1e9, "GB/s"
}

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

// parameters is a number of parameters for a person.
func parameters(n int64) string {
	if n >= 1e9 {
		return fmt.Sprintf("%.2f B", float64(n)/1e9)
	}
	return fmt.Sprintf("%.2f M", float64(n)/1e6)
}

// resultRecord is a result with the keys of llama-bench that mean something
// here, and behind them those that llama-bench does not have.
func resultRecord(r tandem.BenchmarkResult) record {
	s := r.Setup
	mean, deviation := r.Rate()
	ns, nsDeviation := r.Duration()
	value, unit := ceiling(r)
	samples := make([]int64, len(r.Samples))
	for i, d := range r.Samples {
		samples[i] = d.Nanoseconds()
	}
	return record{
		{"build_commit", revision()},
		{"build_number", 0},
		{"cpu_info", s.Processor},
		{"gpu_info", strings.Join(s.GPUs, ", ")},
		{"backends", backends(s)},
		{"model_filename", s.File},
		{"model_type", s.Model},
		{"model_size", s.Size},
		{"model_n_params", s.Parameters},
		{"n_batch", s.Block},
		{"n_ubatch", s.Block},
		{"n_threads", s.Threads},
		{"type_k", s.KV},
		{"type_v", s.KV},
		{"n_prompt", r.Prompt},
		{"n_gen", r.Decoded},
		{"n_depth", r.Depth},
		{"test_time", r.Begin.UTC().Format(time.RFC3339)},
		{"avg_ns", ns.Nanoseconds()},
		{"stddev_ns", nsDeviation.Nanoseconds()},
		{"avg_ts", mean},
		{"stddev_ts", deviation},
		{"samples_ns", samples},
		{"samples_ts", r.Rates},
		{"kernels", s.Kernels},
		{"n_streams", r.Streams},
		{"work", r.Work},
		{"ceiling", known(value > 0, value)},
		{"ceiling_unit", unit},
		{"share", known(r.Share > 0, r.Share)},
	}
}

// revision is the commit of the build, or "unknown".
func revision() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return s.Value[:min(9, len(s.Value))]
			}
		}
	}
	return "unknown"
}

func (b *benchCmd) roofline(ctx context.Context, c *console) error {
	o, err := b.options()
	if err != nil {
		return err
	}
	var threads []int
	if o.Threads > 0 {
		threads = slices.Compact([]int{1, o.Threads})
	}
	all, err := tandem.Roofline(ctx, threads...)
	if err != nil {
		return err
	}
	if b.Output == "md" {
		table := &markdown{w: c.out, columns: []column{
			{"threads", 0, true}, {"memory read", 12, true}, {"best", 12, true}, {"int8 peak", 12, true}, {"best", 12, true}}}
		for _, x := range all {
			err := table.row(fmt.Sprint(x.Threads), fmt.Sprintf("%.1f GB/s", x.Read/1e9), fmt.Sprintf("%.1f GB/s", x.BestRead/1e9),
				fmt.Sprintf("%.1f GOPS", x.Multiply/1e9), fmt.Sprintf("%.1f GOPS", x.BestMultiply/1e9))
			if err != nil {
				return err
			}
		}
		return nil
	}
	p, err := newPrinter(c.out, b.Output, "roofline")
	if err != nil {
		return err
	}
	for _, x := range all {
		err := p.print(record{
			{"n_threads", x.Threads}, {"read_gbs", x.Read / 1e9}, {"read_best_gbs", x.BestRead / 1e9},
			{"int8_gops", x.Multiply / 1e9}, {"int8_best_gops", x.BestMultiply / 1e9}, {"samples", x.Samples},
		})
		if err != nil {
			return err
		}
	}
	return p.end()
}
