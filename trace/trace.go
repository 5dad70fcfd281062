// Package trace turns what an engine did into a timeline: every task, handoff
// and wait, with the reason for each moment in which a unit was idle.
//
// A [Recorder] collects the records of an engine; its Observe is given to the
// engine's configuration. [New] makes a [Timeline] of records, which is written
// as a Chrome trace ([WriteChrome], opens in Perfetto), as a picture
// ([Timeline.SVG]) or as a few lines of text ([Timeline.Summary]).
//
// An engine that nobody observes takes no extra time stamps and keeps nothing,
// so tracing that is off costs nothing.
//
// # Idle time
//
// A unit is busy from the begin of a task to its end, copies included. Between
// tasks it is idle, and the reason is found from the task that ended the gap,
// because a unit is idle only while its queue is empty, whatever rule (see package
// engine) says which of several tasks goes first: going back in time from its begin, it was ready and on its way to the unit (a handoff); before that
// its stream's rows were in a task on another unit, or in the queue there
// (waiting for that chunk of that stream); and so on until its block was asked
// for. Before that the stream's caller chose a token (caller), for which it had
// needed the stream's block before, and so on. Before the stream began, the same
// is asked of the next task on the unit whose stream had begun. If there is none,
// no stream had anything for the unit (no work).
//
// # Promises
//
// A Recorder is safe for concurrent use. A Timeline is not changed after New
// and may be read by several goroutines. Tasks that failed or were dropped are
// not in it, since an engine does not report them.
package trace

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tandemrun/tandem/engine"
)

// A Recorder collects the records of one engine, about 300 bytes a task.
type Recorder struct {
	mu      sync.Mutex
	records []engine.Record
}

// Observe takes a record; see [engine.Config].
func (r *Recorder) Observe(x engine.Record) {
	r.mu.Lock()
	r.records = append(r.records, x)
	r.mu.Unlock()
}

// Records returns a copy of what was collected so far.
func (r *Recorder) Records() []engine.Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.records)
}

// Reset forgets what was collected so far.
func (r *Recorder) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.records = nil
}

// A Layout names what records refer to by number.
type Layout struct {
	Name   string   // of the engine, such as the model's
	Units  []string // see [engine.Engine.Units]
	Chunks []string // c1, c2, ...
}

// LayoutOf is the layout of an engine.
func LayoutOf(name string, e *engine.Engine) Layout {
	l := Layout{Name: name, Units: e.Units()}
	for _, c := range e.Chunks() {
		l.Chunks = append(l.Chunks, c.Name)
	}
	return l
}

// A Timeline is what an engine did, in time since its begin.
type Timeline struct {
	Layout
	Begin    time.Time // when the first block was asked for
	Length   time.Duration
	Tasks    []Task    // by their start
	Handoffs []Handoff // by the task that took the rows
	Gaps     []Gap     // by unit, then start: all time in which a unit ran no task
}

// A Task is one run of a chunk.
type Task struct {
	Chunk, Unit     int
	Start, End      time.Duration
	CopyIn, CopyOut time.Duration // at the task's begin and end: cache rows from and for other units
	Copied, Passed  int64         // bytes copied, and taken from other units without a copy
	Device          time.Duration // how long the unit's device was at work; 0 if none tells
	Rows, Wanted    int           // of all parts
	Parts           []Part        // one a stream
}

// A Part is one stream's share of a task. Streams and blocks count from 0.
type Part struct {
	Stream, Slot, Block int
	Pos, Rows, Wanted   int
	Moved               int           // see [engine.RecordPart]
	Submitted, Ready    time.Duration // the block was asked for; the task could begin
	After               int           // index of the task it waited for last; -1 if for none
	From                []int         // indices of the tasks on other units whose rows it took
}

// A Handoff is rows that went from a task to one on another unit.
type Handoff struct {
	From, To      int // indices of tasks
	Stream, Block int
}

// StreamName is what people call a stream: s1 for stream 0.
func StreamName(stream int) string { return fmt.Sprintf("s%d", stream+1) }

// Streams names the streams of a task: "s1" or "s1+s3".
func (t *Task) Streams() string {
	var names []string
	for _, p := range t.Parts {
		names = append(names, StreamName(p.Stream))
	}
	return strings.Join(names, "+")
}

// Queued is how long the task's first part waited in the unit's queue.
func (t *Task) Queued() time.Duration {
	var most time.Duration
	for _, p := range t.Parts {
		most = max(most, t.Start-p.Ready)
	}
	return most
}

// New makes the timeline of an engine's records, which may be in any order.
func New(l Layout, records []engine.Record) (*Timeline, error) {
	t := &Timeline{Layout: l}
	records = slices.Clone(records)
	slices.SortStableFunc(records, func(a, b engine.Record) int {
		return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(a.Unit, b.Unit))
	})
	index := map[int]int{} // of tasks, by their numbers in the engine
	for i, r := range records {
		if r.Unit < 0 || r.Unit >= len(l.Units) || r.Chunk < 0 || r.Chunk >= len(l.Chunks) {
			return nil, fmt.Errorf("a record of chunk %d on unit %d, but the layout has %d chunks on %d units", r.Chunk, r.Unit, len(l.Chunks), len(l.Units))
		}
		if i == 0 || r.Start.Before(t.Begin) {
			t.Begin = r.Start
		}
		for _, p := range r.Parts {
			if p.Submitted.Before(t.Begin) {
				t.Begin = p.Submitted
			}
			index[p.Task] = i
		}
	}
	for i, r := range records {
		x := Task{
			Chunk: r.Chunk, Unit: r.Unit, Start: r.Start.Sub(t.Begin), End: r.End.Sub(t.Begin),
			CopyIn: r.CopyTime - r.CopyOutTime, CopyOut: r.CopyOutTime, Copied: r.CopiedBytes, Passed: r.PassedBytes, Device: r.Device,
			Rows: r.Rows, Wanted: r.Wanted,
		}
		for _, p := range r.Parts {
			part := Part{
				Stream: p.Stream, Slot: p.Slot, Block: p.Block, Pos: p.Pos, Rows: p.Rows, Wanted: p.Wanted, Moved: p.Moved,
				Submitted: p.Submitted.Sub(t.Begin), Ready: p.Ready.Sub(t.Begin), After: -1,
			}
			if from, ok := index[p.After]; ok {
				part.After = from
			}
			for _, c := range p.From {
				if from, ok := index[c]; ok {
					part.From = append(part.From, from)
					t.Handoffs = append(t.Handoffs, Handoff{from, i, p.Stream, p.Block})
				}
			}
			x.Parts = append(x.Parts, part)
		}
		t.Tasks = append(t.Tasks, x)
		t.Length = max(t.Length, x.End)
	}
	t.findGaps()
	return t, nil
}

// of lists the indices of a unit's tasks, by their start.
func (t *Timeline) of(unit int) []int {
	var out []int
	for i, x := range t.Tasks {
		if x.Unit == unit {
			out = append(out, i)
		}
	}
	return out
}
