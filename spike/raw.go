package spike

import (
	"encoding/json"
	"io"
	"time"
)

// A Line is one entry of the raw record: a prediction or a measurement, in the
// order in which they were made. Fields that do not belong to its kind are left
// out; docs/spike.md lists them.
type Line struct {
	Kind      string   `json:"kind"` // cold, step, drift, task, gap, merged, block, lap, contention, probe, prediction, decode, prefill
	At        float64  `json:"at_s"` // since the begin
	Model     string   `json:"model,omitempty"`
	Category  string   `json:"category,omitempty"`
	Chunk     string   `json:"chunk,omitempty"`
	Unit      string   `json:"unit,omitempty"`
	With      string   `json:"with,omitempty"` // the other unit
	Placement string   `json:"placement,omitempty"`
	Streams   int      `json:"streams,omitempty"`
	Merge     *int     `json:"merge,omitempty"` // as --merge: 1 keeps streams apart, 0 joins those that wait
	Rows      int      `json:"rows,omitempty"`
	Block     int      `json:"block,omitempty"`
	What      string   `json:"what,omitempty"`
	Trial     *int     `json:"trial,omitempty"`
	MS        *float64 `json:"ms,omitempty"`
	Factor    *float64 `json:"factor,omitempty"`
	Overlap   *float64 `json:"overlap,omitempty"`
	Rate      *Rate    `json:"tok_s,omitempty"`
	DelayMS   *float64 `json:"delay_ms,omitempty"` // for which threads waited for a CPU
	StallMS   *float64 `json:"stall_ms,omitempty"` // for which tokens were overdue
	Kept      *bool    `json:"kept,omitempty"`
	Copied    int64    `json:"copied_bytes,omitempty"`
	Passed    int64    `json:"passed_bytes,omitempty"`
}

// raw collects lines.
type raw struct {
	begin time.Time
	lines []Line
}

func (r *raw) add(l Line) {
	if r.begin.IsZero() {
		r.begin = time.Now()
	}
	l.At = time.Since(r.begin).Seconds()
	r.lines = append(r.lines, l)
}

// WriteRaw writes the raw record, a JSON object a line.
func (r *Report) WriteRaw(w io.Writer) error {
	e := json.NewEncoder(w)
	for _, l := range r.Raw {
		if err := e.Encode(l); err != nil {
			return err
		}
	}
	return nil
}

func number[T any](x T) *T { return &x }
