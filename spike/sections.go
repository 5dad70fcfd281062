package spike

import (
	"fmt"
	"slices"
	"strings"
)

// A section is a part of the report for people, in whatever form.
type section struct {
	title  string
	text   []string // paragraphs
	table  table
	charts []chart
	lines  []int // indices of timelines to draw
	long   bool  // not for the terminal
}

// A table has a head, and columns of numbers that are aligned to the right.
type table struct {
	head  []string
	right []bool
	rows  [][]string
}

func newTable(head ...string) table {
	t := table{right: make([]bool, len(head))}
	for i, h := range head {
		t.right[i] = strings.HasPrefix(h, ">")
		t.head = append(t.head, strings.TrimPrefix(h, ">"))
	}
	return t
}

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

func f(digits int, x float64) string { return fmt.Sprintf("%.*f", digits, x) }

// rate is tokens a second with three or four digits.
func rate(x float64) string {
	if x >= 1000 {
		return f(0, x)
	}
	return f(1, x)
}

// off is how far a measurement is from its prediction.
func off(predicted, measured float64) string {
	if measured == 0 {
		return "-"
	}
	return change(measured/predicted - 1)
}

func of(kept, all int) string { return fmt.Sprintf("%d of %d", kept, all) }

func (r *Report) title() string {
	if r.Still != "" {
		return fmt.Sprintf("%s: %s", r.Model, Placement(r.Base))
	}
	return fmt.Sprintf("%s: %s, then %s", r.Model, Placement(r.Base), Placement(r.Moved))
}

// sections are the report in order.
func (r *Report) sections() []section {
	out := []section{{title: "Verdict", text: r.Verdict.Lines}, r.chunkSection()}
	if len(r.Overlaps) > 0 {
		out = append(out, r.overlapSection())
	}
	if len(r.Contention)+len(r.Handoffs) > 0 {
		out = append(out, r.betweenSection())
	}
	out = append(out, r.decodeSection())
	if len(r.Timelines) > 0 {
		s := section{title: "Timelines", long: true, text: []string{"A lane a unit, a box a task; the strip below says why the unit was idle. Only the beginning of long runs is drawn; trace.json has all of it."}}
		for i := range r.Timelines {
			s.lines = append(s.lines, i)
		}
		out = append(out, s)
	}
	out = append(out, r.prefillSection())
	if r.Texts != nil {
		out = append(out, r.textSection())
	}
	return append(out, r.methodSection())
}

func (r *Report) chunkSection() section {
	s := section{title: "Chunks on each unit"}
	s.table = newTable("chunk", "unit", ">cold ms", ">warm ms", ">steps kept")
	c := chart{title: "A decode step's task of each chunk, warm", unit: "ms", digits: 2}
	chunks := slices.Clone(r.Chunks)
	slices.SortStableFunc(chunks, func(a, b ChunkTime) int { return strings.Compare(a.Name, b.Name) })
	for _, x := range chunks {
		s.table.row(x.Name, x.Unit, f(3, x.Cold), f(3, x.Warm), of(x.Kept, x.Steps))
		c.bars = append(c.bars, bar{group: x.Name, label: x.Unit, value: x.Warm})
	}
	s.charts = []chart{c}
	s.text = []string{"Cold is the first task since the chunk was loaded; warm is the median of the steps of one stream with everything on that unit."}
	return s
}

func (r *Report) overlapSection() section {
	o := r.Overlaps[0]
	s := section{title: "Overlap probe", text: []string{fmt.Sprintf(
		"%s on %s and %s on %s: each alone, one after the other, and both at once. Overlap = (a + b - parallel) / (a + b - max(a, b)); 1 is full, 0 is none. Times are means; the last overlap is of medians of the trials kept.",
		o.A, o.UnitA, o.B, o.UnitB)}}
	s.table = newTable("prompt", ">"+o.A+" ms", ">"+o.B+" ms", ">in turn", ">at once", ">overlap", ">of medians", ">predicted", "verdict", ">kept")
	for _, x := range r.Overlaps {
		name := x.Category
		if name == control {
			name += " (both on " + x.UnitA + ")"
		}
		s.table.row(name, f(3, x.AMS), f(3, x.BMS), f(3, x.Sequential), f(3, x.Parallel), f(2, x.Factor), f(2, x.Median), f(2, x.Predicted), x.Verdict, of(x.Kept, x.Trials))
	}
	return s
}

func (r *Report) betweenSection() section {
	s := section{title: "Between the units", text: []string{
		"Contention is how many times as long tasks take while the other unit is at work; handoffs are those of a decode step of one stream.",
	}}
	s.table = newTable("unit", "with", "what", ">factor or ms", ">kept")
	for _, c := range r.Contention {
		what := "contention, decode"
		if c.Rows > 1 {
			what = fmt.Sprintf("contention, blocks of %d", c.Rows)
		}
		s.table.row(c.Unit, c.With, what, f(3, c.Factor), of(c.Kept, c.Trials))
	}
	for _, h := range r.Handoffs {
		s.table.row(h.From, h.To, fmt.Sprintf("%d handoffs, copies", h.Calls), f(4, h.MS), "")
		s.table.row(h.From, h.To, "tasks behind them, slower by", f(4, h.Slower), "")
	}
	return s
}

