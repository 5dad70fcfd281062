package spike

import (
	_ "embed"
	"html/template"
	"io"
	"strings"
	"time"

	"github.com/tandemrun/tandem/trace"
)

//go:embed report.html.tmpl
var page string

// What the page is made of.
type (
	pageData struct {
		Title    string
		Sections []pageSection
	}
	pageSection struct {
		Title    string
		Verdict  bool
		Text     []string
		Table    *pageTable
		Pictures []template.HTML // drawn here, with everything in them escaped
	}
	pageTable struct {
		Head []pageCell
		Rows [][]pageCell
	}
	pageCell struct {
		Text  string
		Right bool
	}
)

// WriteHTML writes the report as one page that needs nothing else. It follows a
// dark colour scheme.
func (r *Report) WriteHTML(w io.Writer) error {
	t, err := template.New("report").Parse(page)
	if err != nil {
		return err
	}
	data := pageData{Title: r.title()}
	for i, s := range r.sections() {
		p := pageSection{Title: s.title, Verdict: i == 0, Text: s.text}
		if len(s.table.rows) > 0 {
			p.Table = &pageTable{Head: s.table.cells(s.table.head)}
			for _, row := range s.table.rows {
				p.Table.Rows = append(p.Table.Rows, s.table.cells(row))
			}
		}
		for _, c := range s.charts {
			if len(c.bars) == 0 {
				continue
			}
			var b strings.Builder
			if err := c.write(&b); err != nil {
				return err
			}
			p.Pictures = append(p.Pictures, template.HTML(b.String()))
		}
		for _, k := range s.lines {
			var b strings.Builder
			if err := r.draw(&b, k); err != nil {
				return err
			}
			p.Pictures = append(p.Pictures, template.HTML(b.String()))
		}
		data.Sections = append(data.Sections, p)
	}
	return t.Execute(w, data)
}

func (t *table) cells(row []string) []pageCell {
	var out []pageCell
	for i, x := range row {
		out = append(out, pageCell{x, t.right[i]})
	}
	return out
}

// drawnTasks is how many tasks of a timeline are drawn.
const drawnTasks = 64

// draw draws the beginning of a timeline.
func (r *Report) draw(w io.Writer, index int) error {
	t := r.Timelines[index]
	var to time.Duration
	if len(t.Tasks) > drawnTasks {
		to = t.Tasks[drawnTasks].Start
	}
	return t.SVG(w, trace.SVGOptions{Title: t.Name, To: to})
}
