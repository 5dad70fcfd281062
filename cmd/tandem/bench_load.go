package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tandemrun/tandem"
)

// loading measures the phases of loading a model.
func (b *benchCmd) loading(ctx context.Context, c *console) error {
	o, err := b.options()
	if err != nil {
		return err
	}
	file := b.Model
	if file == embedded {
		file = ""
	}
	loads := c.steps("loads")
	defer loads.clear()
	r, err := tandem.BenchmarkLoad(ctx, tandem.LoadBenchmark{
		File: file, Repetitions: b.Repetitions, DropCache: b.DropCache, Options: o, Progress: loads.update,
	})
	if err != nil {
		return err
	}
	loads.clear()
	state := b.cacheState(r)
	if b.Output == "md" {
		fmt.Fprintf(c.out, "%s: %s, %s, %d threads, %d samples; page cache: %s\n\n", r.Setup.File, r.Setup.Model, size(r.Setup.Size), r.Setup.Threads, b.Repetitions, state)
		table := &markdown{w: c.out, columns: []column{
			{"phase", 14, false}, {"unit", 6, false}, {"min", 10, true}, {"median", 10, true}, {"weights", 10, true}, {"GB/s", 6, true}}}
		for _, p := range r.Phases {
			least, median := p.Spread()
			bytes, rate, unit := "", "", p.Unit
			if unit == "" {
				unit = "all"
			}
			if p.Bytes > 0 {
				bytes = size(p.Bytes)
				rate = fmt.Sprintf("%.2f", float64(p.Bytes)/float64(max(median, 1)))
			}
			if err := table.row(p.Phase, unit, milliseconds(least), milliseconds(median), bytes, rate); err != nil {
				return err
			}
		}
		return nil
	}
	out, err := newPrinter(c.out, b.Output, "loading")
	if err != nil {
		return err
	}
	for _, p := range r.Phases {
		if err := out.print(loadRecord(r, p, state)); err != nil {
			return err
		}
	}
	return out.end()
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%.3f ms", d.Seconds()*1e3) }

// cacheState says in words what of the file was in the page cache.
func (b *benchCmd) cacheState(r tandem.LoadResult) string {
	switch {
	case r.Setup.File == "" || b.Model == "" || b.Model == embedded:
		return "none, the model is in the binary"
	case r.Cached == nil && b.DropCache:
		return "dropped before each sample; the system does not tell what stayed"
	case r.Cached == nil:
		return "warm, the file was read before; the system does not tell how much of it stayed"
	}
	least, most := 100*slices.Min(r.Cached), 100*slices.Max(r.Cached)
	state := "warm"
	if b.DropCache {
		state = "dropped before each sample"
	}
	if most-least < 1 {
		return fmt.Sprintf("%s, %.0f %% of the file in it", state, least)
	}
	return fmt.Sprintf("%s, %.0f to %.0f %% of the file in it", state, least, most)
}

func loadRecord(r tandem.LoadResult, p tandem.LoadPhase, state string) record {
	s := r.Setup
	least, median := p.Spread()
	samples := make([]int64, len(p.Samples))
	for i, d := range p.Samples {
		samples[i] = d.Nanoseconds()
	}
	var share any // unknown
	if len(r.Cached) > 0 {
		share = slices.Max(r.Cached)
	}
	return record{
		{"build_commit", revision()},
		{"cpu_info", s.Processor},
		{"model_filename", s.File},
		{"model_type", s.Model},
		{"model_size", s.Size},
		{"n_threads", s.Threads},
		{"kernels", s.Kernels},
		{"page_cache", state},
		{"page_cache_share", share},
		{"phase", p.Phase},
		{"unit", p.Unit},
		{"weight_bytes", p.Bytes},
		{"min_ns", least.Nanoseconds()},
		{"median_ns", median.Nanoseconds()},
		{"samples_ns", samples},
	}
}
