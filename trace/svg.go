package trace

import (
	"bufio"
	"fmt"
	"html"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// SVGOptions say what a picture shows. The zero value shows everything.
type SVGOptions struct {
	Title    string        // default: the timeline's name
	From, To time.Duration // the part to show; To 0 is the end
	Rows     int           // rows of lanes that the time is broken into; 0 is as many as tasks need, up to 12
}

// Sizes of the picture, in pixels.
const (
	svgWidth    = 1080
	svgLeft     = 92 // names of units
	svgRight    = 16
	svgTop      = 62 // title
	laneHeight  = 30
	causeHeight = 6 // of the strip that says why a unit is idle
	laneGap     = 8
	axisHeight  = 26
	rowGap      = 12
	rowTasks    = 28 // tasks of a unit that fit into a row and can be told apart
	rowsMost    = 12
	fine        = 0.5 // what is narrower is not drawn by itself
)

// chunkFills are the colours of chunks, in turn; text on them is dark.
var chunkFills = [...]string{"#7fb8e6", "#ffc65c", "#86cf97", "#f2979c", "#bda5e6", "#d3b98c", "#7fd0cc", "#c9ccd1"}

// hatches are the patterns of streams, in turn; the first stream has none.
var hatches = [...]string{
	"",
	"M0 6L6 0M-1 1L1 -1M5 7L7 5",
	"M0 0L6 6M5 -1L7 1M-1 5L1 7",
	"M1.5 2.2h1.4M4.5 5.2h1.4",
	"M0 3H6",
	"M0 0L6 6M0 6L6 0",
	"M3 0V6",
}

// SVG draws the timeline as a picture that needs no other file: a lane for each
// unit, a box for each task, coloured by chunk and hatched by stream; under it a
// strip that says why the unit was idle; handoffs between units as lines. It can
// be printed, and follows a dark colour scheme.
func (t *Timeline) SVG(w io.Writer, o SVGOptions) error {
	if o.To == 0 || o.To > t.Length {
		o.To = t.Length
	}
	if o.From < 0 || o.From > o.To {
		return fmt.Errorf("a picture from %v to %v of a timeline of %v", o.From, o.To, t.Length)
	}
	if o.Title == "" {
		o.Title = t.Name
	}
	d := drawing{t: t, o: o, w: bufio.NewWriter(w)}
	d.layOut()
	d.draw()
	return d.w.Flush()
}

type drawing struct {
	t       *Timeline
	o       SVGOptions
	w       *bufio.Writer
	rows    int
	streams []int // those of the tasks, ascending
	// The part of time of the row being drawn, and where the row is.
	from, to time.Duration
	top      float64
}

func (d *drawing) printf(format string, args ...any) { fmt.Fprintf(d.w, format, args...) }

// layOut finds how many rows the tasks need and how many streams there are.
func (d *drawing) layOut() {
	count := make([]int, len(d.t.Units))
	for _, x := range d.t.Tasks {
		if x.End >= d.o.From && x.Start <= d.o.To {
			count[x.Unit]++
		}
	}
	d.streams = slices.Sorted(maps.Keys(d.t.streams().begin))
	d.rows = d.o.Rows
	if d.rows <= 0 {
		d.rows = 1
		if len(count) > 0 {
			d.rows = min(max(1, (slices.Max(count)+rowTasks-1)/rowTasks), rowsMost)
		}
	}
}

func (d *drawing) rowHeight() float64 {
	return float64(len(d.t.Units)*(laneHeight+causeHeight+laneGap) + axisHeight)
}

func (d *drawing) draw() {
	legend := svgTop + float64(d.rows)*(d.rowHeight()+rowGap)
	items := d.legend()
	lines := 1
	x := float64(svgLeft)
	for _, item := range items { // how high the legend gets
		if x+item.width > svgWidth-svgRight {
			lines, x = lines+1, svgLeft
		}
		x += item.width
	}
	height := legend + float64(lines)*24 + 14
	d.printf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %.0f" width="%d" height="%.0f" role="img" font-family="system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif" font-size="12">`+"\n", svgWidth, height, svgWidth, height)
	d.printf("<title>%s</title>\n<desc>%s</desc>\n", html.EscapeString(d.o.Title), html.EscapeString(d.t.Summary()))
	d.style()
	d.printf(`<rect class="paper" width="%d" height="%.0f" rx="6"/>`+"\n", svgWidth, height)
	d.printf(`<text class="ink" x="16" y="26" font-size="16" font-weight="600">%s</text>`+"\n", html.EscapeString(d.o.Title))
	line := d.t.Line()
	if d.o.From > 0 || d.o.To < d.t.Length {
		line += fmt.Sprintf("; shown: %s to %s", short(d.o.From), short(d.o.To))
	}
	d.printf(`<text class="faint" x="16" y="46">%s</text>`+"\n", html.EscapeString(line))
	for r := range d.rows {
		length := d.o.To - d.o.From
		d.from = d.o.From + length*time.Duration(r)/time.Duration(d.rows)
		d.to = d.o.From + length*time.Duration(r+1)/time.Duration(d.rows)
		d.top = svgTop + float64(r)*(d.rowHeight()+rowGap)
		d.row()
	}
	x, y := float64(svgLeft), legend+6
	for _, item := range items {
		if x+item.width > svgWidth-svgRight {
			x, y = svgLeft, y+24
		}
		d.printf(`<g transform="translate(%.1f %.1f)">%s<text class="ink" x="26" y="11">%s</text></g>`+"\n", x, y, item.mark, html.EscapeString(item.text))
		x += item.width
	}
	d.printf("</svg>\n")
}

// style has the colours of both schemes and the patterns of streams.
func (d *drawing) style() {
	d.printf(`<style>
.paper{fill:#ffffff;stroke:#d0d7de}.lane{fill:#f0f2f5}.ink{fill:#1f2328}.faint{fill:#59636e}.axis{stroke:#afb8c1}
.box{stroke:#33383d;stroke-width:.7}.label{fill:#14171a;text-anchor:middle;font-size:11px}.hatch{stroke:#14171a;stroke-opacity:.38;fill:none}
.way{stroke:#59636e;stroke-width:1;fill:none}.tip{fill:#59636e}.over{fill:#1f2328}.call{fill:#afb8c1}.wait{fill-opacity:.75}
@media (prefers-color-scheme:dark){.paper{fill:#0d1117;stroke:#30363d}.lane{fill:#1c2128}.ink{fill:#e6edf3}.faint{fill:#9198a1}.axis{stroke:#484f58}
.box{stroke:#0d1117}.way{stroke:#9198a1}.tip{fill:#9198a1}.over{fill:#e6edf3}.call{fill:#6e7681}}
</style>
<defs>
`)
	for i, path := range hatches[:min(len(hatches), len(d.streams))] {
		if path != "" {
			d.printf(`<pattern id="h%d" width="6" height="6" patternUnits="userSpaceOnUse"><path class="hatch" d="%s"/></pattern>`+"\n", i, path)
		}
	}
	d.printf("</defs>\n")
}

// x is where a time is in the row.
func (d *drawing) x(at time.Duration) float64 {
	if d.to == d.from {
		return svgLeft
	}
	return svgLeft + (svgWidth-svgLeft-svgRight)*float64(at-d.from)/float64(d.to-d.from)
}

// span cuts a time to the row; false if nothing of it is there.
func (d *drawing) span(start, end time.Duration) (x0, x1 float64, ok bool) {
	if end < d.from || start > d.to || end == d.from && start < end || start == d.to && start < end {
		return 0, 0, false
	}
	return d.x(max(start, d.from)), d.x(min(end, d.to)), true
}

func (d *drawing) laneTop(unit int) float64 {
	return d.top + float64(unit*(laneHeight+causeHeight+laneGap))
}

// row draws the lanes of a part of the time, and its axis.
func (d *drawing) row() {
	for u, unit := range d.t.Units {
		y := d.laneTop(u)
		d.printf(`<rect class="lane" x="%d" y="%.1f" width="%d" height="%d"/>`+"\n", svgLeft, y, svgWidth-svgLeft-svgRight, laneHeight+causeHeight)
		d.printf(`<text class="ink" x="%d" y="%.1f" text-anchor="end" font-weight="600">%s</text>`+"\n", svgLeft-8, y+15, html.EscapeString(unit))
		d.printf(`<text class="faint" x="%d" y="%.1f" text-anchor="end" font-size="10">%.0f %% busy</text>`+"\n", svgLeft-8, y+29, 100*d.busy(u))
	}
	d.axis()
	drawn := slices.Repeat([]float64{-1}, len(d.t.Units)) // how far each lane is drawn
	for _, g := range d.t.Gaps {
		d.cause(g)
	}
	for i := range d.t.Tasks {
		d.task(&d.t.Tasks[i], drawn)
	}
	for _, h := range d.t.Handoffs {
		d.handoff(h)
	}
}

// busy is the unit's share of busy time in the row.
func (d *drawing) busy(unit int) float64 {
	var sum time.Duration
	for _, x := range d.t.Tasks {
		if x.Unit == unit {
			sum += max(0, min(x.End, d.to)-max(x.Start, d.from))
		}
	}
	if d.to == d.from {
		return 0
	}
	return sum.Seconds() / (d.to - d.from).Seconds()
}

func (d *drawing) cause(g Gap) {
	x0, x1, ok := d.span(g.Start, g.End)
	if !ok || g.Cause == NoWork || x1-x0 < fine {
		return
	}
	class, fill := "", ""
	switch g.Cause {
	case Waiting:
		class, fill = "wait", fmt.Sprintf(` fill="%s"`, chunkFill(g.Chunk))
	case HandingOver:
		class = "over"
	case Calling:
		class = "call"
	}
	d.printf(`<rect class="%s"%s x="%.1f" y="%.1f" width="%.2f" height="%d"><title>%s, %s</title></rect>`+"\n",
		class, fill, x0, d.laneTop(g.Unit)+laneHeight, x1-x0, causeHeight, html.EscapeString(d.t.Reason(g)), short(g.End-g.Start))
}

func chunkFill(chunk int) string { return chunkFills[chunk%len(chunkFills)] }

// task draws a task's box, with a stripe for each stream. Of tasks finer than
// half a pixel one is drawn.
func (d *drawing) task(x *Task, drawn []float64) {
	x0, x1, ok := d.span(x.Start, x.End)
	if !ok || x1 < drawn[x.Unit]+fine {
		return
	}
	drawn[x.Unit] = x1
	y, w := d.laneTop(x.Unit), max(x1-x0, fine)
	d.printf(`<g><title>%s of %s%s: %s at %d, %s, queued %s</title>`, d.t.Chunks[x.Chunk], x.Streams(), x.moving(), plural(x.Rows, "row"), x.position(), short(x.End-x.Start), short(x.Queued()))
	class := ` class="box"`
	if w < 3 {
		class = "" // an outline would be all there is to see
	}
	d.printf(`<rect%s fill="%s" x="%.2f" y="%.1f" width="%.2f" height="%d"/>`, class, chunkFill(x.Chunk), x0, y, w, laneHeight)
	n := float64(max(len(x.Parts), 1))
	for i, p := range x.Parts {
		if h := d.hatch(p.Stream); hatches[h] != "" && w >= 2 {
			d.printf(`<rect fill="url(#h%d)" x="%.2f" y="%.1f" width="%.2f" height="%.1f"/>`, h, x0, y+laneHeight*float64(i)/n, w, laneHeight/n)
		}
	}
	chunk, streams := d.t.Chunks[x.Chunk], x.Streams()
	if middle := (x0 + x1) / 2; w >= textWidth(longer(chunk, streams))+4 {
		halo := fmt.Sprintf(`stroke="%s" stroke-width="3" stroke-linejoin="round" paint-order="stroke"`, chunkFill(x.Chunk))
		d.printf(`<text class="label" %s x="%.1f" y="%.1f" font-weight="600">%s</text>`, halo, middle, y+13, html.EscapeString(chunk))
		d.printf(`<text class="label" %s x="%.1f" y="%.1f">%s</text>`, halo, middle, y+25, streams)
	}
	d.printf("</g>\n")
}

func longer(a, b string) string {
	if len(a) > len(b) {
		return a
	}
	return b
}

// textWidth is about the width of a label.
func textWidth(s string) float64 { return 6.6 * float64(len(s)) }

// position is the task's first position.
func (t *Task) position() int {
	if len(t.Parts) == 0 {
		return 0
	}
	return t.Parts[0].Pos
}

// handoff draws a line between two lanes, where there is room for it.
func (d *drawing) handoff(h Handoff) {
	from, to := &d.t.Tasks[h.From], &d.t.Tasks[h.To]
	if to.Start < d.from || from.End > d.to {
		return
	}
	x0, x1 := d.x(from.End), d.x(to.Start)
	if x0 < svgLeft || x1 > svgWidth-svgRight || d.x(to.End)-x1 < 4 {
		return
	}
	y0, y1, tip := d.laneTop(from.Unit)+laneHeight, d.laneTop(to.Unit), -5.0
	if to.Unit < from.Unit {
		y0, y1, tip = d.laneTop(from.Unit), d.laneTop(to.Unit)+laneHeight+causeHeight, 5
	}
	bend := (y0 + y1) / 2
	d.printf(`<path class="way" d="M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f"/><path class="tip" d="M%.1f %.1fl-2.5 %.1fh5z"/>`+"\n",
		x0, y0, x0, bend, x1, bend, x1, y1+tip, x1, y1, tip)
}

// axis draws ticks of a round number of time units.
func (d *drawing) axis() {
	y := d.laneTop(len(d.t.Units)) - laneGap + 4
	d.printf(`<path class="axis" d="M%d %.1fH%d"/>`+"\n", svgLeft, y, svgWidth-svgRight)
	step := tick(d.to-d.from, 10)
	for at := (d.from + step - 1) / step * step; at <= d.to; at += step {
		x := d.x(at)
		d.printf(`<path class="axis" d="M%.1f %.1fv5"/><text class="faint" x="%.1f" y="%.1f" text-anchor="middle" font-size="11">%s</text>`+"\n", x, y, x, y+17, tickLabel(at, step))
	}
}

// tick is the least step of 1, 2 or 5 times a power of ten nanoseconds with at
// most n steps in a time.
func tick(length time.Duration, n int) time.Duration {
	for step := time.Duration(1); step < math.MaxInt64/10; step *= 10 {
		for _, k := range []time.Duration{1, 2, 5} {
			if length/(k*step) <= time.Duration(n) {
				return k * step
			}
		}
	}
	return math.MaxInt64
}

// tickLabel writes a tick's time in the unit that suits the step.
func tickLabel(at, step time.Duration) string {
	unit, name := time.Microsecond, "µs"
	switch {
	case step >= 100*time.Millisecond:
		unit, name = time.Second, "s"
	case step >= 100*time.Microsecond:
		unit, name = time.Millisecond, "ms"
	}
	digits := 0
	for s := step; s < unit && digits < 3; s *= 10 {
		digits++
	}
	return fmt.Sprintf("%.*f %s", digits, float64(at)/float64(unit), name)
}

// A legendItem is a mark of 20 by 14 pixels, and what it means.
type legendItem struct {
	mark, text string
	width      float64
}

func (d *drawing) legend() []legendItem {
	var items []legendItem
	add := func(text, format string, args ...any) {
		items = append(items, legendItem{fmt.Sprintf(format, args...), text, 26 + textWidth(text) + 18})
	}
	for i, name := range d.t.Chunks {
		on := "" // which unit, if always the same
		units := map[int]bool{}
		for _, x := range d.t.Tasks {
			if x.Chunk == i {
				units[x.Unit] = true
			}
		}
		for u := range units {
			if len(units) == 1 {
				on = " on " + d.t.Units[u]
			}
		}
		add("chunk "+name+on, `<rect class="box" fill="%s" width="20" height="14"/>`, chunkFill(i))
	}
	for h := range min(len(d.streams), len(hatches)) {
		var more []string
		for k := h; k < len(d.streams); k += len(hatches) {
			more = append(more, StreamName(d.streams[k]))
		}
		add("stream "+strings.Join(more, ", "), `<rect class="box" fill="#ffffff" width="20" height="14"/><rect fill="%s" width="20" height="14"/>`, hatchFill(h))
	}
	add("idle: waiting for the chunk of that colour", `<rect class="wait" fill="%s" y="4" width="10" height="%d"/><rect class="wait" fill="%s" x="10" y="4" width="10" height="%d"/>`,
		chunkFill(0), causeHeight, chunkFill(1), causeHeight)
	add("idle: handoff", `<rect class="over" y="4" width="20" height="%d"/>`, causeHeight)
	add("idle: the stream's caller", `<rect class="call" y="4" width="20" height="%d"/>`, causeHeight)
	if len(d.t.Handoffs) > 0 {
		add("rows handed to another unit", `<path class="way" d="M0 7H15"/><path class="tip" d="M20 7l-6 -3v6z"/>`)
	}
	return items
}

// hatch is the pattern of a stream.
func (d *drawing) hatch(stream int) int {
	i, _ := slices.BinarySearch(d.streams, stream)
	return i % len(hatches)
}

func hatchFill(hatch int) string {
	if hatches[hatch] == "" {
		return "none"
	}
	return fmt.Sprintf("url(#h%d)", hatch)
}
