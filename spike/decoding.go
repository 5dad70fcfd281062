package spike

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/tandemrun/tandem/agreement"
	"github.com/tandemrun/tandem/engine"
	"github.com/tandemrun/tandem/trace"
)

// A Result is a schedule of decoding, predicted and measured. Figures are medians
// of the runs kept, each of which has a prediction of its own.
type Result struct {
	Role      string  `json:"role"` // base, moved, or single: everything on another unit
	Placement string  `json:"placement"`
	Streams   int     `json:"streams"`
	Merge     int     `json:"merge"` // as --merge: 1 keeps streams apart, 0 joins those that wait for a chunk
	Merged    int     `json:"most_streams_in_a_task"`
	Predicted Rate    `json:"predicted_tok_s"`
	Measured  Rate    `json:"measured_tok_s"`
	Ratio     float64 `json:"measured_to_predicted"` // of each run's steady rates; 0 if none is predicted
	// FromChunks is predicted from what was measured of the chunks, with no look at
	// the schedule.
	FromChunks       Rate    `json:"predicted_from_chunks_tok_s"`
	Cold             float64 `json:"cold_ms"` // the first token since the chunks were loaded, apart from all else
	PredictedOverlap float64 `json:"predicted_overlap"`
	Overlap          float64 `json:"realised_overlap"`
	// TokensEqual and LogitsEqual compare every stream of every trial with a
	// single stream on the base placement: the tokens, and the bits of all logits.
	TokensEqual bool        `json:"tokens_equal"`
	LogitsEqual bool        `json:"logits_equal"`
	Divergence  *Divergence `json:"first_divergence"`
	Trials      int         `json:"trials"`
	Kept        int         `json:"kept"`
	// The steady rate of a turn is the median of its windows that were kept;
	// without any it is that of the whole turn.
	Windows     int `json:"windows"`
	WindowsKept int `json:"windows_kept"`
	// CopyMS is what copies between units took for a token, and the bytes what
	// was copied and what was taken without a copy.
	CopyMS      float64 `json:"copy_ms_per_token"`
	CopiedBytes int64   `json:"copied_bytes_per_token"`
	PassedBytes int64   `json:"passed_bytes_per_token"`

	place []string
	runs  []run
	picks [][]int // by run and stream: which prompt
	line  *trace.Timeline
}

// base, moved and single are roles.
const (
	roleBase   = "base"
	roleMoved  = "moved"
	roleSingle = "single"
)

// schedules lists what is measured: the base and the moved placement and the
// fastest other single unit, by every number of streams, kept apart and merged
// where that may differ.
func (s *session) schedules() []*Result {
	var out []*Result
	add := func(role string, place []string, merges ...int) {
		streams := s.o.Streams
		if streams[0] > 1 && role == roleBase {
			streams = append([]int{1}, streams...) // others are compared with it
		}
		for _, n := range streams {
			for _, merge := range merges {
				if n == 1 && merge != 1 || n > 1 && merge == 1 && role == roleSingle {
					continue // one unit does better with streams merged
				}
				out = append(out, &Result{Role: role, Placement: Placement(place), Streams: n, Merge: merge, place: place})
			}
		}
	}
	add(roleBase, s.o.Base, 1, 0)
	if s.o.Still == "" {
		add(roleMoved, s.o.Moved, 1, 0)
	}
	if other := s.single(); other != "" {
		add(roleSingle, slices.Repeat([]string{other}, len(s.o.Base)), 1, 0)
	}
	return out
}

// single is the unit on which a step takes least, of those that can run all
// chunks; "" if that is where they are.
func (s *session) single() string {
	best, least := "", 0.0
	for _, u := range s.lab.Units() {
		var sum float64
		for i := range s.o.Base {
			c, ok := s.costs.Chunks[i].On[u.Name]
			if !ok {
				sum = 0
				break
			}
			sum += c.Rows[0].Time.Seconds()
		}
		if sum > 0 && (best == "" || sum < least) {
			best, least = u.Name, sum
		}
	}
	if best == "" || slices.Equal(s.o.Base, slices.Repeat([]string{best}, len(s.o.Base))) || slices.Equal(s.o.Moved, slices.Repeat([]string{best}, len(s.o.Base))) {
		return ""
	}
	return best
}

