package main

import (
	"encoding/csv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// awkward are records with everything that needs care in some format.
func awkward() []record {
	return []record{
		{{"name", `a "b", it's`}, {"n", 7}, {"ts", 1.5}, {"samples", []float64{1, 2.25}}, {"missing", nil}},
		{{"name", "x\ny"}, {"n", -1}, {"ts", 0.25}, {"samples", []float64{}}, {"missing", 3}},
	}
}

func printed(t *testing.T, format string, records []record) string {
	t.Helper()
	var out strings.Builder
	p, err := newPrinter(&out, format, "results")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if err := p.print(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.end(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestPrinters(t *testing.T) {
	objects := []map[string]any{
		{"name": `a "b", it's`, "n": 7., "ts": 1.5, "samples": []any{1., 2.25}, "missing": nil},
		{"name": "x\ny", "n": -1., "ts": 0.25, "samples": []any{}, "missing": 3.},
	}
	var got []map[string]any
	decode(t, printed(t, "json", awkward()), &got)
	if d := cmp.Diff(objects, got); d != "" {
		t.Errorf("json: %s", d)
	}
	lines := strings.Split(printed(t, "jsonl", awkward()), "\n")
	if len(lines) != 3 || lines[2] != "" {
		t.Fatalf("jsonl: %q", lines)
	}
	for i, line := range lines[:2] {
		var got map[string]any
		decode(t, line, &got)
		if d := cmp.Diff(objects[i], got); d != "" {
			t.Errorf("jsonl: %s", d)
		}
	}
	table, err := csv.NewReader(strings.NewReader(printed(t, "csv", awkward()))).ReadAll()
	want := [][]string{{"name", "n", "ts", "missing"}, {`a "b", it's`, "7", "1.500000", ""}, {"x\ny", "-1", "0.250000", "3"}}
	if d := cmp.Diff(want, table); err != nil || d != "" {
		t.Errorf("csv: %v %s", err, d)
	}
	wantSQL := `CREATE TABLE IF NOT EXISTS results (
  name TEXT,
  n INTEGER,
  ts REAL,
  missing TEXT
);

INSERT INTO results (name, n, ts, missing) VALUES ('a "b", it''s', '7', '1.500000', NULL);
INSERT INTO results (name, n, ts, missing) VALUES ('x` + "\n" + `y', '-1', '0.250000', '3');
`
	if d := cmp.Diff(wantSQL, printed(t, "sql", awkward())); d != "" {
		t.Errorf("sql: %s", d)
	}
}

func TestPrintNothing(t *testing.T) {
	for format, want := range map[string]string{"json": "[]\n", "jsonl": "", "csv": "", "sql": ""} {
		if got := printed(t, format, nil); got != want {
			t.Errorf("%s: %q", format, got)
		}
	}
	if _, err := newPrinter(nil, "xml", ""); err == nil {
		t.Error("xml is a format")
	}
}

func TestMarkdown(t *testing.T) {
	var out strings.Builder
	m := markdown{w: &out, columns: []column{{"name", 6, false}, {"µs", 5, true}, {"longer title", 0, true}}}
	for _, cells := range [][]string{{"a|b", "1 ± 2", "x"}, {"much too long", "", ""}} {
		if err := m.row(cells...); err != nil {
			t.Fatal(err)
		}
	}
	want := `| name   |    µs | longer title |
| ------ | ----: | -----------: |
| a\|b   | 1 ± 2 |            x |
| much too long |       |              |
`
	if out.String() != want {
		t.Errorf("got\n%s", out.String())
	}
}
