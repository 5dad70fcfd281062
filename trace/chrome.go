package trace

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"
)

// event is an event of the Chrome trace event format, by Google's document
// "Trace Event Format". Times are in microseconds.
type event struct {
	Name string         `json:"name"`
	Cat  string         `json:"cat,omitempty"`
	Ph   string         `json:"ph"`
	TS   *micros        `json:"ts,omitempty"`
	Dur  *micros        `json:"dur,omitempty"`
	PID  int            `json:"pid"`
	TID  int            `json:"tid"`
	ID   string         `json:"id,omitempty"`
	BP   string         `json:"bp,omitempty"`
	Args map[string]any `json:"args,omitempty"`

	rank int // order among events of one time
}

// micros is a time in microseconds, to the nanosecond.
type micros time.Duration

func (m micros) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(m)/1e3, 'f', 3, 64), nil
}

func at(d time.Duration) *micros { m := micros(d); return &m }

// Threads of a process: one for a unit's tasks and one for its idle time.
func taskThread(unit int) int { return 2*unit + 1 }
func idleThread(unit int) int { return 2*unit + 2 }

// WriteChrome writes timelines in the JSON object form of the Chrome trace
// event format, which Perfetto and chrome://tracing open. Each timeline is a
// process. Each unit has two threads: its tasks (X), with the copies nested in
// them, and its idle time (X) named by cause. Handoffs between units are flow
// arrows (s, f), the blocks of streams are asynchronous spans (b, e), and the
// length of each unit's queue is a counter (C). Events are sorted by time.
func WriteChrome(w io.Writer, timelines ...*Timeline) error {
	var meta, events []event
	var begin time.Time
	for i, t := range timelines {
		if i == 0 || t.Begin.Before(begin) {
			begin = t.Begin
		}
	}
	flow := 0
	for i, t := range timelines {
		c := chrome{t: t, pid: i + 1, offset: t.Begin.Sub(begin), flow: &flow}
		c.names()
		c.tasks()
		c.idle()
		c.blocks()
		c.queues()
		meta, events = append(meta, c.meta...), append(events, c.events...)
	}
	slices.SortStableFunc(events, func(a, b event) int {
		return cmp.Or(cmp.Compare(*a.TS, *b.TS), cmp.Compare(a.rank, b.rank))
	})
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "{\"displayTimeUnit\": \"ms\", \"otherData\": {\"begin\": %q},\n\"traceEvents\": [", begin.UTC().Format(time.RFC3339Nano))
	for i, e := range append(meta, events...) {
		line, err := json.Marshal(e)
		if err != nil {
			return err
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
		b.Write(line)
	}
	b.WriteString("\n]}\n")
	return b.Flush()
}

// chrome makes the events of one timeline.
type chrome struct {
	t      *Timeline
	pid    int
	offset time.Duration
	flow   *int
	meta   []event
	events []event
}

func (c *chrome) names() {
	name := func(kind string, tid int, args map[string]any) {
		c.meta = append(c.meta, event{Name: kind, Ph: "M", PID: c.pid, TID: tid, Args: args})
	}
	name("process_name", 0, map[string]any{"name": "tandem " + c.t.Name})
	for u, unit := range c.t.Units {
		name("thread_name", taskThread(u), map[string]any{"name": unit})
		name("thread_sort_index", taskThread(u), map[string]any{"sort_index": taskThread(u)})
		name("thread_name", idleThread(u), map[string]any{"name": unit + " idle"})
		name("thread_sort_index", idleThread(u), map[string]any{"sort_index": idleThread(u)})
	}
}

// add adds an event at a time of the timeline.
func (c *chrome) add(when time.Duration, e event) {
	e.PID, e.TS = c.pid, at(c.offset+when)
	c.events = append(c.events, e)
}

// Order of events of one time: a span that encloses another begins first; an
// arrow ends in a span that has begun.
const (
	rankTask = iota
	rankCopy
	rankFlow
)

