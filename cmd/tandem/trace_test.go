package main

import (
	"encoding/json"
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A trace is written in the form that the file's name asks for; the answer is
// the same.
func TestTrace(t *testing.T) {
	for _, ext := range []string{".json", ".svg"} {
		path := filepath.Join(t.TempDir(), "out"+ext)
		if got := succeed(t, "", "run", "-n", "3", "--trace", path, "Hello"); got != "Hello! How\n" {
			t.Errorf("got %q", got)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if ext == ".json" {
			var file struct{ TraceEvents []map[string]any }
			if err := json.Unmarshal(data, &file); err != nil || len(file.TraceEvents) < 12 {
				t.Errorf("%d events, %v", len(file.TraceEvents), err)
			}
		} else if err := xml.Unmarshal(data, new(struct{ XMLName xml.Name })); err != nil || !strings.Contains(string(data), "chunk c4") {
			t.Errorf("no picture: %v in %.200s", err, data)
		}
	}
}

// A form that is not known is refused before anything is loaded, and a file
// that cannot be written is an error.
func TestTraceErrors(t *testing.T) {
	if status, out, err := command(t, "", "run", "--trace", "out.txt", "-m", "no-such.gguf", "Hi"); status != 1 || out != "" ||
		!strings.Contains(err, "--trace: out.txt") || !strings.Contains(err, ".svg") {
		t.Errorf("status %d, %q, %q", status, out, err)
	}
	path := filepath.Join(t.TempDir(), "no", "such", "out.json")
	if status, _, err := command(t, "", "run", "-n", "1", "--trace", path, "Hi"); status != 1 || !strings.Contains(err, "--trace: ") || !strings.Contains(err, path) {
		t.Errorf("status %d, %q", status, err)
	}
}
