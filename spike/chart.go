package spike

import (
	"bufio"
	"fmt"
	"html"
	"io"
	"math"
	"slices"
)

// A chart is horizontal bars in groups, from 0. A bar may have a mark: what was
// predicted.
type chart struct {
	title  string
	unit   string
	digits int
	marked bool
	bars   []bar
}

type bar struct {
	group, label string
	value, mark  float64
}

// Sizes of a chart, in pixels.
const (
	chartWidth = 1080
	chartLeft  = 190 // labels
	chartRight = 190 // values
	chartTop   = 46
	barHeight  = 18
	barGap     = 5
	groupGap   = 26 // with the group's name
)

// fills are the colours of bars, by their label; the text is beside them.
var fills = [...]string{"#4f9bd6", "#e0a53a", "#4fae68", "#d9696f", "#9878d0", "#b08f5e", "#45ada8", "#8d949c"}

// write draws the chart as a picture that needs no other file and follows a dark
// colour scheme.
func (c *chart) write(w io.Writer) error {
	b := bufio.NewWriter(w)
	groups := 0
	for i, x := range c.bars {
		if i == 0 || x.group != c.bars[i-1].group {
			groups++
		}
	}
	height := chartTop + groups*groupGap + len(c.bars)*(barHeight+barGap) + 34
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" font-family="system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif" font-size="12">`+"\n", chartWidth, height, chartWidth, height)
	fmt.Fprintf(b, "<title>%s</title>\n", html.EscapeString(c.title))
	b.WriteString(`<style>.c-paper{fill:#ffffff;stroke:#d0d7de}.c-ink{fill:#1f2328}.c-faint{fill:#59636e}.c-axis{stroke:#d0d7de}.c-mark{stroke:#1f2328;stroke-width:2.5}
@media (prefers-color-scheme:dark){.c-paper{fill:#0d1117;stroke:#30363d}.c-ink{fill:#e6edf3}.c-faint{fill:#9198a1}.c-axis{stroke:#30363d}.c-mark{stroke:#e6edf3}}</style>` + "\n")
	fmt.Fprintf(b, `<rect class="c-paper" x="0.5" y="0.5" width="%d" height="%d" rx="6"/>`+"\n", chartWidth-1, height-1)
	fmt.Fprintf(b, `<text class="c-ink" x="16" y="26" font-size="15" font-weight="600">%s</text>`+"\n", html.EscapeString(c.title))

	most := 0.0
	for _, x := range c.bars {
		most = max(most, x.value, x.mark)
	}
	step := roundStep(most / 6)
	scale := (chartWidth - chartLeft - chartRight) / max(most, 1e-12)
	bottom := height - 30
	for k := 0; float64(k)*step <= most*1.0001 && step > 0; k++ {
		x := chartLeft + float64(k)*step*scale
		fmt.Fprintf(b, `<path class="c-axis" d="M%.1f %dV%d"/><text class="c-faint" x="%.1f" y="%d" text-anchor="middle" font-size="11">%s</text>`+"\n", x, chartTop-4, bottom, x, bottom+16, trimmed(float64(k)*step))
	}
	fmt.Fprintf(b, `<text class="c-faint" x="%d" y="%d" font-size="11">%s</text>`+"\n", chartWidth-chartRight+16, bottom+16, html.EscapeString(c.unit))

	var labels []string
	y := chartTop
	for i, x := range c.bars {
		if i == 0 || x.group != c.bars[i-1].group {
			fmt.Fprintf(b, `<text class="c-ink" x="16" y="%d" font-weight="600">%s</text>`+"\n", y+15, html.EscapeString(x.group))
			y += groupGap
		}
		fmt.Fprintf(b, `<text class="c-ink" x="%d" y="%d" text-anchor="end">%s</text>`+"\n", chartLeft-10, y+13, html.EscapeString(x.label))
		color := 0
		if !c.marked { // a colour for each label
			if color = slices.Index(labels, x.label); color < 0 {
				color = len(labels)
				labels = append(labels, x.label)
			}
		}
		fmt.Fprintf(b, `<rect fill="%s" x="%d" y="%d" width="%.2f" height="%d"/>`+"\n", fills[color%len(fills)], chartLeft, y, max(x.value*scale, 0.5), barHeight)
		end := x.value * scale
		note := fmt.Sprintf("%.*f %s", c.digits, x.value, c.unit)
		if c.marked {
			at := chartLeft + x.mark*scale
			fmt.Fprintf(b, `<path class="c-mark" d="M%.2f %dv%d"><title>predicted %.*f %s</title></path>`+"\n", at, y-2, barHeight+4, c.digits, x.mark, html.EscapeString(c.unit))
			end = max(end, x.mark*scale)
			note = fmt.Sprintf("%.*f (predicted %.*f)", c.digits, x.value, c.digits, x.mark)
		}
		fmt.Fprintf(b, `<text class="c-ink" x="%.1f" y="%d">%s</text>`+"\n", chartLeft+end+8, y+13, html.EscapeString(note))
		y += barHeight + barGap
	}
	b.WriteString("</svg>\n")
	return b.Flush()
}

// roundStep is the least of 1, 2 or 5 times a power of ten that is at least x.
func roundStep(x float64) float64 {
	if !(x > 0) || math.IsInf(x, 0) {
		return 0
	}
	power := math.Pow(10, math.Floor(math.Log10(x)))
	for _, k := range []float64{1, 2, 5} {
		if k*power >= x {
			return k * power
		}
	}
	return 10 * power
}

// trimmed is a number without zeros behind the point.
func trimmed(x float64) string { return fmt.Sprintf("%.6g", x) }