// decoding measures every schedule in turn. Right before each turn it is
// predicted.
func (s *session) decoding(ctx context.Context) error {
	all := s.schedules()
	for _, r := range all {
		p, err := s.flow(s.costs, r)
		if err != nil {
			return fmt.Errorf("predicting %s: %w", r.title(), err)
		}
		r.FromChunks = Rate{p.Aggregate, p.Steady}
		s.raw.add(Line{Kind: "prediction", What: "from chunks", Placement: r.Placement, Streams: r.Streams, Merge: &r.Merge, Rate: &r.FromChunks, Overlap: &p.Overlap})
	}
	want, err := s.turns(ctx, &s.rigs, all, s.o.Trials)
	if err != nil {
		return err
	}
	for _, r := range all {
		r.compare(s.lab, want)
		r.finish()
		s.r.Results = append(s.r.Results, *r)
	}
	s.pictures()
	return s.difference(ctx)
}

// turns runs every schedule in turn, some times, and returns the tokens of a
// single stream on the base placement for each prompt. In turn t streams begin
// with prompt t, so that in four turns a single stream has had all kinds.
func (s *session) turns(ctx context.Context, rigs *rigs, all []*Result, trials int) ([][]mark, error) {
	ps := rigs.lab.Prompts()
	want := make([][]mark, len(ps))
	for t := range trials {
		for _, r := range all {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			real := rigs.lab == s.lab && !s.known
			if real && t >= slowTurns && r.took() > slowTime {
				continue
			}
			x, err := rigs.get(ctx, r.place, longestPrompt)
			if err != nil {
				return nil, err
			}
			r.Cold = ms(x.cold)
			s.stage("%s: decoding, turn %d of %d: %s", rigs.lab.Name(), t+1, trials, r.title())
			var prompts []Prompt
			var picks []int
			for i := range r.Streams {
				k := (t + i) % len(ps)
				picks, prompts = append(picks, k), append(prompts, ps[k])
			}
			if err := s.turn(ctx, &turn{r: r, x: x, number: t, prompts: prompts, picks: picks}, rigs.lab, real); err != nil {
				return nil, fmt.Errorf("%s: %w", r.title(), err)
			}
			if one := r.runs[len(r.runs)-1]; r.Role == roleBase && r.Streams == 1 && want[picks[0]] == nil {
				want[picks[0]] = one.marks[0]
			}
		}
	}
	x, err := rigs.get(ctx, s.o.Base, longestPrompt)
	if err != nil {
		return nil, err
	}
	for i, p := range ps { // those that no turn had
		if want[i] != nil {
			continue
		}
		one, err := s.decode(ctx, x, []Prompt{p}, s.o.Tokens, 1)
		if err != nil {
			return nil, err
		}
		want[i] = one.marks[0]
	}
	return want, nil
}

// title names a schedule for a person.
func (r *Result) title() string {
	out := fmt.Sprintf("%s, %s", r.Placement, streams(r.Streams))
	if r.Streams > 1 {
		out += ", " + r.Rule()
	}
	return out
}

func streams(n int) string {
	if n == 1 {
		return "1 stream"
	}
	return fmt.Sprintf("%d streams", n)
}

// Rule is what happens to streams that wait for the same chunk.
func (r *Result) Rule() string {
	switch {
	case r.Streams == 1:
		return ""
	case r.Merge == 1:
		return "apart"
	}
	return "merged"
}

// compare compares all streams of all runs with what a single stream gave.
func (r *Result) compare(l Lab, want [][]mark) {
	r.TokensEqual, r.LogitsEqual = true, true
	for t, one := range r.runs {
		for i, got := range one.marks {
			k := r.picks[t][i]
			at, bits := compare(want[k], got)
			r.LogitsEqual = r.LogitsEqual && bits
			if at < 0 {
				continue
			}
			r.TokensEqual = false
			if r.Divergence == nil || at < r.Divergence.Position {
				a, b := want[k][at].token, got[at].token
				r.Divergence = &Divergence{trace.StreamName(i), l.Prompts()[k].Name, at, a, b, l.Token(a), l.Token(b)}
			}
		}
	}
}