func (r *Report) decodeSection() section {
	s := section{title: fmt.Sprintf("Decoding, %d tokens a stream", r.Tokens), text: []string{
		"Tokens a second of all streams together: aggregate with the begin and the end of the run, steady while all streams decode. Each run was predicted right before it, from what single tasks and the gaps between them took in some steps just then; figures are medians of the runs kept, and the ratio is that of each run's steady rate to its own prediction. From chunks is what was predicted from the chunks alone, before anything ran on the placement by several streams. The first token since loading is apart.",
	}}
	s.table = newTable("placement", ">streams", "rule", ">aggregate", ">predicted", ">steady", ">predicted", ">ratio", ">from chunks", ">overlap", ">predicted", ">cold ms", "tokens", "bits", ">runs kept", ">windows kept")
	c := chart{title: "Decoding, steady: measured (bar) and predicted (line), all streams together", unit: "tok/s", digits: 1, marked: true}
	for i := range r.Results {
		x := &r.Results[i]
		s.table.row(x.Placement, fmt.Sprint(x.Streams), x.Rule(), rate(x.Measured.Aggregate), rate(x.Predicted.Aggregate), rate(x.Measured.Steady), rate(x.Predicted.Steady), f(2, x.Ratio), rate(x.FromChunks.Steady),
			f(2, x.Overlap), f(2, x.PredictedOverlap), f(1, x.Cold), equal(x.TokensEqual), equal(x.LogitsEqual), of(x.Kept, x.Trials), of(x.WindowsKept, x.Windows))
		label := streams(x.Streams)
		if x.Streams > 1 {
			label += ", " + x.Rule()
		}
		c.bars = append(c.bars, bar{group: x.Placement, label: label, value: x.Measured.Steady, mark: x.Predicted.Steady})
	}
	s.charts = []chart{c}
	return s
}

func equal(x bool) string {
	if x {
		return "equal"
	}
	return "differ"
}

func (r *Report) prefillSection() section {
	p := &r.Prefill
	s := section{title: fmt.Sprintf("A prompt of %d tokens", p.Tokens)}
	if p.Why != "" {
		s.text = append(s.text, "Not pipelined: "+p.Why+".")
	}
	s.table = newTable("how", "placement", ">block", ">predicted ms", ">measured ms", ">off", ">tok/s", ">overlap", "bits", ">kept")
	c := chart{title: "Prompt: measured (bar) and predicted (line)", unit: "tok/s", digits: 0, marked: true}
	for _, x := range p.Results {
		s.table.row(x.Role, x.Placement, fmt.Sprint(x.Block), f(2, x.PredictedMS), f(2, x.MeasuredMS), off(x.PredictedMS, x.MeasuredMS), rate(x.Measured), f(2, x.Overlap), equal(x.LogitsEqual), of(x.Kept, x.Trials))
		c.bars = append(c.bars, bar{group: x.Placement, label: fmt.Sprintf("%s, blocks of %d", x.Role, x.Block), value: x.Measured, mark: x.Predicted})
	}
	s.charts = []chart{c}
	return s
}

func (r *Report) textSection() section {
	s := section{title: "Tokens of " + r.Texts.Model, long: true, text: []string{
		"The same schedules on a model that has something to say, once for each kind of prompt; every stream is compared with a single one on the base placement.",
	}}
	s.table = newTable("placement", ">streams", "rule", "tokens", "bits", "first divergence", ">runs")
	for _, x := range r.Texts.Results {
		d := ""
		if x.Divergence != nil {
			d = x.Divergence.String()
		}
		s.table.row(x.Placement, fmt.Sprint(x.Streams), (&Result{Streams: x.Streams, Merge: x.Merge}).Rule(), equal(x.TokensEqual), equal(x.LogitsEqual), d, fmt.Sprint(x.Runs))
	}
	for _, a := range r.Texts.Answers {
		s.text = append(s.text, fmt.Sprintf("%s (%s): %q", a.Category, a.Prompt, a.Text))
	}
	return s
}

func (r *Report) methodSection() section {
	s := section{title: "How it was measured", long: true}
	where := "on this machine"
	if r.Simulated {
		where = "on a device profile: times are simulated and exact, tokens are made up"
	}
	if r.Machine != "" {
		where += " (" + r.Machine + ")"
	}
	s.text = []string{
		fmt.Sprintf("%s, %s, in %.0f s.", r.Began.UTC().Format("2006-01-02 15:04 MST"), where, r.Took.Seconds()),
		"Schedules were measured in turn. A trial is kept if workers waited for their CPU, added up, for no more than 3 % of its time, and, of runs of 250 ms and more, if other processes had no more than 5 % of the CPUs; where none was kept, all count, of decoding the less disturbed half. Figures are medians. raw.jsonl has every prediction and every measurement in the order in which they were made.",
	}
	if r.Version != "" {
		s.text = append(s.text, r.Version+".")
	}
	return s
}
