package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// A record is one row of results: named values in order. All records of an
// output have the same names.
type record []field

// field is a value of a record; nil is unknown. Lists are left out of formats
// that have none.
type field struct {
	name  string
	value any // string, bool, integer, float64, a list of numbers, or nil
}

func (f field) isList() bool {
	switch f.value.(type) {
	case []int64, []float64:
		return true
	}
	return false
}

// text is the value as a cell of csv and sql.
func (f field) text() string {
	switch v := f.value.(type) {
	case nil:
		return ""
	case float64:
		return fmt.Sprintf("%f", v)
	}
	return fmt.Sprint(f.value)
}

// a printer writes records in one format as they come.
type printer interface {
	print(record) error
	end() error
}

// newPrinter makes the printer of a machine-readable format; sqlTable is the
// name of the table in sql. For md see markdown.
func newPrinter(w io.Writer, format, sqlTable string) (printer, error) {
	switch format {
	case "csv":
		return &csvPrinter{w: csv.NewWriter(w)}, nil
	case "json":
		return &jsonPrinter{w: w}, nil
	case "jsonl":
		return &jsonPrinter{w: w, lines: true}, nil
	case "sql":
		return &sqlPrinter{w: w, table: sqlTable}, nil
	}
	return nil, fmt.Errorf("-o %s: it must be md, csv, json, jsonl or sql", format)
}

type csvPrinter struct {
	w     *csv.Writer
	begun bool
}

func (p *csvPrinter) print(r record) error {
	var names, values []string
	for _, f := range r {
		if !f.isList() {
			names, values = append(names, f.name), append(values, f.text())
		}
	}
	if !p.begun {
		p.begun = true
		if err := p.w.Write(names); err != nil {
			return err
		}
	}
	if err := p.w.Write(values); err != nil {
		return err
	}
	return p.end()
}

func (p *csvPrinter) end() error {
	p.w.Flush()
	return p.w.Error()
}

// jsonPrinter writes an array of objects, or an object a line.
type jsonPrinter struct {
	w     io.Writer
	lines bool
	begun bool
}

func (p *jsonPrinter) print(r record) error {
	var b strings.Builder
	open, between, shut := "  {\n    ", ",\n    ", "\n  }"
	if p.lines {
		open, between, shut = "{", ", ", "}\n"
	} else if p.begun {
		b.WriteString(",\n")
	} else {
		b.WriteString("[\n")
	}
	p.begun = true
	b.WriteString(open)
	for i, f := range r {
		if i > 0 {
			b.WriteString(between)
		}
		v, err := json.Marshal(f.value)
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		fmt.Fprintf(&b, "%q: %s", f.name, v)
	}
	b.WriteString(shut)
	_, err := io.WriteString(p.w, b.String())
	return err
}

func (p *jsonPrinter) end() error {
	text := "\n]\n"
	switch {
	case p.lines:
		return nil
	case !p.begun:
		text = "[]\n"
	}
	_, err := io.WriteString(p.w, text)
	return err
}

type sqlPrinter struct {
	w     io.Writer
	table string
	begun bool
}

func (p *sqlPrinter) print(r record) error {
	var b strings.Builder
	var names, columns, values []string
	for _, f := range r {
		if f.isList() {
			continue
		}
		kind := "TEXT"
		switch f.value.(type) {
		case int, int64, bool:
			kind = "INTEGER"
		case float64:
			kind = "REAL"
		}
		value := "'" + strings.ReplaceAll(f.text(), "'", "''") + "'"
		if f.value == nil {
			value = "NULL"
		}
		names, columns, values = append(names, f.name), append(columns, "  "+f.name+" "+kind), append(values, value)
	}
	if !p.begun {
		fmt.Fprintf(&b, "CREATE TABLE IF NOT EXISTS %s (\n%s\n);\n\n", p.table, strings.Join(columns, ",\n"))
		p.begun = true
	}
	fmt.Fprintf(&b, "INSERT INTO %s (%s) VALUES (%s);\n", p.table, strings.Join(names, ", "), strings.Join(values, ", "))
	_, err := io.WriteString(p.w, b.String())
	return err
}

func (*sqlPrinter) end() error { return nil }

// A column of a markdown table. Numbers stand on the right.
type column struct {
	title string
	width int
	right bool
}

// markdown writes a table row by row.
type markdown struct {
	w       io.Writer
	columns []column
	begun   bool
}

func (m *markdown) row(cells ...string) error {
	var b strings.Builder
	if !m.begun {
		m.begun = true
		titles, rule := make([]string, len(m.columns)), "|"
		for i := range m.columns {
			c := &m.columns[i]
			c.width = max(c.width, utf8.RuneCountInString(c.title))
			titles[i] = c.title
			if c.right {
				rule += " " + strings.Repeat("-", c.width-1) + ": |"
			} else {
				rule += " " + strings.Repeat("-", c.width) + " |"
			}
		}
		m.line(&b, titles)
		b.WriteString(rule + "\n")
	}
	m.line(&b, cells)
	_, err := io.WriteString(m.w, b.String())
	return err
}

func (m *markdown) line(b *strings.Builder, cells []string) {
	b.WriteString("|")
	for i, c := range m.columns {
		cell := strings.ReplaceAll(cells[i], "|", `\|`)
		fill := strings.Repeat(" ", max(0, c.width-utf8.RuneCountInString(cell)))
		if c.right {
			b.WriteString(" " + fill + cell + " |")
		} else {
			b.WriteString(" " + cell + fill + " |")
		}
	}
	b.WriteString("\n")
}
