package tandem

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/tandemrun/tandem/trace"
)

// A Timeline is what an engine did: its tasks, the handoffs between units, and
// why units were idle. See package trace.
type Timeline = trace.Timeline

// A Trace collects what an engine does. Give its Observe to [Options]. The zero
// value is ready; it is safe for concurrent use.
type Trace struct{ recorder trace.Recorder }

// Observe takes what a task took; see [Options].
func (t *Trace) Observe(r Record) { t.recorder.Observe(r) }

// Reset forgets what was collected so far.
func (t *Trace) Reset() { t.recorder.Reset() }

// Timeline is what was collected so far of an engine's tasks.
func (t *Trace) Timeline(e *Engine) (*Timeline, error) {
	return trace.New(trace.LayoutOf(filepath.Base(e.m.Name()), e.e), t.recorder.Records())
}

// CheckTraceFile reports whether [WriteTimeline] knows the form of a file, by
// its name.
func CheckTraceFile(path string) error {
	switch filepath.Ext(path) {
	case ".json", ".svg":
		return nil
	}
	return fmt.Errorf("%s: a trace is written to a file whose name ends in .json (Chrome trace, for ui.perfetto.dev) or .svg (a picture)", path)
}

// WriteTimeline writes a timeline to a file: as a Chrome trace, which Perfetto
// opens, if its name ends in .json, and as a picture if it ends in .svg.
func WriteTimeline(path string, t *Timeline) (err error) {
	if err := CheckTraceFile(path); err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
	}()
	if filepath.Ext(path) == ".svg" {
		return t.SVG(f, trace.SVGOptions{})
	}
	return trace.WriteChrome(f, t)
}
