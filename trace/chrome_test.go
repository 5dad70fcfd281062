package trace_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/tandemrun/tandem/trace"
)

// chromeEvent is an event as a reader of the format takes it. Fields that an
// event must have are pointers, so that a missing one is told from a 0.
type chromeEvent struct {
	Name *string
	Cat  *string
	Ph   *string
	TS   *float64
	Dur  *float64
	PID  *int
	TID  *int
	ID   *string
	BP   *string
	Args map[string]any
}

// checkChrome writes timelines and checks them against the documented schema:
// the fields each phase must have, times that do not run backwards, spans of a
// thread that nest, arrows and asynchronous spans that begin and end once and
// arrows that begin and end in a span.
func checkChrome(t *testing.T, timelines ...*trace.Timeline) []chromeEvent {
	t.Helper()
	var b bytes.Buffer
	if err := trace.WriteChrome(&b, timelines...); err != nil {
		t.Fatal(err)
	}
	var file struct {
		TraceEvents     []chromeEvent  `json:"traceEvents"`
		DisplayTimeUnit string         `json:"displayTimeUnit"`
		OtherData       map[string]any `json:"otherData"`
	}
	d := json.NewDecoder(&b)
	d.DisallowUnknownFields()
	if err := d.Decode(&file); err != nil {
		t.Fatal(err)
	}
	if file.DisplayTimeUnit != "ms" && file.DisplayTimeUnit != "ns" {
		t.Errorf("displayTimeUnit %q", file.DisplayTimeUnit)
	}

	type thread struct{ pid, tid int }
	type span struct{ from, to float64 }
	named := map[thread]bool{}
	spans := map[thread][]span{}
	last := math.Inf(-1)
	for i, e := range file.TraceEvents {
		where := fmt.Sprintf("event %d", i)
		if e.Name == nil || e.Ph == nil || e.PID == nil || e.TID == nil {
			t.Fatalf("%s lacks name, ph, pid or tid", where)
		}
		where = fmt.Sprintf("event %d (%s %s)", i, *e.Ph, *e.Name)
		if *e.Ph == "M" {
			if e.TS != nil || len(e.Args) != 1 {
				t.Errorf("%s: metadata with a time, or with arguments %v", where, e.Args)
			}
			switch *e.Name {
			case "process_name", "thread_name":
				if name, _ := e.Args["name"].(string); name == "" {
					t.Errorf("%s: no name in %v", where, e.Args)
				}
				named[thread{*e.PID, *e.TID}] = true
			case "thread_sort_index":
				if _, ok := e.Args["sort_index"].(float64); !ok {
					t.Errorf("%s: no number in %v", where, e.Args)
				}
			default:
				t.Errorf("%s is no metadata of the format", where)
			}
			continue
		}
		if e.TS == nil || *e.TS < 0 {
			t.Fatalf("%s has no time, or a negative one", where)
		}
		if e.Cat == nil || *e.Cat == "" {
			t.Errorf("%s has no category", where)
		}
		if *e.TS < last {
			t.Errorf("%s is at %v, after one at %v", where, *e.TS, last)
		}
		last = *e.TS
		if !named[thread{*e.PID, *e.TID}] {
			t.Errorf("%s is on thread %d/%d, which has no name", where, *e.PID, *e.TID)
		}
		if (e.Dur != nil) != (*e.Ph == "X") || (e.BP != nil) != (*e.Ph == "f") {
			t.Errorf("%s: dur belongs to X and bp to f", where)
		}
		switch *e.Ph {
		case "X":
			if e.Dur == nil || *e.Dur < 0 {
				t.Errorf("%s: no duration, or a negative one", where)
				continue
			}
			k := thread{*e.PID, *e.TID}
			spans[k] = append(spans[k], span{*e.TS, *e.TS + *e.Dur})
		case "s", "f", "b", "e":
			if e.ID == nil || *e.ID == "" {
				t.Errorf("%s has no id", where)
			}
			if e.BP != nil && *e.BP != "e" {
				t.Errorf("%s: bp %q", where, *e.BP)
			}
		case "C":
			if len(e.Args) == 0 {
				t.Errorf("%s counts nothing", where)
			}
			for name, v := range e.Args {
				if n, ok := v.(float64); !ok || n < 0 {
					t.Errorf("%s: %s is %v", where, name, v)
				}
			}
		default:
			t.Errorf("%s: a phase that is not used here", where)
		}
	}
	const eps = 1e-6
	for k, list := range spans {
		var open []span
		for _, s := range list {
			for len(open) > 0 && open[len(open)-1].to <= s.from+eps {
				open = open[:len(open)-1]
			}
			if len(open) > 0 && s.to > open[len(open)-1].to+eps {
				t.Errorf("thread %v: a span from %v to %v crosses the end of one at %v", k, s.from, s.to, open[len(open)-1].to)
			}
			open = append(open, s)
		}
	}
	type pair struct{ name, cat, id string }
	for _, phases := range [][2]string{{"s", "f"}, {"b", "e"}} {
		begun := map[pair]chromeEvent{}
		for _, e := range file.TraceEvents {
			if e.ID == nil || *e.Ph != phases[0] && *e.Ph != phases[1] {
				continue
			}
			k := pair{*e.Name, *e.Cat, *e.ID}
			from, ok := begun[k]
			if *e.Ph == phases[0] {
				if ok {
					t.Errorf("%v begins twice", k)
				}
				begun[k] = e
			} else if !ok || *from.TS > *e.TS {
				t.Errorf("%v ends, but has not begun", k)
			} else {
				delete(begun, k)
			}
			if phases[0] == "s" {
				in := slices.ContainsFunc(spans[thread{*e.PID, *e.TID}], func(s span) bool { return s.from <= *e.TS+eps && *e.TS <= s.to+eps })
				if !in {
					t.Errorf("the arrow %v is at %v, where thread %d has no span", k, *e.TS, *e.TID)
				}
			}
		}
		if len(begun) > 0 {
			t.Errorf("%d of %s do not end", len(begun), phases[0])
		}
	}
	return file.TraceEvents
}

