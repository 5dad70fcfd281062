package tandem

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/tandemrun/tandem/plan"
)

// planFormat is the form of plan files that this version reads; docs/plan.md.
const planFormat = 1

// planFile is a plan as a file.
type planFile struct {
	Format     int       `json:"tandem_plan"`
	Model      string    `json:"model"` // for people
	Placement  []string  `json:"placement"`
	Boundaries []int     `json:"boundaries"`
	Streams    int       `json:"streams"`
	Block      int       `json:"block"`
	Merge      int       `json:"merge"`
	StepMs     []float64 `json:"step_ms,omitempty"` // by chunk, of one row
	TokS       float64   `json:"predicted_tok_s,omitempty"`
	TTFT       float64   `json:"predicted_ttft_ms,omitempty"`
	Costs      string    `json:"costs,omitempty"` // the file with what was measured
}

// WritePlan writes the best plan to a file that people can read and edit.
func (p Plans) WritePlan(path string) error {
	if len(p.Plans) == 0 {
		return errors.New("there is no plan to write")
	}
	data, err := json.MarshalIndent(p.file(), "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}

func (p Plans) file() planFile {
	x := p.Plans[0]
	f := planFile{planFormat, p.Name, x.Placement, x.Boundaries, x.Streams, x.Block, x.Merge, nil, x.PredictedTokS, x.PredictedTTFT, p.Cache}
	for i, c := range x.p.Costs.Chunks {
		step := c.On[x.Placement[i]].Rows[0].Time.Seconds() * 1e3
		if x.Streams > 1 {
			step *= slowed(x.p.Costs, x.Placement[i], x.units())
		}
		f.StepMs = append(f.StepMs, step)
	}
	return f
}

// slowed is how many times as long a step takes on a unit while all the other
// units of a plan are at work.
func slowed(c *plan.Costs, unit string, units []string) float64 {
	f := 1.0
	for _, x := range c.Contention {
		if x.Unit == unit && slices.Contains(units, x.With) {
			f *= x.Decode
		}
	}
	return f
}

// A UsedPlan is a plan in use: it knows what it predicted, and compares. It is
// safe for concurrent use.
type UsedPlan struct {
	f     planFile
	mu    sync.Mutex
	times [][]time.Duration // by chunk, of decode steps of one row
}

// ReadPlan reads a plan file. Errors name the file and the field.
func ReadPlan(path string) (*UsedPlan, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	var f planFile
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return nil, fmt.Errorf("plan %s: %w", path, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("plan %s: there is something behind the closing brace", path)
	}
	switch {
	case f.Format != planFormat:
		err = fmt.Errorf("tandem_plan: %d; this version reads %d", f.Format, planFormat)
	case len(f.Placement) == 0 || slices.Contains(f.Placement, ""):
		err = errors.New("placement: it must name the unit of each chunk")
	case len(f.Boundaries) != len(f.Placement)-1:
		err = fmt.Errorf("boundaries: %d of them for %d chunks; there is one before each chunk but the first", len(f.Boundaries), len(f.Placement))
	case f.Streams < 1 || f.Block < 1 || f.Merge < 0:
		err = fmt.Errorf("streams %d, block %d, merge %d: at least 1, 1 and 0 are needed", f.Streams, f.Block, f.Merge)
	case len(f.StepMs) > 0 && len(f.StepMs) != len(f.Placement):
		err = fmt.Errorf("step_ms: %d of them for %d chunks", len(f.StepMs), len(f.Placement))
	}
	if err != nil {
		return nil, fmt.Errorf("plan %s: %w", path, err)
	}
	return &UsedPlan{f: f}, nil
}

// Use takes the best plan into use.
func (p Plans) Use() *UsedPlan { return &UsedPlan{f: p.file()} }

// Streams is how many streams at once the plan is for.
func (u *UsedPlan) Streams() int { return u.f.Streams }

// Options lays o out as the plan says.
func (u *UsedPlan) Options(o Options) Options {
	o.Split, o.Chunks = u.f.Boundaries, 0
	if len(u.f.Boundaries) == 0 {
		o.Split, o.Chunks = nil, 1
	}
	o.Place, o.Block, o.Merge = placement(u.f.Placement), u.f.Block, u.f.Merge
	return o
}

// Add takes tasks. Those of one row of one stream, decode steps, are compared
// with the plan.
func (u *UsedPlan) Add(records []Record) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.times == nil {
		u.times = make([][]time.Duration, len(u.f.Placement))
	}
	for _, r := range records {
		if r.Chunk < len(u.times) && r.Rows == 1 && r.Streams == 1 {
			u.times[r.Chunk] = append(u.times[r.Chunk], r.End.Sub(r.Start))
		}
	}
}

// planFactor is how many times as long as planned a chunk may take, by the median
// of planSteps steps and more, before the plan is measured again.
const (
	planFactor = 1.5
	planSteps  = 16
)

// Check says, a sentence each, which units are slower than the plan says, by
// half and more. What was measured for the plan is forgotten then, so that the
// next `tandem plan` and --plan auto measure again.
func (u *UsedPlan) Check() (notes []string, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for i, times := range u.times {
		if len(times) < planSteps || i >= len(u.f.StepMs) || u.f.StepMs[i] <= 0 {
			continue
		}
		slices.Sort(times)
		found := times[len(times)/2].Seconds() * 1e3
		if f := found / u.f.StepMs[i]; f > planFactor {
			notes = append(notes, fmt.Sprintf("unit %s takes %.1f times as long for c%d as its plan says (%.3g ms instead of %.3g ms); it is measured again for the next plan", u.f.Placement[i], f, i+1, found, u.f.StepMs[i]))
		}
	}
	if len(notes) > 0 && u.f.Costs != "" {
		if err = os.Remove(u.f.Costs); errors.Is(err, os.ErrNotExist) {
			err = nil
		}
	}
	return notes, err
}
