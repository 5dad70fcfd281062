package trace_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tandemrun/tandem/engine"
	"github.com/tandemrun/tandem/trace"
)

var layout = trace.Layout{Name: "test", Units: []string{"a", "b"}, Chunks: []string{"c1", "c2"}}

const ms = time.Millisecond

// after is a time n milliseconds after the begin.
func after(n float64) time.Time {
	return time.Unix(1000, 0).Add(time.Duration(n * float64(ms)))
}

// script is two chunks on two units and two streams. Stream 0 runs two blocks,
// the second 3 ms after the first, which its caller needs for a token. Stream 1
// comes at 20 ms. c2 takes rows from c1; c1 copies 1 ms at its end.
func script() []engine.Record {
	part := func(stream, block int, submitted, ready float64, needed int, from ...int) engine.RecordPart {
		first := 2 * (10*stream + block) // task of chunk 0; that of chunk 1 follows
		for i := range from {
			from[i] += first
		}
		if needed >= 0 {
			needed += first
		}
		return engine.RecordPart{Stream: stream, Slot: stream, Block: block, Pos: block, Rows: 1, Wanted: 1,
			Submitted: after(submitted), Ready: after(ready), Task: first, After: needed, From: from}
	}
	record := func(chunk int, start, end float64, parts ...engine.RecordPart) engine.Record {
		r := engine.Record{Chunk: chunk, Unit: chunk, Streams: len(parts), Rows: len(parts), Wanted: len(parts), Start: after(start), End: after(end), Parts: parts}
		for i := range parts {
			parts[i].Task += chunk
		}
		if chunk == 0 {
			r.CopyTime, r.CopyOutTime, r.CopiedBytes = ms, ms, 100
		} else {
			r.PassedBytes = 200
		}
		return r
	}
	return []engine.Record{
		record(1, 5, 8, part(0, 0, 0, 4.5, 0, 0)),
		record(0, 1, 4, part(0, 0, 0, 0, -1)), // out of order, as units report
		record(0, 11, 14, part(0, 1, 11, 11, -1)),
		record(1, 14, 17, part(0, 1, 11, 14, 0, 0)),
		record(0, 20, 24, part(1, 0, 20, 20, -1)),
		record(1, 24, 26, part(1, 0, 20, 24, 0, 0)),
	}
}

