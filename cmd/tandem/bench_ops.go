package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/tandemrun/tandem"
)

// opRow is what one kind of operation took in a test. Figures that are not
// known are 0.
type opRow struct {
	tandem.OpTime
	steps int
	step  float64 // share of the time of a step
	own   float64 // share of its own ceiling
}

// opRows are the operations of a result, the longest first, and as the last
// what is left of the time: what happens between the tasks of the units.
func opRows(r tandem.BenchmarkResult) []opRow {
	steps := len(r.Samples) * max(r.Decoded, 1)
	total := r.Total()
	var out []opRow
	rest := total
	for _, x := range r.Ops {
		rest -= x.Time
		row := opRow{OpTime: x, steps: steps, own: ownShare(x, r)}
		out = append(out, row)
	}
	slices.SortStableFunc(out, func(a, b opRow) int { return cmp.Compare(b.Time, a.Time) })
	out = append(out, opRow{OpTime: tandem.OpTime{Name: "other", Time: max(rest, 0)}, steps: steps})
	for i := range out {
		if total > 0 {
			out[i].step = out[i].Time.Seconds() / total.Seconds()
		}
	}
	return out
}

// ownShare is the part of its own ceiling that an operation reached: a product
// must read its weights and do its operations, whichever takes longer at the
// ceilings; attention in decoding must read the cache. In the prefill of a
// prompt attention finds in the processor's caches what it reads, and the
// ceiling of its floating point arithmetic is not measured.
func ownShare(x tandem.OpTime, r tandem.BenchmarkResult) float64 {
	took := x.Time.Seconds()
	if took <= 0 || r.Read <= 0 || r.Multiply <= 0 {
		return 0
	}
	read, multiply := float64(x.Bytes)/r.Read, float64(x.Ops)/r.Multiply
	switch {
	case x.Name == "matmul":
		return max(read, multiply) / took
	case r.Prompt == 0:
		return read / took
	}
	return 0
}

func (x opRow) perStep() time.Duration { return x.Time / time.Duration(max(x.steps, 1)) }

func (x opRow) rate(n int64) float64 {
	if x.Time <= 0 {
		return 0
	}
	return float64(n) / x.Time.Seconds() / 1e9
}

// printOps prints a result's operations as a table.
func printOps(c *console, r tandem.BenchmarkResult) error {
	took, _ := r.Duration()
	mean, _ := r.Rate()
	_, err := fmt.Fprintf(c.out, "\n%s: %s, %s of %v each (%.2f t/s while timed), ceilings %.1f GB/s and %.1f GOPS\n\n",
		r.Setup.Model, r.Test, steps(r), (took / time.Duration(max(r.Decoded, 1))).Round(time.Microsecond), mean, r.Read/1e9, r.Multiply/1e9)
	if err != nil {
		return err
	}
	table := &markdown{w: c.out, columns: []column{
		{"operation", 12, false}, {"rows", 6, false}, {"calls/step", 0, true}, {"µs/step", 10, true}, {"of step", 7, true},
		{"MB/step", 9, true}, {"GB/s", 7, true}, {"GOPS", 7, true}, {"of ceiling", 0, true}}}
	unless := func(zero bool, format string, v ...any) string {
		if zero {
			return ""
		}
		return fmt.Sprintf(format, v...)
	}
	for _, x := range opRows(r) {
		err := table.row(x.Name, x.Rows, unless(x.Calls == 0, "%.1f", float64(x.Calls)/float64(x.steps)),
			fmt.Sprintf("%.1f", float64(x.perStep().Nanoseconds())/1e3), percent(x.step),
			unless(x.Bytes == 0, "%.2f", float64(x.Bytes)/float64(x.steps)/1e6), unless(x.Bytes == 0, "%.1f", x.rate(x.Bytes)),
			unless(x.Ops == 0, "%.1f", x.rate(x.Ops)), unless(x.own == 0, "%s", percent(x.own)))
		if err != nil {
			return err
		}
	}
	return nil
}

func steps(r tandem.BenchmarkResult) string {
	if r.Prompt > 0 {
		return fmt.Sprintf("%d prompts", len(r.Samples))
	}
	return fmt.Sprintf("%d steps", len(r.Samples)*r.Decoded)
}

// known is v, or null where it is not known.
func known(ok bool, v any) any {
	if !ok {
		return nil
	}
	return v
}

// record is the row for machines. What is not known is null.
func (x opRow) record(r tandem.BenchmarkResult) record {
	return record{
		{"model_filename", r.Setup.File}, {"model_type", r.Setup.Model}, {"n_threads", r.Setup.Threads},
		{"n_prompt", r.Prompt}, {"n_gen", r.Decoded}, {"n_depth", r.Depth}, {"n_streams", r.Streams},
		{"read_gbs", r.Read / 1e9}, {"int8_gops", r.Multiply / 1e9},
		{"operation", x.Name}, {"rows", x.Rows}, {"steps", x.steps}, {"calls", x.Calls}, {"ns", x.Time.Nanoseconds()},
		{"bytes", known(x.Bytes > 0, x.Bytes)}, {"ops", known(x.Ops > 0, x.Ops)},
		{"gbs", known(x.Bytes > 0, x.rate(x.Bytes))}, {"gops", known(x.Ops > 0, x.rate(x.Ops))},
		{"share_of_ceiling", known(x.own > 0, x.own)}, {"share_of_step", x.step},
	}
}
