// Package tally counts what an engine did, from its records alone: tokens, the
// times to and between them by sequence, and how long each unit was busy. So the
// same figures come of any command, whatever it prints.
//
// A sequence is a prompt and the tokens behind it. In a stream a new one begins
// where the positions do not go on, or where several rows come at once behind a
// token. Times are those of the engine's clock: a token's is the end of the task
// that made its logits.
//
// A Tally is safe for concurrent use.
package tally

import (
	"sync"
	"time"

	"github.com/tandemrun/tandem/engine"
)

// A Sequence is a prompt and its tokens.
type Sequence struct {
	Stream    int             `json:"stream"`
	Submitted time.Time       `json:"submitted"` // the first block was asked for
	Last      time.Time       `json:"last"`      // end of the last task
	Prompt    int             `json:"prompt"`    // rows up to the first token
	Tokens    int             `json:"tokens"`    // rows whose logits were wanted
	First     time.Duration   `json:"first_ns"`  // from Submitted to the first token; 0 if none came
	Between   []time.Duration `json:"between_ns"`
	// Inside is how much of Between the tasks of the stream's own steps were at
	// work, without copying cache rows; the rest is the host's share. Tasks that
	// were shared with other streams count whole.
	Inside time.Duration `json:"inside_ns"`

	next int
}

// A UnitBusy is how long a unit ran tasks.
type UnitBusy struct {
	Unit string        `json:"unit"`
	Busy time.Duration `json:"busy_ns"`
}

// A Report is what was counted.
type Report struct {
	Tokens    int        `json:"tokens"`    // rows whose logits were wanted
	Positions int        `json:"positions"` // rows that were evaluated
	Units     []UnitBusy `json:"units"`
	Sequences []Sequence `json:"sequences"`
}

// A Tally counts for one engine.
type Tally struct {
	last int // index of the last chunk

	mu        sync.Mutex
	units     []UnitBusy
	positions int
	tokens    int
	sequences []*Sequence
	streams   map[int]*stream
}

type stream struct {
	now    *Sequence
	inside time.Duration // of tasks since the last token
}

// New counts for an engine with a number of chunks on units, named in the order
// of [engine.Engine.Units].
func New(chunks int, units []string) *Tally {
	t := &Tally{last: chunks - 1, streams: map[int]*stream{}}
	for _, u := range units {
		t.units = append(t.units, UnitBusy{Unit: u})
	}
	return t
}

// Observe takes a record; see [engine.Config].
func (t *Tally) Observe(r engine.Record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	took := r.End.Sub(r.Start)
	if r.Unit < len(t.units) {
		t.units[r.Unit].Busy += took
	}
	for _, p := range r.Parts {
		s := t.streams[p.Stream]
		if s == nil {
			s = &stream{}
			t.streams[p.Stream] = s
		}
		s.inside += took - r.CopyTime
		if p.Moved > 0 {
			continue // cache rows on their way: nothing was computed
		}
		if r.Chunk == 0 {
			t.positions += p.Rows
		}
		if r.Chunk == t.last {
			t.part(s, p, r.End)
		}
	}
}

// part takes a stream's part of a task of the last chunk.
func (t *Tally) part(s *stream, p engine.RecordPart, end time.Time) {
	q := s.now
	if q == nil || p.Pos != q.next || p.Rows > 1 && q.Tokens > 0 {
		q = &Sequence{Stream: p.Stream, Submitted: p.Submitted}
		s.now = q
		t.sequences = append(t.sequences, q)
	}
	q.next = p.Pos + p.Rows
	if q.Tokens == 0 {
		q.Prompt += p.Rows
	}
	if p.Wanted == 0 {
		return
	}
	if q.Tokens == 0 {
		q.First = end.Sub(q.Submitted)
	} else {
		q.Between = append(q.Between, end.Sub(q.Last))
		q.Inside += s.inside
	}
	q.Last = end
	q.Tokens += p.Wanted
	t.tokens += p.Wanted
	s.inside = 0
}

// Report is what was counted so far.
func (t *Tally) Report() Report {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := Report{Tokens: t.tokens, Positions: t.positions, Units: append([]UnitBusy{}, t.units...), Sequences: []Sequence{}}
	for _, q := range t.sequences {
		r.Sequences = append(r.Sequences, *q)
	}
	return r
}
