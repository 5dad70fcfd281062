package tandem

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/tandemrun/tandem/engine"
	"github.com/tandemrun/tandem/machine"
	"github.com/tandemrun/tandem/speed"
)

// A LoadBenchmark measures what it takes to get from a file to a steady step,
// phase by phase. The model is loaded anew for each sample, and once before
// them, which does not count.
type LoadBenchmark struct {
	File        string // path of the model; "" is the embedded one
	Repetitions int    // samples of a phase; 0 is 5
	Steps       int    // steps after the first in each sample; 0 is 16
	// DropCache asks the system before each sample to forget what it has cached
	// of the file. It is an error where the system has no such request.
	DropCache bool
	Options   Options
	// Progress, if not nil, is called after each load.
	Progress func(done, total int)
}

// A LoadResult is what the phases took.
type LoadResult struct {
	Setup BenchmarkSetup
	// Cached is the share of the file that was in the system's cache of pages
	// before each sample, nil where the system does not tell or there is no file.
	Cached []float64
	Phases []LoadPhase
}

// A LoadPhase is one part of a load: "map" (open, map and check the file, read
// the vocabulary), "open" (start the units and prepare all chunks, units side
// by side) with its parts on each unit ("repack", "compile", or what the unit
// has), "first dispatch" (the first step of one token) and "steady step" (the
// median of those after it), both also by unit if there are several.
type LoadPhase struct {
	Phase   string
	Unit    string          // "" is everything
	Bytes   int64           // of weights that were laid out; 0 for other phases
	Samples []time.Duration // one for each repetition
}

// Spread is the shortest and the median of the samples.
func (p LoadPhase) Spread() (least, median time.Duration) {
	for i, d := range p.Samples {
		if i == 0 || d < least {
			least = d
		}
	}
	return least, time.Duration(speed.Median(speed.Nanoseconds(p.Samples)))
}

// BenchmarkLoad runs a LoadBenchmark.
func BenchmarkLoad(ctx context.Context, b LoadBenchmark) (LoadResult, error) {
	var r LoadResult
	if b.Repetitions < 0 || b.Steps < 0 {
		return r, fmt.Errorf("benchmark: %d repetitions of %d steps", b.Repetitions, b.Steps)
	}
	if b.Repetitions == 0 {
		b.Repetitions = 5
	}
	if b.Steps == 0 {
		b.Steps = 16
	}
	load := func() (*Model, error) {
		if b.File == "" {
			return Embedded()
		}
		return Load(b.File)
	}
	var files []string
	for i := range b.Repetitions + 1 {
		counts := i > 0
		if counts && b.DropCache {
			if len(files) == 0 {
				return r, errors.New("--drop-cache: the embedded model is in the binary and has no file of its own; name one with -m")
			}
			for _, f := range files {
				if err := machine.DropFileCache(f); err != nil {
					return r, fmt.Errorf("--drop-cache: %w", err)
				}
			}
		}
		if share, ok := cachedShare(files); ok {
			r.Cached = append(r.Cached, share)
		}
		sample := loadSample{}
		begin := time.Now()
		m, err := load()
		if err != nil {
			return r, err
		}
		sample.add("map", "", time.Since(begin), 0)
		err = m.sampleLoad(ctx, b, &sample)
		if err == nil && !counts {
			files = m.file.Paths()
			r.Setup, _, err = m.setup(b.Options)
		}
		if err = errors.Join(err, m.Close()); err != nil {
			return r, err
		}
		if counts {
			r.add(sample)
		}
		if b.Progress != nil {
			b.Progress(i+1, b.Repetitions+1)
		}
	}
	return r, nil
}

// cachedShare is the share of files that the system has cached.
func cachedShare(files []string) (float64, bool) {
	var in, all int64
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil {
			return 0, false
		}
		n, err := machine.FileCached(f)
		if err != nil {
			return 0, false
		}
		in, all = in+n, all+info.Size()
	}
	return float64(in) / float64(max(all, 1)), len(files) > 0
}

// loadSample is the phases of one load, in order, without their samples of
// others.
type loadSample []LoadPhase

// add adds to a phase.
func (s *loadSample) add(phase, unit string, d time.Duration, bytes int64) {
	for i := range *s {
		if p := &(*s)[i]; p.Phase == phase && p.Unit == unit {
			p.Samples[0] += d
			p.Bytes += bytes
			return
		}
	}
	*s = append(*s, LoadPhase{phase, unit, bytes, []time.Duration{d}})
}

// add takes a sample, whose phases are those of the samples before.
func (r *LoadResult) add(s loadSample) {
	if r.Phases == nil {
		r.Phases = s
		return
	}
	for i := range r.Phases {
		r.Phases[i].Samples = append(r.Phases[i].Samples, s[i].Samples...)
	}
}

// sampleLoad opens an engine and runs its first steps.
func (m *Model) sampleLoad(ctx context.Context, b LoadBenchmark, s *loadSample) (err error) {
	var mu sync.Mutex
	var tasks []Record // since the step began
	o := b.Options
	o.Observe = func(r Record) {
		mu.Lock()
		defer mu.Unlock()
		tasks = append(tasks, r)
	}
	if o.Context == 0 {
		o.Context = min(defaultContext, m.model.Context)
	}
	if b.Steps+1 > o.Context {
		return fmt.Errorf("%d steps do not fit into a context of %d", b.Steps+1, o.Context)
	}
	begin := time.Now()
	e, err := m.Open(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	s.add("open", "", time.Since(begin), 0)
	for _, c := range slices.Concat(e.e.Chunks(), e.e.PrefillChunks()) {
		if c.Phases == nil {
			s.add("compile", c.Unit, c.Load, 0)
		}
		for _, p := range c.Phases {
			s.add(p.Name, c.Unit, p.Time, p.Bytes)
		}
	}
	stream, err := e.e.Stream(ctx)
	if err != nil {
		return err
	}
	defer stream.Close()
	units := e.Units()
	// step returns what a step took, all of it and on each unit.
	step := func() (time.Duration, []time.Duration, error) {
		begin := time.Now()
		err := stream.Forward(ctx, []int32{0}, engine.Last, func(int, []float32) error { return nil })
		all := time.Since(begin)
		mu.Lock()
		defer mu.Unlock()
		by := make([]time.Duration, len(units))
		for _, t := range tasks {
			by[t.Unit] += t.End.Sub(t.Start)
		}
		tasks = tasks[:0]
		return all, by, err
	}
	first, firstBy, err := step()
	if err != nil {
		return err
	}
	var all []time.Duration
	by := make([][]time.Duration, len(units))
	for range b.Steps {
		d, units, err := step()
		if err != nil {
			return err
		}
		all = append(all, d)
		for i := range by {
			by[i] = append(by[i], units[i])
		}
	}
	median := func(x []time.Duration) time.Duration { return time.Duration(speed.Median(speed.Nanoseconds(x))) }
	report := func(phase string, all time.Duration, by func(i int) time.Duration) {
		s.add(phase, "", all, 0)
		if len(units) > 1 {
			for i, name := range units {
				s.add(phase, name, by(i), 0)
			}
		}
	}
	report("first dispatch", first, func(i int) time.Duration { return firstBy[i] })
	report("steady step", median(all), func(i int) time.Duration { return median(by[i]) })
	return nil
}
