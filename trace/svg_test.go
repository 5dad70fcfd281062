package trace_test

import (
	"encoding/xml"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/tandemrun/tandem/trace"
)

// checkSVG checks that a picture is well-formed, needs no other file, and that
// its boxes lie inside it and have the colours of chunks.
func checkSVG(t *testing.T, svg []byte, of *trace.Timeline) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(string(svg)))
	var width, height float64
	ids, used, texts := map[string]bool{}, map[string]bool{}, ""
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
			texts += string(c)
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
		if !strings.Contains(texts, name) {
			t.Errorf("no %s in the picture", name)
		}
	}
}