func (c *chrome) tasks() {
	for i := range c.t.Tasks {
		x := &c.t.Tasks[i]
		tid := taskThread(x.Unit)
		parts := make([]map[string]any, len(x.Parts))
		for j, p := range x.Parts {
			parts[j] = map[string]any{
				"stream": StreamName(p.Stream), "slot": p.Slot, "block": p.Block, "position": p.Pos, "rows": p.Rows, "wanted": p.Wanted, "moved": p.Moved,
				"queued_us": micros(x.Start - p.Ready), "waited_for": c.t.waitedFor(p),
			}
		}
		args := map[string]any{
			"chunk": c.t.Chunks[x.Chunk], "rows": x.Rows, "wanted": x.Wanted, "parts": parts,
			"copied_bytes": x.Copied, "passed_bytes": x.Passed,
		}
		if x.Device > 0 {
			args["device_us"] = micros(x.Device)
		}
		c.add(x.Start, event{
			Name: c.t.Chunks[x.Chunk] + " " + x.Streams() + x.moving(), Cat: "task", Ph: "X", TID: tid, Dur: at(x.End - x.Start), Args: args,
		})
		if x.CopyIn > 0 {
			c.add(x.Start, event{Name: "copy in", Cat: "copy", Ph: "X", TID: tid, Dur: at(x.CopyIn), rank: rankCopy})
		}
		if x.CopyOut > 0 {
			c.add(x.End-x.CopyOut, event{Name: "copy out", Cat: "copy", Ph: "X", TID: tid, Dur: at(x.CopyOut), rank: rankCopy})
		}
	}
	for _, h := range c.t.Handoffs {
		*c.flow++
		id := strconv.Itoa(*c.flow)
		from, to := &c.t.Tasks[h.From], &c.t.Tasks[h.To]
		// An arrow belongs to the span that is open at its time.
		leave := max(from.Start, from.End-time.Nanosecond)
		c.add(leave, event{Name: "handoff", Cat: "handoff", Ph: "s", TID: taskThread(from.Unit), ID: id, rank: rankFlow,
			Args: map[string]any{"stream": StreamName(h.Stream), "block": h.Block}})
		c.add(to.Start, event{Name: "handoff", Cat: "handoff", Ph: "f", BP: "e", TID: taskThread(to.Unit), ID: id, rank: rankFlow})
	}
}

// moving follows the name of a task that moves cache rows and computes nothing.
func (t *Task) moving() string {
	if len(t.Parts) > 0 && t.Parts[0].Moved > 0 {
		return " cache rows"
	}
	return ""
}

// waitedFor names what a part waited for last.
func (t *Timeline) waitedFor(p Part) string {
	if p.After < 0 {
		return "the caller"
	}
	from := &t.Tasks[p.After]
	return fmt.Sprintf("%s on %s, block %d", t.Chunks[from.Chunk], t.Units[from.Unit], from.part(p.Stream).Block)
}

// Reason says in words why the unit of a gap was idle.
func (t *Timeline) Reason(g Gap) string {
	switch {
	case g.Cause == NoWork:
		return "no work"
	case g.Cause == Calling:
		return "caller of " + StreamName(g.Stream)
	case g.Cause == HandingOver && g.Chunk < 0:
		return "handoff of " + StreamName(g.Stream) + " from its caller"
	case g.Cause == HandingOver:
		return fmt.Sprintf("handoff of %s from %s", StreamName(g.Stream), t.Chunks[g.Chunk])
	}
	return fmt.Sprintf("waiting for %s of %s on %s", t.Chunks[g.Chunk], StreamName(g.Stream), t.Units[g.On])
}

func (c *chrome) idle() {
	for _, g := range c.t.Gaps {
		c.add(g.Start, event{
			Name: c.t.Reason(g), Cat: "idle", Ph: "X", TID: idleThread(g.Unit), Dur: at(g.End - g.Start),
			Args: map[string]any{"cause": g.Cause.String()},
		})
	}
}

// blocks makes a span of each block, from when it was asked for to the end of
// its last task.
func (c *chrome) blocks() {
	type id struct{ stream, block int }
	ends := map[id]time.Duration{}
	var order []Part
	for _, x := range c.t.Tasks {
		for _, p := range x.Parts {
			k := id{p.Stream, p.Block}
			if _, seen := ends[k]; !seen {
				order = append(order, p)
			}
			ends[k] = max(ends[k], x.End)
		}
	}
	for _, p := range order {
		name := StreamName(p.Stream)
		e := event{Name: name, Cat: "block", Ph: "b", ID: fmt.Sprintf("%d.%s.%d", c.pid, name, p.Block), TID: 0,
			Args: map[string]any{"block": p.Block, "position": p.Pos, "rows": p.Rows}}
		c.add(p.Submitted, e)
		e.Ph, e.Args = "e", nil
		c.add(ends[id{p.Stream, p.Block}], e)
	}
}

// queues counts the tasks that are ready in each unit's queue.
func (c *chrome) queues() {
	type change struct {
		at time.Duration
		by int
	}
	for u, unit := range c.t.Units {
		var changes []change
		for _, i := range c.t.of(u) {
			x := &c.t.Tasks[i]
			for _, p := range x.Parts {
				changes = append(changes, change{p.Ready, 1}, change{x.Start, -1})
			}
		}
		// What comes and goes at one time was there: more before fewer.
		slices.SortStableFunc(changes, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(b.by, a.by)) })
		n := 0
		for _, x := range changes {
			n += x.by
			c.add(x.at, event{Name: "queue " + unit, Cat: "queue", Ph: "C", Args: map[string]any{"tasks": n}})
		}
	}
}
