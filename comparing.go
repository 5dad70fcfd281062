package tandem

import (
	"context"
	"time"

	"github.com/tandemrun/tandem/ab"
	"github.com/tandemrun/tandem/power"
	"github.com/tandemrun/tandem/prompts"
	"github.com/tandemrun/tandem/tally"
)

type (
	// A Comparison says which trials of two settings to compare; see [Compare].
	Comparison = ab.Options
	// A ComparisonResult is what came of it.
	ComparisonResult = ab.Result
	// A ComparisonRow is one figure of it.
	ComparisonRow = ab.Row
	// A Sequence is a prompt and its tokens, as a [Tally] counted them.
	Sequence = tally.Sequence
	// A Side is one of two settings.
	Side = ab.Side
	// A Trial is what one run of a side gave.
	Trial = ab.Trial
)

// The sides of a [Comparison].
const (
	SideA = ab.A
	SideB = ab.B
)

// What a comparison fixes beforehand; see package ab.
const (
	ComparisonAlpha      = ab.Alpha      // p of a difference is below it
	ComparisonConfidence = ab.Confidence // of intervals
	ComparisonDisturbed  = ab.Disturbed  // the most that others may have of a trial's CPUs
)

// Compare runs trials of A and B in turn, keeps the pairs that were quiet, and
// compares them. See package ab for what is fixed beforehand.
func Compare(ctx context.Context, c Comparison) (ComparisonResult, error) { return ab.Compare(ctx, c) }

// Percentile is the duration that a share p of all is not above, by the nearest
// rank. It sorts them.
func Percentile(all []time.Duration, p float64) time.Duration { return ab.Percentile(all, p) }

// A PowerLog knows what the machine drew at any time since it was opened.
type PowerLog struct {
	meter *power.Meter
	log   *power.Log
}

// OpenPowerLog begins to sample the machine's power.
func OpenPowerLog(ctx context.Context, every time.Duration) *PowerLog {
	m := power.Open(ctx, power.Options{Interval: every})
	return &PowerLog{m, m.Log(every)}
}

// Joules is what all that is measured drew between two moments; false if that is
// not known.
func (l *PowerLog) Joules(from, to time.Time) (float64, bool) {
	return l.log.Joules(power.Combined, from, to)
}

// Close ends sampling.
func (l *PowerLog) Close() error {
	l.log.Close()
	return l.meter.Close()
}

// FixedPrompts are the texts of the fixed set that answers are compared on; see
// package prompts.
func FixedPrompts() []string {
	var out []string
	for _, p := range prompts.All() {
		out = append(out, p.Text)
	}
	return out
}