func timeline(t *testing.T, records []engine.Record) *trace.Timeline {
	t.Helper()
	x, err := trace.New(layout, records)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func TestGaps(t *testing.T) {
	x := timeline(t, script())
	const none = -1
	want := []trace.Gap{
		{0, 0, 1 * ms, trace.HandingOver, none, 0, none}, // asked for at 0, begun at 1
		{0, 4 * ms, 4*ms + ms/2, trace.Waiting, 0, 0, 0}, // c2 could begin half a millisecond after c1
		{0, 4*ms + ms/2, 8 * ms, trace.Waiting, 1, 0, 1}, // for the token of block 0
		{0, 8 * ms, 11 * ms, trace.Calling, none, 0, none},
		{0, 14 * ms, 20 * ms, trace.NoWork, none, none, none},
		{0, 24 * ms, 26 * ms, trace.NoWork, none, none, none},
		{1, 0, 3 * ms, trace.Waiting, 0, 0, 0},
		{1, 3 * ms, 5 * ms, trace.HandingOver, 0, 0, 0}, // a copy, and taking the task up
		{1, 8 * ms, 11 * ms, trace.Calling, none, 0, none},
		{1, 11 * ms, 13 * ms, trace.Waiting, 0, 0, 0},
		{1, 13 * ms, 14 * ms, trace.HandingOver, 0, 0, 0},
		{1, 17 * ms, 20 * ms, trace.NoWork, none, none, none},
		{1, 20 * ms, 23 * ms, trace.Waiting, 0, 1, 0},
		{1, 23 * ms, 24 * ms, trace.HandingOver, 0, 1, 0},
	}
	if d := cmp.Diff(want, x.Gaps); d != "" {
		t.Errorf("gaps (-want +got):\n%s", d)
	}
}

// Busy and idle times of a unit add up to the length, and overlap is what the
// definition says.
func TestUsage(t *testing.T) {
	x := timeline(t, script())
	u := x.Usage()
	for _, u := range u {
		sum := u.Busy
		for _, d := range u.Idle {
			sum += d
		}
		if sum != x.Length {
			t.Errorf("%s: busy %v and idle %v are %v of %v", u.Unit, u.Busy, u.Idle, sum, x.Length)
		}
	}
	if u[0].Busy != 10*ms || u[1].Busy != 8*ms || u[0].Copy != 3*ms || u[0].Tasks != 3 {
		t.Errorf("%+v", u)
	}
	if len(u[1].Waits) != 2 || u[1].Waits[0] != (trace.Wait{Chunk: 0, Stream: 0, On: 0, Time: 5 * ms}) {
		t.Errorf("unit b waited for %+v", u[1].Waits)
	}
	if f, both := x.Overlap(); f != 0 || both != 0 {
		t.Errorf("units that took turns: overlap %v, both busy %v", f, both)
	}
	for _, part := range []string{"6 tasks of 2 streams in 26 ms", "a busy 38.5 %", "overlap 0.00", "c1 of s1 on a 19.2 %", "NO WORK"} {
		if s := x.Summary(); !strings.Contains(s, part) {
			t.Errorf("no %q in:\n%s", part, s)
		}
	}

	r := script()[:2]
	r[0].Start, r[0].End = after(2), after(6) // 3 ms and 4 ms; 2 ms at once
	r[0].Parts[0].Ready, r[0].Parts[0].After = after(0), -1
	if f, both := timeline(t, r).Overlap(); f < 0.666 || f > 0.667 || both != 2*ms {
		t.Errorf("overlap %v, both busy %v; want 2/3, 2ms", f, both)
	}
}

// A task of several streams was held up by the one that was ready first.
func TestMergedTask(t *testing.T) {
	r := script()
	r[4].Parts = append(r[4].Parts, r[4].Parts[0])
	r[4].Parts[1].Stream = 2
	r[4].Parts[1].Submitted, r[4].Parts[1].Ready = after(18), after(19)
	x := timeline(t, r)
	var got []trace.Gap
	for _, g := range x.Gaps {
		if g.Unit == 0 && g.Start >= 14*ms && g.End <= 20*ms {
			got = append(got, g)
		}
	}
	want := []trace.Gap{
		{0, 14 * ms, 18 * ms, trace.NoWork, -1, -1, -1},
		{0, 18 * ms, 20 * ms, trace.HandingOver, -1, 2, -1},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("gaps (-want +got):\n%s", d)
	}
	if s := x.Tasks[4].Streams(); s != "s2+s3" {
		t.Errorf("streams %s", s)
	}
}

func TestHandoffs(t *testing.T) {
	x := timeline(t, script())
	var got [][2]int
	for _, h := range x.Handoffs {
		got = append(got, [2]int{h.From, h.To})
	}
	if d := cmp.Diff([][2]int{{0, 1}, {2, 3}, {4, 5}}, got); d != "" {
		t.Error(d)
	}
}

// Records that do not fit the layout are an error.
func TestForeignRecords(t *testing.T) {
	r := script()
	r[3].Unit = 2
	if _, err := trace.New(layout, r); err == nil || !strings.Contains(err.Error(), "unit 2") {
		t.Errorf("%v", err)
	}
}

// Nothing, tasks that take no time, and records whose first tasks are missing
// have a timeline as well.
func TestOddTimelines(t *testing.T) {
	instant := script()
	for i := range instant {
		r := &instant[i]
		r.Start, r.End, r.CopyTime, r.CopyOutTime = after(0), after(0), 0, 0
		for k := range r.Parts {
			r.Parts[k].Submitted, r.Parts[k].Ready = after(0), after(0)
		}
	}
	for name, records := range map[string][]engine.Record{"none": nil, "instant": instant, "late": script()[3:], "one": script()[:1]} {
		t.Run(name, func(t *testing.T) {
			x := timeline(t, records)
			for _, u := range x.Usage() {
				sum := u.Busy
				for _, d := range u.Idle {
					sum += d
				}
				if sum != x.Length {
					t.Errorf("%s: %v of %v", u.Unit, sum, x.Length)
				}
			}
			_ = x.Summary()
			checkChrome(t, x)
			drawn(t, x, trace.SVGOptions{})
		})
	}
}
