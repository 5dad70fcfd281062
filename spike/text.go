package spike

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode/utf8"
)

// WriteText writes the report for a terminal, without what only the files have.
func (r *Report) WriteText(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintln(b, r.title())
	sections := r.sections()
	for _, s := range append(sections[1:], sections[0]) { // the verdict at the end, where the eye is
		if s.long {
			continue
		}
		fmt.Fprintf(b, "\n%s\n", s.title)
		if len(s.table.rows) == 0 {
			for _, line := range s.text {
				fmt.Fprintln(b, wrapped(line, 100))
			}
			continue
		}
		t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "  "+strings.Join(s.table.aligned(s.table.head), "\t"))
		for _, row := range s.table.rows {
			fmt.Fprintln(t, "  "+strings.Join(s.table.aligned(row), "\t"))
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	return b.Flush()
}

// aligned pads numbers so that they stand to the right of their column.
func (t *table) aligned(row []string) []string {
	out := make([]string, len(row))
	for i, cell := range row {
		if t.right[i] {
			width := utf8.RuneCountInString(t.head[i])
			for _, x := range t.rows {
				width = max(width, utf8.RuneCountInString(x[i]))
			}
			cell = strings.Repeat(" ", width-utf8.RuneCountInString(cell)) + cell
		}
		out[i] = cell
	}
	return out
}

// wrapped breaks a paragraph into lines of some width.
func wrapped(text string, width int) string {
	var out strings.Builder
	at := 0
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
			out.WriteString("  ")
		case at+1+n > width:
			out.WriteString("\n    ")
			at = 4
		default:
			out.WriteByte(' ')
			at++
		}
		out.WriteString(word)
		at += n
	}
	return out.String()
}

// WriteMarkdown writes the report as Markdown. The pictures are in the HTML form.
func (r *Report) WriteMarkdown(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "# %s\n", r.title())
	for _, s := range r.sections() {
		if len(s.lines) > 0 {
			fmt.Fprintf(b, "\n## %s\n\nThe pictures are in report.html, the timelines in trace.json.\n", s.title)
			for _, i := range s.lines {
				fmt.Fprintf(b, "\n- %s: %s\n", cell(r.Timelines[i].Name), cell(r.Timelines[i].Line()))
			}
			continue
		}
		fmt.Fprintf(b, "\n## %s\n", s.title)
		for i, line := range s.text {
			if s.title == "Verdict" {
				if i == 0 {
					fmt.Fprintln(b)
				}
				fmt.Fprintf(b, "- %s\n", cell(line))
				continue
			}
			fmt.Fprintf(b, "\n%s\n", cell(line))
		}
		s.table.markdown(b)
	}
	return b.Flush()
}

func (t *table) markdown(w io.Writer) {
	if len(t.rows) == 0 {
		return
	}
	fmt.Fprintf(w, "\n| %s |\n|", strings.Join(t.head, " | "))
	for _, right := range t.right {
		if right {
			fmt.Fprint(w, "---:|")
		} else {
			fmt.Fprint(w, "---|")
		}
	}
	fmt.Fprintln(w)
	for _, row := range t.rows {
		cells := make([]string, len(row))
		for i, x := range row {
			cells[i] = cell(x)
		}
		fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | "))
	}
}

// cell is text that is safe in Markdown.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "*", `\*`, "_", `\_`, "`", "\\`", "\n", " ").Replace(text)
}
