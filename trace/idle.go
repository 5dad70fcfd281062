package trace

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// A Cause is why a unit was idle.
type Cause uint8

const (
	// NoWork: no stream had anything that would have come to the unit.
	NoWork Cause = iota
	// Waiting: the rows that came next were still in a task of another unit, or
	// in that unit's queue.
	Waiting
	// HandingOver: they were on their way: copied at the end of that task, or
	// ready and the unit not yet at work on them.
	HandingOver
	// Calling: the stream that came next had not been asked for its next block:
	// its caller chose a token, or did something else.
	Calling
)

func (c Cause) String() string {
	return [...]string{"no work", "waiting", "handoff", "caller"}[c]
}

// A Gap is time in which a unit was idle for one reason.
type Gap struct {
	Unit       int
	Start, End time.Duration
	Cause      Cause
	// Stream is the one whose rows came next, -1 with NoWork. Chunk and On are
	// the chunk that was waited for, or handed over, and its unit; -1 if there
	// was none.
	Chunk, Stream, On int
}

// streams knows the tasks of each stream, by their end, and when it was first
// asked for anything.
type streams struct {
	tasks map[int][]int
	begin map[int]time.Duration
}

func (t *Timeline) streams() streams {
	s := streams{map[int][]int{}, map[int]time.Duration{}}
	for i, x := range t.Tasks {
		for _, p := range x.Parts {
			if at, ok := s.begin[p.Stream]; !ok || p.Submitted < at {
				s.begin[p.Stream] = p.Submitted
			}
			s.tasks[p.Stream] = append(s.tasks[p.Stream], i)
		}
	}
	for _, tasks := range s.tasks {
		slices.SortFunc(tasks, func(a, b int) int { return cmp.Compare(t.Tasks[a].End, t.Tasks[b].End) })
	}
	return s
}

// before is the task of the stream's earlier blocks that had ended last when a
// part's block was asked for, or -1.
func (t *Timeline) before(s streams, p *Part) int {
	tasks := s.tasks[p.Stream]
	n, _ := slices.BinarySearchFunc(tasks, p.Submitted+1, func(i int, at time.Duration) int { return cmp.Compare(t.Tasks[i].End, at) })
	for _, i := range slices.Backward(tasks[:n]) {
		if t.Tasks[i].part(p.Stream).Block < p.Block {
			return i
		}
	}
	return -1
}

// findGaps finds when each unit was idle, and why.
func (t *Timeline) findGaps() {
	s := t.streams()
	for u := range t.Units {
		tasks := t.of(u)
		// When the first stream of a task or of those after it began: what
		// bounds the search for one that had.
		earliest := make([]time.Duration, len(tasks)+1)
		earliest[len(tasks)] = math.MaxInt64
		for k, i := range slices.Backward(tasks) {
			earliest[k] = earliest[k+1]
			for _, p := range t.Tasks[i].Parts {
				earliest[k] = min(earliest[k], s.begin[p.Stream])
			}
		}
		var at time.Duration
		for k := range len(tasks) + 1 {
			end := t.Length
			if k < len(tasks) {
				end = t.Tasks[tasks[k]].Start
			}
			t.explain(s, u, at, end, tasks[k:], earliest[k:])
			if k < len(tasks) {
				at = max(at, t.Tasks[tasks[k]].End)
			}
		}
	}
}

// explain adds the gaps of a unit that ran nothing from start to end and then
// the given tasks, which it goes through backwards in time.
func (t *Timeline) explain(s streams, unit int, start, end time.Duration, next []int, earliest []time.Duration) {
	first := len(t.Gaps)
	for at := end; at > start; {
		task, part := t.coming(s, at, next, earliest)
		if task < 0 {
			t.gap(Gap{unit, start, at, NoWork, -1, -1, -1})
			break
		}
		at = t.back(s, unit, start, at, &t.Tasks[task].Parts[part])
	}
	slices.Reverse(t.Gaps[first:])
}

// coming finds the first of the tasks to come with a stream that had begun
// before a time, and its part that was ready first; -1 if there is none.
func (t *Timeline) coming(s streams, at time.Duration, next []int, earliest []time.Duration) (task, part int) {
	for k, i := range next {
		if earliest[k] >= at {
			break
		}
		part := -1
		for j, p := range t.Tasks[i].Parts {
			if s.begin[p.Stream] < at && (part < 0 || p.Ready < t.Tasks[i].Parts[part].Ready) {
				part = j
			}
		}
		if part >= 0 {
			return i, part
		}
	}
	return -1, -1
}

// back adds what a part of a task waited for, from at backwards to start, or to
// the begin of its stream, and returns how far it came.
func (t *Timeline) back(s streams, unit int, start, at time.Duration, p *Part) time.Duration {
	stream := p.Stream
	start = max(start, s.begin[stream])
	add := func(from time.Duration, cause Cause, task int) {
		if from = max(from, start); from >= at {
			return
		}
		g := Gap{unit, from, at, cause, -1, stream, -1}
		if task >= 0 {
			g.Chunk, g.On = t.Tasks[task].Chunk, t.Tasks[task].Unit
		}
		t.gap(g)
		at = from
	}
	if p.After >= 0 {
		add(t.Tasks[p.After].End-t.Tasks[p.After].CopyOut, HandingOver, p.After)
	} else {
		add(p.Submitted, HandingOver, -1)
	}
	for at > start {
		last := p.After
		if last < 0 {
			if last = t.before(s, p); last < 0 {
				add(start, Calling, -1) // what came before was not recorded
				break
			}
			add(t.Tasks[last].End, Calling, -1)
		}
		p = t.Tasks[last].part(stream)
		if p.After >= 0 {
			add(p.Ready, Waiting, last)
		} else {
			add(p.Submitted, Waiting, last)
		}
	}
	return start
}

// part is the part of a stream that has one in the task.
func (t *Task) part(stream int) *Part {
	for i := range t.Parts {
		if t.Parts[i].Stream == stream {
			return &t.Parts[i]
		}
	}
	return nil
}

// gap adds a gap in front of the one added last, or makes that one longer.
func (t *Timeline) gap(g Gap) {
	if n := len(t.Gaps); n > 0 {
		last := &t.Gaps[n-1]
		joined := *last
		joined.Start, joined.End = g.Start, g.End
		if joined == g && last.Start == g.End {
			last.Start = g.Start
			return
		}
	}
	t.Gaps = append(t.Gaps, g)
}
