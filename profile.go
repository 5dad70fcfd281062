package tandem

import (
	"fmt"
	"strings"
	"time"
)

// A Profile adds up what decode steps took, for one line in the form of the
// seed documents.
type Profile struct {
	chunks []Chunk
	steps  int
	total  time.Duration
	busy   []time.Duration // by chunk: from the begin of its task to its end
	copies time.Duration
}

// NewProfile begins a profile of an engine's steps.
func NewProfile(e *Engine) *Profile {
	return &Profile{chunks: e.Chunks(), busy: make([]time.Duration, len(e.Chunks()))}
}

// Add adds one step: how long it took in all and its tasks.
func (p *Profile) Add(total time.Duration, records []Record) {
	p.steps++
	p.total += total
	for _, r := range records {
		p.busy[r.Chunk] += r.End.Sub(r.Start)
		p.copies += r.CopyTime
	}
}

// Steps is the number of steps added since the last Reset.
func (p *Profile) Steps() int { return p.steps }

// Reset forgets the steps added so far.
func (p *Profile) Reset() {
	p.steps, p.total, p.copies = 0, 0, 0
	clear(p.busy)
}

// String is two lines of means over the steps, in milliseconds.
//
// [Profile]: emb is the time of a step outside the chunks (choosing the token,
// queueing), since the lookups are part of c1 here, and mask is always 0,
// since no mask is made; then each chunk with the copies of shared K and V
// rows in it, their sum, predict (all that follows emb) and the total.
//
// The second line is named after the units: wait is the time inside the units'
// tasks without copies, copyBack the copies, and cpu_active the rest of the
// step with the copies, the host's own work.
func (p *Profile) String() string {
	if p.steps == 0 {
		return "[Profile] no steps"
	}
	ms := func(d time.Duration) float64 { return d.Seconds() * 1e3 / float64(p.steps) }
	var sum time.Duration
	var names, units []string
	seen := map[string]bool{}
	for i, d := range p.busy {
		sum += d
		names = append(names, fmt.Sprintf("c%d=%.2f", i+1, ms(d)))
		if u := p.chunks[i].Unit; !seen[u] {
			seen[u] = true
			units = append(units, u)
		}
	}
	host := max(p.total-sum, 0)
	active := host + p.copies
	return fmt.Sprintf("[Profile] emb=%.2fms mask=0.00ms | %s (sum=%.2fms) | predict=%.2fms total=%.2fms (%.1f tok/s)\n[%s/CPU] unit_wait=%.2fms copyBack=%.2fms cpu_active=%.2fms (%.0f%% CPU)",
		ms(host), strings.Join(names, " "), ms(sum), ms(p.total-host), ms(p.total), float64(p.steps)/p.total.Seconds(),
		strings.Join(units, "+"), ms(sum-p.copies), ms(p.copies), ms(active), 100*active.Seconds()/p.total.Seconds())
}