func count(events []chromeEvent, ph, cat string) int {
	n := 0
	for _, e := range events {
		if *e.Ph == ph && (cat == "" || *e.Cat == cat) {
			n++
		}
	}
	return n
}

// Every task, handoff and wait is an event.
func TestChrome(t *testing.T) {
	x := timeline(t, script())
	events := checkChrome(t, x)
	for _, want := range []struct {
		ph, cat string
		n       int
	}{{"X", "task", 6}, {"X", "copy", 3}, {"X", "idle", len(x.Gaps)}, {"s", "handoff", 3}, {"f", "handoff", 3}, {"b", "block", 3}, {"C", "queue", 12}} {
		if n := count(events, want.ph, want.cat); n != want.n {
			t.Errorf("%d events %s of %s, want %d", n, want.ph, want.cat, want.n)
		}
	}
	for _, e := range events {
		if *e.Ph == "X" && *e.Name == "c2 s1" && *e.TS == 5000 {
			if *e.Dur != 3000 || *e.TID != 3 || e.Args["passed_bytes"] != 200.0 {
				t.Errorf("c2 of s1: %+v for %v on %d", e.Args, *e.Dur, *e.TID)
			}
			return
		}
	}
	t.Error("no c2 of s1 at 5 ms")
}

// Two engines are two processes on one time.
func TestChromeProcesses(t *testing.T) {
	late := script()
	for i := range late {
		late[i].Start, late[i].End = late[i].Start.Add(5*ms), late[i].End.Add(5*ms)
		for k := range late[i].Parts {
			p := &late[i].Parts[k]
			p.Submitted, p.Ready = p.Submitted.Add(5*ms), p.Ready.Add(5*ms)
		}
	}
	events := checkChrome(t, timeline(t, late), timeline(t, script()))
	first := map[int]float64{}
	for _, e := range events {
		if *e.Ph == "X" && *e.Cat == "task" {
			if _, ok := first[*e.PID]; !ok {
				first[*e.PID] = *e.TS
			}
		}
	}
	if first[1] != 6000 || first[2] != 1000 || len(first) != 2 {
		t.Errorf("first tasks of the processes at %v", first)
	}
}

// A real run, with prompts in blocks, is valid too, and its handoffs go from
// one unit to the other.
func TestRealRun(t *testing.T) {
	x := twoStreams(t, 1, 4)[0]
	events := checkChrome(t, x)
	if count(events, "X", "task") < 20 || count(events, "s", "") == 0 || count(events, "s", "") != len(x.Handoffs) {
		t.Errorf("%d tasks, %d arrows for %d handoffs", count(events, "X", "task"), count(events, "s", ""), len(x.Handoffs))
	}
	for _, h := range x.Handoffs {
		from, to := x.Tasks[h.From], x.Tasks[h.To]
		if from.Unit == to.Unit || from.End > to.Start {
			t.Errorf("a handoff from unit %d at %v to unit %d at %v", from.Unit, from.End, to.Unit, to.Start)
		}
	}
	for u, usage := range x.Usage() {
		sum := usage.Busy
		for _, d := range usage.Idle {
			sum += d
		}
		if sum != x.Length {
			t.Errorf("%s: %v of %v", x.Units[u], sum, x.Length)
		}
		if usage.Idle[trace.Waiting] == 0 {
			t.Errorf("%s never waited for the other", usage.Unit)
		}
	}
}
