package trace

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// A Usage is what a unit did in a timeline. Busy and the idle times by cause
// add up to the timeline's length.
type Usage struct {
	Unit  string
	Tasks int
	Busy  time.Duration
	Copy  time.Duration    // of Busy, copying cache rows from and for other units
	Idle  [4]time.Duration // by Cause
	Waits []Wait           // what Idle[Waiting] was for, the longest first
}

// A Wait is how long a unit waited for a chunk of a stream.
type Wait struct {
	Chunk, Stream int
	On            int // the unit of that chunk
	Time          time.Duration
}

// Usage tells what each unit did.
func (t *Timeline) Usage() []Usage {
	out := make([]Usage, len(t.Units))
	for u, name := range t.Units {
		out[u].Unit = name
	}
	for _, x := range t.Tasks {
		u := &out[x.Unit]
		u.Tasks++
		u.Busy += x.End - x.Start
		u.Copy += x.CopyIn + x.CopyOut
	}
	for _, g := range t.Gaps {
		u := &out[g.Unit]
		u.Idle[g.Cause] += g.End - g.Start
		if g.Cause != Waiting {
			continue
		}
		i := slices.IndexFunc(u.Waits, func(w Wait) bool { return w.Chunk == g.Chunk && w.Stream == g.Stream && w.On == g.On })
		if i < 0 {
			i = len(u.Waits)
			u.Waits = append(u.Waits, Wait{g.Chunk, g.Stream, g.On, 0})
		}
		u.Waits[i].Time += g.End - g.Start
	}
	for _, u := range out {
		slices.SortStableFunc(u.Waits, func(a, b Wait) int { return cmp.Compare(b.Time, a.Time) })
	}
	return out
}

// Overlap is how much of what could overlap did: with the busy times a, b, …
// of the units and the time in which at least one was busy,
//
//	(a + b + … - any) / (a + b + … - max(a, b, …))
//
// which is the overlap factor of the probe, over the whole timeline: 0 when the
// units took turns, 1 when the busiest was never alone at rest. It is 0 for one
// unit. Both is the time in which at least two units were busy.
func (t *Timeline) Overlap() (factor float64, both time.Duration) {
	type edge struct {
		at   time.Duration
		more int
	}
	var edges []edge
	busy := make([]time.Duration, len(t.Units))
	var sum, most, some time.Duration
	for _, x := range t.Tasks {
		edges = append(edges, edge{x.Start, 1}, edge{x.End, -1})
		busy[x.Unit] += x.End - x.Start
		sum += x.End - x.Start
		most = max(most, busy[x.Unit])
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.more, b.more)) })
	n, at := 0, time.Duration(0)
	for _, e := range edges {
		if n >= 1 {
			some += e.at - at
		}
		if n >= 2 {
			both += e.at - at
		}
		n, at = n+e.more, e.at
	}
	if sum == most {
		return 0, both
	}
	return float64(sum-some) / float64(sum-most), both
}

// countStreams is the number of streams that have tasks.
func (t *Timeline) countStreams() int { return len(t.streams().begin) }

// Line is the timeline in one line.
func (t *Timeline) Line() string {
	parts := []string{fmt.Sprintf("%d tasks of %s in %s", len(t.Tasks), plural(t.countStreams(), "stream"), short(t.Length))}
	for _, u := range t.Usage() {
		parts = append(parts, fmt.Sprintf("%s busy %s", u.Unit, t.share(u.Busy)))
	}
	if len(t.Units) > 1 {
		factor, _ := t.Overlap()
		parts = append(parts, fmt.Sprintf("overlap %.2f", factor))
	}
	return strings.Join(parts, ", ")
}

// waitsShown is how many waits of a unit the summary names.
const waitsShown = 3

// Summary is what each unit did as a table, with its longest waits, for a
// person. It ends in a line break.
func (t *Timeline) Summary() string {
	var b strings.Builder
	b.WriteString(t.Line() + "\n")
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "UNIT\tTASKS\tBUSY\tCOPIES\tWAITING\tHANDOFF\tCALLER\tNO WORK\tWAITED LONGEST FOR")
	for _, u := range t.Usage() {
		var waits []string
		for _, x := range u.Waits[:min(len(u.Waits), waitsShown)] {
			waits = append(waits, fmt.Sprintf("%s of %s on %s %s", t.Chunks[x.Chunk], StreamName(x.Stream), t.Units[x.On], t.share(x.Time)))
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", u.Unit, u.Tasks, t.share(u.Busy), t.share(u.Copy),
			t.share(u.Idle[Waiting]), t.share(u.Idle[HandingOver]), t.share(u.Idle[Calling]), t.share(u.Idle[NoWork]), strings.Join(waits, ", "))
	}
	w.Flush()
	return b.String()
}

// share is a part of the timeline's length.
func (t *Timeline) share(d time.Duration) string {
	if t.Length == 0 {
		return "0 %"
	}
	return fmt.Sprintf("%.1f %%", 100*d.Seconds()/t.Length.Seconds())
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// short is a time with three digits and its unit.
func short(d time.Duration) string {
	switch {
	case d >= 100*time.Second:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d >= time.Second:
		return fmt.Sprintf("%.3g s", d.Seconds())
	case d >= time.Millisecond:
		return fmt.Sprintf("%.3g ms", d.Seconds()*1e3)
	}
	return fmt.Sprintf("%.3g µs", d.Seconds()*1e6)
}
