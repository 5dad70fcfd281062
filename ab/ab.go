// Package ab compares two settings, called A and B, by trials in turn.
//
// # What is fixed before anything is measured
//
// The order: one pair of trials to warm up, which does not count, then A B A B.
//
// The rule of what is kept: a pair is kept if in neither trial somebody else had
// more than [Disturbed] of the time of its CPUs. Pairs are run until as many are
// kept as were asked for, but at most twice as many. Where the system does not
// tell, all are kept, and the result says so. The rule does not look at figures.
//
// The verdict: on one figure, named before. The two samples of it are compared
// by the Mann-Whitney U test (golang.org/x/perf/benchmath, which assumes nothing
// of how they are distributed), and only p below [Alpha] is a difference. All
// other figures are medians with intervals, and nothing is concluded from them.
//
// A trial has to be a start from nothing, such as a process of its own. Two
// settings that are loaded once each and measured many times differ by where
// their memory happens to lie, and a test of the repetitions would find that.
//
// The package runs nothing: the trials come from a function.
package ab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"golang.org/x/perf/benchmath"
)

const (
	// Disturbed is the share of the time of a trial's CPUs that somebody else may
	// have had for its pair to be kept.
	Disturbed = 0.05
	// Alpha is what p has to be below for a difference.
	Alpha = 0.01
	// Confidence is that of the intervals of medians.
	Confidence = 0.95
	// Fewest is the number of pairs without which p cannot be below Alpha: of five
	// and five values that do not overlap it is 0.008, of four and four 0.03.
	Fewest = 5
)

// A Side is A or B.
type Side int

// The sides.
const (
	A Side = iota
	B
)

func (s Side) String() string { return [...]string{"A", "B"}[s] }

// A Trial is what one run of a side gave.
type Trial struct {
	Values map[string]float64 // figures by name; what is not known is absent
	// Others is the share of the time of its CPUs that somebody else had; nil if
	// that is not known.
	Others *float64
	Tokens []int32 // what was generated; nil if it is not to be compared
	Text   string  // the same, where there are no tokens
}

// Options say what to compare.
type Options struct {
	Pairs   int               // to keep
	Primary string            // the figure that the verdict is about
	Units   map[string]string // of figures, for the rows
	Run     func(context.Context, Side) (Trial, error)
	// Progress, if not nil, is called before each pair with the number of those
	// run and kept so far.
	Progress func(run, kept int)
}

// An Interval is a median and the interval that holds the true one with
// [Confidence]; with few values it is as wide as they lie.
type Interval struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

// A Row is one figure.
type Row struct {
	Name   string   `json:"name"`
	Unit   string   `json:"unit,omitempty"`
	A      Interval `json:"a"`
	B      Interval `json:"b"`
	Change Interval `json:"change"` // of B against A, pair by pair; 0.1 is ten percent more
}

// A Divergence is where the tokens of a pair first differ.
type Divergence struct {
	Pair  int `json:"pair"`  // of those kept, counted from 0
	Index int `json:"index"` // of the token, or of the byte of a text
}

// A Result is what came of it.
type Result struct {
	Primary string `json:"primary"`
	Run     int    `json:"pairs_run"`  // without the one to warm up
	Kept    int    `json:"pairs_kept"` // of them
	// AllKept says that nothing is known of disturbances.
	AllKept bool `json:"disturbance_unknown"`
	// P is nil if there are too few pairs, or none with the primary figure.
	P          *float64 `json:"p,omitempty"`
	Difference bool     `json:"difference"`
	Rows       []Row    `json:"figures"` // the primary first, then by name
	// Equal says whether all pairs kept gave equal tokens; nil if none did give any.
	Equal      *bool       `json:"tokens_equal,omitempty"`
	Divergence *Divergence `json:"first_divergence,omitempty"`
	Notes      []string    `json:"notes,omitempty"`
}

// Compare runs the trials and compares them.
func Compare(ctx context.Context, o Options) (Result, error) {
	if o.Pairs < Fewest {
		return Result{}, fmt.Errorf("%d pairs: with fewer than %d no difference can be found at p below %g", o.Pairs, Fewest, Alpha)
	}
	if o.Primary == "" {
		return Result{}, errors.New("no primary figure is named")
	}
	r := Result{Primary: o.Primary, Rows: []Row{}}
	var kept [2][]Trial
	for i := -1; i < 2*o.Pairs && len(kept[A]) < o.Pairs; i++ {
		if o.Progress != nil && i >= 0 {
			o.Progress(i, len(kept[A]))
		}
		pair, err := runPair(ctx, o)
		if err != nil {
			return r, err
		}
		if i < 0 {
			continue // to warm up
		}
		r.Run++
		quiet, known := pair.quiet()
		r.AllKept = r.AllKept || !known
		if quiet {
			kept[A], kept[B] = append(kept[A], pair[A]), append(kept[B], pair[B])
		}
	}
	r.Kept = len(kept[A])
	r.compare(kept, o.Units)
	return r, nil
}

