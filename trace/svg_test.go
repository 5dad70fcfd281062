package trace_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/tandemrun/tandem/engine"
	"github.com/tandemrun/tandem/trace"
)

// checkSVG checks that a picture is well-formed, needs no other file, and that
// its boxes lie inside it and have the colours of chunks.
func checkSVG(t *testing.T, svg []byte, of *trace.Timeline) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(string(svg)))
	var width, height float64
	ids, used := map[string]bool{}, map[string]bool{}
	var texts strings.Builder
	boxes := 0
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v", err)
		}
		if c, ok := token.(xml.CharData); ok {
			texts.Write(c)
		}
		e, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		a := map[string]string{}
		for _, x := range e.Attr {
			a[x.Name.Local] = x.Value
		}
		number := func(name string) float64 {
			n, err := strconv.ParseFloat(a[name], 64)
			if err != nil || n != n {
				t.Errorf("<%s %s=%q>", e.Name.Local, name, a[name])
			}
			return n
		}
		if a["href"] != "" || e.Name.Local == "image" || e.Name.Local == "script" {
			t.Errorf("<%s> refers to something else", e.Name.Local)
		}
		switch e.Name.Local {
		case "svg":
			width, height = number("width"), number("height")
		case "pattern":
			ids[a["id"]] = true
		case "rect":
			if fill := a["fill"]; strings.HasPrefix(fill, "url(#") {
				used[strings.TrimSuffix(strings.TrimPrefix(fill, "url(#"), ")")] = true
			}
			if a["x"] == "" {
				continue // the paper, or in the legend
			}
			boxes++
			if x, y := number("x"), number("y"); x < 0 || y < 0 || x+number("width") > width+0.1 || y+number("height") > height || number("width") < 0 {
				t.Errorf("a box outside of the %v by %v picture: %v", width, height, a)
			}
		}
	}
	for id := range used {
		if !ids[id] {
			t.Errorf("pattern %s is not in the picture", id)
		}
	}
	if boxes < len(of.Units) {
		t.Errorf("%d boxes", boxes)
	}
	for _, name := range of.Units {
		if !strings.Contains(texts.String(), name) {
			t.Errorf("no %s in the picture", name)
		}
	}
}

// drawn is a timeline's picture.
func drawn(t *testing.T, x *trace.Timeline, o trace.SVGOptions) string {
	t.Helper()
	var b bytes.Buffer
	if err := x.SVG(&b, o); err != nil {
		t.Fatal(err)
	}
	checkSVG(t, b.Bytes(), x)
	return b.String()
}

// A picture has a box for each task, names chunks, streams and causes, and can
// show a part of the time.
func TestSVG(t *testing.T) {
	x := timeline(t, script())
	x.Name = `a <b> & "c"`
	all := drawn(t, x, trace.SVGOptions{})
	if n := strings.Count(all, `<rect class="box" fill="#`) - 2 - 2; n != len(x.Tasks) { // beside 2 chunks and 2 streams of the legend
		t.Errorf("%d boxes of %d tasks", n, len(x.Tasks))
	}
	for _, part := range []string{"chunk c1 on a", "stream s2", "waiting for c1 of s1 on a", "caller of s1", "20 ms", "prefers-color-scheme", "a &lt;b&gt; &amp; &#34;c&#34;", "url(#h1)"} {
		if !strings.Contains(all, part) {
			t.Errorf("no %q in the picture", part)
		}
	}
	part := drawn(t, x, trace.SVGOptions{Title: "a part", From: 10 * ms, To: 20 * ms, Rows: 2})
	if n := strings.Count(part, "<title>c1 of") + strings.Count(part, "<title>c2 of"); n != 3 { // c1, and c2 on both rows
		t.Errorf("%d tasks between 10 and 20 ms", n)
	}
	for _, o := range []trace.SVGOptions{{From: 27 * ms}, {From: -1}, {From: 5 * ms, To: 4 * ms}} {
		if err := x.SVG(io.Discard, o); err == nil {
			t.Errorf("%+v is no error", o)
		}
	}
}

// A long run stays a picture of bounded size: what is finer than it can show is
// left out.
func TestSVGOfManyTasks(t *testing.T) {
	var records []engine.Record
	for i := range 30000 {
		at := float64(i) / 100
		records = append(records, engine.Record{Unit: i % 2, Chunk: i % 2, Start: after(at), End: after(at + 0.009), Parts: []engine.RecordPart{
			{Stream: 0, Block: i, Rows: 1, Submitted: after(at), Ready: after(at), After: -1},
		}})
	}
	if svg := drawn(t, timeline(t, records), trace.SVGOptions{}); len(svg) > 12<<20 {
		t.Errorf("%d bytes", len(svg))
	}
}