// finish takes the medians of the runs kept.
func (r *Result) finish() {
	for i := range r.runs {
		one := &r.runs[i]
		kept := one.settle()
		r.Windows, r.WindowsKept = r.Windows+len(one.windows), r.WindowsKept+kept
		r.Merged = max(r.Merged, one.merged)
	}
	turns := slices.DeleteFunc(slices.Clone(r.runs), func(x run) bool { return !x.quiet || !x.forecast.quiet })
	r.Trials, r.Kept = len(r.runs), len(turns)
	if len(turns) == 0 { // the less disturbed half
		share := func(x run) float64 { return (x.delay + x.stalled).Seconds() / x.wall.Seconds() }
		turns = slices.SortedFunc(slices.Values(r.runs), func(a, b run) int { return cmp.Compare(share(a), share(b)) })
		turns = turns[:(len(turns)+1)/2]
	}
	of := func(f func(x run) float64) float64 {
		var all []float64
		for _, x := range turns {
			all = append(all, f(x))
		}
		return median(all)
	}
	r.Measured = Rate{of(func(x run) float64 { return x.rate.Aggregate }), of(func(x run) float64 { return x.rate.Steady })}
	r.Predicted = Rate{of(func(x run) float64 { return x.forecast.rate.Aggregate }), of(func(x run) float64 { return x.forecast.rate.Steady })}
	r.Overlap, r.PredictedOverlap = of(func(x run) float64 { return x.overlap }), of(func(x run) float64 { return x.forecast.overlap })
	if r.Predicted.Steady > 0 {
		r.Ratio = of(func(x run) float64 { return x.rate.Steady / x.forecast.rate.Steady })
	}
	turns = slices.SortedFunc(slices.Values(turns), func(a, b run) int { return cmp.Compare(a.rate.Steady, b.rate.Steady) })
	one := turns[(len(turns)-1)/2]
	tokens := 0
	for _, m := range one.marks {
		tokens += len(m)
	}
	r.CopyMS = ms(one.copies) / float64(tokens)
	r.CopiedBytes, r.PassedBytes = one.copied/int64(tokens), one.passed/int64(tokens)
	r.line = one.line
}

// settle makes the steady rate of a run that of its undisturbed windows, if they
// are at least half of all: then the run counts as undisturbed. It returns how
// many they are.
func (x *run) settle() int {
	var rates []float64
	for _, w := range x.windows {
		if w.quiet {
			rates = append(rates, w.rate)
		}
	}
	if n := len(rates); n > 0 {
		x.rate.Steady = median(rates)
		x.quiet = x.quiet || x.alone && 2*n >= len(x.windows)
	}
	return len(rates)
}

// pictures keeps the timelines that the report shows: one stream and several on
// the moved placement, or on the base if nothing moves.
func (s *session) pictures() {
	role := roleMoved
	if s.o.Still != "" {
		role = roleBase
	}
	for i := range s.r.Results {
		r := &s.r.Results[i]
		if r.Role == role && r.Merge == 1 && (r.Streams == 1 || r.Streams == s.o.Streams[min(1, len(s.o.Streams)-1)]) {
			r.line.Name = r.title()
			s.r.Timelines = append(s.r.Timelines, r.line)
		}
	}
}

// A Difference is how far the logits of two placements are apart whose units are
// of different kinds. The moved one is given the tokens of the base.
type Difference struct {
	Positions int     `json:"positions"`
	Largest   float64 `json:"largest_logit_difference"`
	Top       float64 `json:"top1_agreement"`
	MeanKL    float64 `json:"mean_kl"`
}

// difference compares the logits of both placements, where their units may give
// other bits.
func (s *session) difference(ctx context.Context) error {
	kind := map[string]string{}
	for _, u := range s.lab.Units() {
		kind[u.Name] = u.Kind
	}
	differ := false
	for i := range s.o.Base {
		differ = differ || kind[s.o.Base[i]] != kind[s.o.Moved[i]]
	}
	if !differ {
		return nil
	}
	if s.lab.Most() < 2 {
		return nil // the engines do not fit beside each other
	}
	s.stage("logits of %s beside those of %s", Placement(s.o.Moved), Placement(s.o.Base))
	var tally agreement.Tally
	for _, p := range s.lab.Prompts() {
		if err := s.follow(ctx, p, &tally); err != nil {
			return fmt.Errorf("prompt %s: %w", p.Name, err)
		}
	}
	s.r.Difference = &Difference{tally.Positions, tally.Difference, tally.TopShare(), tally.MeanKL()}
	return nil
}

// follow answers a prompt on the base placement and evaluates the same tokens on
// the moved one.
func (s *session) follow(ctx context.Context, p Prompt, tally *agreement.Tally) error {
	var two [2]follower
	for i, place := range [][]string{s.o.Base, s.o.Moved} {
		x, err := s.rigs.get(ctx, place, longestPrompt)
		if err != nil {
			return err
		}
		st, err := x.e.Stream(ctx)
		if err != nil {
			return err
		}
		defer st.Close()
		two[i].s = st
	}
	never := func(int32) bool { return false }
	_, err := agreement.Follow(ctx, &two[0], &two[1], p.Tokens, s.o.Tokens, never, func(x agreement.Position) error {
		tally.Add(x)
		return nil
	})
	return err
}

// follower is a stream that gives the logits of its last token.
type follower struct {
	s   *engine.Stream
	row []float32
}

func (f *follower) Next(ctx context.Context, tokens []int32) ([]float32, error) {
	err := f.s.Forward(ctx, tokens, engine.Last, func(_ int, logits []float32) error {
		f.row = append(f.row[:0], logits...)
		return nil
	})
	return f.row, err
}