type pair [2]Trial

func runPair(ctx context.Context, o Options) (p pair, err error) {
	for _, s := range []Side{A, B} {
		if err := context.Cause(ctx); err != nil {
			return p, err
		}
		if p[s], err = o.Run(ctx, s); err != nil {
			return p, fmt.Errorf("side %s: %w", s, err)
		}
	}
	return p, nil
}

// quiet applies the rule.
func (p pair) quiet() (quiet, known bool) {
	quiet, known = true, true
	for _, t := range p {
		known = known && t.Others != nil
		quiet = quiet && (t.Others == nil || *t.Others <= Disturbed)
	}
	return quiet, known
}

// compare makes figures and the verdict of the pairs kept.
func (r *Result) compare(kept [2][]Trial, units map[string]string) {
	r.tokens(kept)
	if r.Kept == 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("none of %d pairs was quiet enough to be kept; compare again when less is going on beside", r.Run))
		return
	}
	names := map[string]bool{}
	for _, t := range append(slices.Clone(kept[A]), kept[B]...) {
		for name := range t.Values {
			names[name] = true
		}
	}
	var order []string
	for name := range names {
		order = append(order, name)
	}
	slices.SortFunc(order, func(a, b string) int {
		switch r.Primary {
		case a:
			return -1
		case b:
			return 1
		}
		return strings.Compare(a, b)
	})
	for _, name := range order {
		var a, b, change []float64
		for i := range kept[A] {
			x, okA := kept[A][i].Values[name]
			y, okB := kept[B][i].Values[name]
			if !okA || !okB {
				continue
			}
			a, b = append(a, x), append(b, y)
			if x != 0 {
				change = append(change, y/x-1)
			}
		}
		if len(a) == 0 {
			continue
		}
		if name == r.Primary {
			r.verdict(a, b)
		}
		r.Rows = append(r.Rows, Row{name, units[name], interval(a), interval(b), interval(change)})
	}
	if r.P == nil {
		why := fmt.Sprintf("%d pairs with %s are too few to find a difference: %d are needed; compare again when less is going on beside", r.Kept, r.Primary, Fewest)
		if !names[r.Primary] {
			why = fmt.Sprintf("%s is unavailable", r.Primary)
		}
		r.Notes = append(r.Notes, why)
	}
}

// verdict tests the primary figure.
func (r *Result) verdict(a, b []float64) {
	if len(a) < Fewest {
		return
	}
	c := benchmath.AssumeNothing.Compare(sample(a), sample(b))
	r.P, r.Difference = new(c.P), c.P < Alpha
}

func sample(values []float64) *benchmath.Sample {
	return benchmath.NewSample(slices.Clone(values), &benchmath.Thresholds{CompareAlpha: Alpha})
}

// interval is the median of values and its interval, which is theirs if they
// are too few for the confidence.
func interval(values []float64) Interval {
	if len(values) == 0 {
		return Interval{}
	}
	s := sample(values)
	x := benchmath.AssumeNothing.Summary(s, Confidence)
	return Interval{x.Center, max(x.Lo, s.Values[0]), min(x.Hi, s.Values[len(s.Values)-1])}
}

// tokens compares what was generated, pair by pair.
func (r *Result) tokens(kept [2][]Trial) {
	for i := range kept[A] {
		a, b := kept[A][i], kept[B][i]
		at := -1
		switch {
		case a.Tokens != nil && b.Tokens != nil:
			at = firstDifference(a.Tokens, b.Tokens)
		case a.Text != "" && b.Text != "":
			at = firstDifference([]byte(a.Text), []byte(b.Text))
		default:
			continue
		}
		if r.Equal == nil {
			r.Equal = new(true)
		}
		if at >= 0 && r.Divergence == nil {
			*r.Equal, r.Divergence = false, &Divergence{i, at}
		}
	}
}

// firstDifference is the index of the first difference; -1 if there is none.
func firstDifference[T comparable](a, b []T) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	if len(a) != len(b) {
		return min(len(a), len(b))
	}
	return -1
}

// Percentile is the value that a share p of the values is not above, by the
// nearest rank; 0 of none. Values are sorted by it.
func Percentile[T cmp.Ordered](values []T, p float64) T {
	var zero T
	if len(values) == 0 {
		return zero
	}
	slices.Sort(values)
	return values[max(0, min(len(values)-1, int(math.Ceil(p*float64(len(values))))-1))]
}
