package tandem

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tandemrun/tandem/engine"
	"github.com/tandemrun/tandem/machine"
	"github.com/tandemrun/tandem/plan"
	"github.com/tandemrun/tandem/probe"
	"github.com/tandemrun/tandem/sampler"
)

// How plans are verified.
const (
	verifyKept   = 5  // undisturbed trials of each plan that are enough
	verifyMost   = 25 // trials of each, if fewer were undisturbed
	verifyFewest = 3  // undisturbed trials for the others not to count
	verifyBase   = 8  // steps of the base before each trial
	verifyWarm   = 32 // tokens of a prompt to warm up, and tokens decoded
)

// A verification runs plans, which take turns.
//
// What costs were measured at is another minute's speed of the machine. So right
// before each trial a few steps of a base are taken on each unit of the plan: the
// whole model as one chunk, whose costs are known. How much longer these take
// now is the drift.
type verification struct {
	o     Planning
	delay machine.DelayMeter
	runs  []*verified
	bases map[string]*verified // by unit; runs of one chunk among them
	begin time.Time
}

// verified is a plan that is being run.
type verified struct {
	plan           *Plan
	engine         *Engine
	streams        []*engine.Stream
	prompts, rates []trial
	base           map[string][]trial // steps of each unit's base before its trials
}

// A trial is what something took, and the share of it in which the units' threads
// waited for a CPU.
type trial struct {
	took   time.Duration
	waited float64
}

// verify runs plans and notes what they do in trials that are kept by the rule
// of package probe, and the prediction at the speed that the machine has now.
// It returns a sentence about that speed. It takes about o.Time beside loading,
// but one trial of each plan is run however long it takes.
func (m *Model) verify(ctx context.Context, plans []*Plan, o Planning, costs *plan.Costs) (drift string, err error) {
	v := &verification{o: o, bases: map[string]*verified{}}
	defer v.delay.Close()
	defer func() { err = errors.Join(err, v.close()) }()
	host, err := machine.Detect()
	if err != nil {
		return "", fmt.Errorf("finding the memory of this machine: %w", err)
	}
	for _, p := range plans {
		r, err := v.open(ctx, m, p)
		if err != nil {
			return "", err
		}
		v.runs = append(v.runs, r)
		if len(p.Placement) == 1 {
			v.bases[p.Placement[0]] = r
		}
	}
	if err := v.openBases(ctx, m, costs, host.Memory.Available); err != nil {
		return "", err
	}
	if err := v.all(ctx); err != nil {
		return "", err
	}
	then, err := baseSteps(costs)
	if err != nil {
		return "", err
	}
	for _, r := range v.runs {
		r.note(v, then)
	}
	return v.drift(then), nil
}

// openBases loads the whole model on each unit that has no base yet, as long as
// there is memory beside the plans.
func (v *verification) openBases(ctx context.Context, m *Model, costs *plan.Costs, available int64) error {
	left := (1 - memoryMargin) * float64(available)
	for _, r := range v.runs {
		left -= float64(r.plan.memory())
	}
	for _, r := range v.runs {
		for _, name := range r.plan.units() {
			if v.bases[name] != nil {
				continue
			}
			// All of a plan on one unit is about as large.
			if left -= float64(r.plan.memory()); available > 0 && left < 0 {
				return nil
			}
			p := Plan{Placement: []string{name}, Boundaries: []int{}, Streams: 1, Block: r.plan.Block}
			b, err := v.open(ctx, m, &p)
			if err != nil {
				return err
			}
			v.bases[name] = b
		}
	}
	return nil
}

// baseSteps are what a step of the whole model took on each unit when the costs
// were measured.
func baseSteps(costs *plan.Costs) (map[string]time.Duration, error) {
	whole, err := costs.Join(nil)
	if err != nil {
		return nil, err
	}
	out := map[string]time.Duration{}
	for name, c := range whole.Chunks[0].On {
		out[name] = c.Rows[0].Time
	}
	return out, nil
}

// memory is what the plan takes in all.
func (p *Plan) memory() int64 {
	var sum int64
	for _, n := range p.Bytes {
		sum += n
	}
	return sum
}

// open loads a plan.
func (v *verification) open(ctx context.Context, m *Model, p *Plan) (*verified, error) {
	v.say("verifying: loading %s", p)
	e, err := m.Open(ctx, p.options(v.o))
	if err != nil {
		return nil, err
	}
	r := &verified{plan: p, engine: e, base: map[string][]trial{}}
	for range p.Streams {
		s, err := e.e.Stream(ctx)
		if err != nil {
			return nil, errors.Join(err, r.close())
		}
		r.streams = append(r.streams, s)
	}
	return r, nil
}

func (v *verification) close() (err error) {
	for _, b := range v.bases {
		if !slices.Contains(v.runs, b) {
			err = errors.Join(err, b.close())
		}
	}
	for _, r := range v.runs {
		err = errors.Join(err, r.close())
	}
	return err
}

func (r *verified) close() error {
	for _, s := range r.streams {
		s.Close()
	}
	return r.engine.Close()
}

// all warms up and takes turns until enough trials were undisturbed, or time is
// up.
func (v *verification) all(ctx context.Context) error {
	v.begin = time.Now()
	v.say("verifying: warming up")
	for _, r := range v.runs {
		n := min(verifyWarm, v.o.Prompt)
		if _, err := v.prompt(ctx, r, n); err != nil {
			return err
		}
		if _, err := v.decode(ctx, r, n, min(verifyWarm, v.o.Tokens)); err != nil {
			return err
		}
	}
	for _, b := range v.bases {
		if slices.Contains(v.runs, b) {
			continue
		}
		if _, err := v.prompt(ctx, b, v.o.Prompt); err != nil {
			return err
		}
	}
	for turn := range verifyMost {
		begin := time.Now()
		v.say("verifying: trial %d, %d of %d undisturbed, %d of about %d s", turn+1, v.quiet(), verifyKept, int(time.Since(v.begin).Seconds()), int(v.time().Seconds()))
		for _, r := range v.runs {
			if err := v.turn(ctx, r); err != nil {
				return err
			}
		}
		if now := time.Now(); v.quiet() >= verifyKept || now.Sub(v.begin)+now.Sub(begin) > v.time() {
			break
		}
	}
	return nil
}

func (v *verification) time() time.Duration { return cmp.Or(v.o.Time, defaultPlanTime) }

// quiet is the number of undisturbed trials of the plan with the fewest.
func (v *verification) quiet() int {
	n := verifyMost
	for _, r := range v.runs {
		_, quiet := middle(r.rates)
		n = min(n, quiet)
	}
	return n
}

// turn is one trial of a plan. The prompt is evaluated again as long as it has
// not taken a quarter of the time.
func (v *verification) turn(ctx context.Context, r *verified) error {
	var spent time.Duration
	for _, t := range r.prompts {
		spent += t.took
	}
	if len(r.prompts) == 0 || spent+spent/time.Duration(len(r.prompts)) < v.time()/time.Duration(4*len(v.runs)) {
		t, err := v.prompt(ctx, r, v.o.Prompt)
		if err != nil {
			return err
		}
		r.prompts = append(r.prompts, t)
	}
	for _, name := range r.plan.units() {
		b := v.bases[name]
		if b == nil {
			continue
		}
		t, err := v.steps(ctx, b.streams[0])
		if err != nil {
			return err
		}
		r.base[name] = append(r.base[name], t)
	}
	t, err := v.decode(ctx, r, v.o.Prompt, v.o.Tokens)
	r.rates = append(r.rates, t)
	return err
}

// steps takes decode steps of a base: one stream, at the depth of the trials.
func (v *verification) steps(ctx context.Context, s *engine.Stream) (t trial, err error) {
	if err := v.back(ctx, s, v.o.Prompt); err != nil {
		return t, err
	}
	n := min(verifyBase, v.o.Tokens)
	t.waited, err = v.watch(func() error {
		for range n {
			if err := s.Forward(ctx, []int32{1}, engine.Last, best); err != nil {
				return err
			}
			for _, r := range s.Records() {
				t.took += r.End.Sub(r.Start)
			}
		}
		return nil
	})
	t.took /= time.Duration(n)
	return t, err
}

// back takes a stream back to the end of its prompt of n tokens, which it
// evaluates again where a sliding window has left it.
func (v *verification) back(ctx context.Context, s *engine.Stream, n int) error {
	if s.Return(n) {
		return nil
	}
	s.Return(0)
	return s.Forward(ctx, madeUp(n), engine.Last, best)
}

// madeUp is a text of n tokens.
func madeUp(n int) []int32 {
	text := make([]int32, n)
	for i := range text {
		text[i] = int32(i%7 + 1)
	}
	return text
}

// prompt lets the streams of a plan evaluate prompts of n tokens at once.
func (v *verification) prompt(ctx context.Context, r *verified, n int) (trial, error) {
	text := madeUp(n)
	return v.each(r, func(s *engine.Stream) error {
		s.Return(0)
		return s.Forward(ctx, text, engine.Last, best)
	})
}

// decode lets them generate so many tokens at once, behind prompts of n tokens.
func (v *verification) decode(ctx context.Context, r *verified, n, tokens int) (trial, error) {
	for _, s := range r.streams {
		if err := v.back(ctx, s, n); err != nil {
			return trial{}, err
		}
	}
	return v.each(r, func(s *engine.Stream) error {
		for i := range tokens {
			if err := s.Forward(ctx, []int32{int32(i%7 + 1)}, engine.Last, best); err != nil {
				return err
			}
		}
		return nil
	})
}

// best does with logits what a greedy stream does.
func best(_ int, logits []float32) error {
	sampler.Best(logits)
	return nil
}

// each lets all streams of a plan do something at once.
func (v *verification) each(r *verified, f func(*engine.Stream) error) (t trial, err error) {
	errs := make([]error, len(r.streams))
	t.waited, err = v.watch(func() error {
		start := time.Now()
		var wg sync.WaitGroup
		for i, s := range r.streams {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * stagger)
				errs[i] = f(s)
			})
		}
		wg.Wait()
		t.took = time.Since(start)
		return errors.Join(errs...)
	})
	return t, err
}

// watch tells the share of f's time in which the units' threads waited for a CPU,
// 0 where the system does not tell.
func (v *verification) watch(f func() error) (float64, error) {
	before, known := v.delay.Read()
	start := time.Now()
	err := f()
	took := time.Since(start)
	after, _ := v.delay.Read()
	if !known {
		return 0, err
	}
	return float64(after-before) / float64(max(took, 1)), err
}

// note writes what was found into the plan. Sequences beyond those at once wait
// for the ones before.
func (r *verified) note(v *verification, then map[string]time.Duration) {
	p, o := r.plan, v.o
	rate, quiet := middle(r.rates)
	first, _ := middle(r.prompts)
	toks := float64(p.Streams*o.Tokens) / rate.Seconds()
	rounds := (o.Streams + p.Streams - 1) / p.Streams
	ttft := (first + time.Duration(rounds-1)*(first+rate)).Seconds() * 1e3
	p.MeasuredTokS, p.MeasuredTTFT, p.Trials, p.Kept = &toks, &ttft, len(r.rates), quiet
	if f := r.slower(then); f > 0 {
		scaled := p.PredictedTokS / f
		p.ScaledTokS = &scaled
	}
}

// slower is how many times as long the plan's steps take as when the costs were
// measured, by the share that each unit has of them; 0 if that is not known.
func (r *verified) slower(then map[string]time.Duration) float64 {
	var sum, all float64
	for _, u := range r.plan.p.Decode.Units {
		now, _ := middle(r.base[u.Name])
		if now == 0 || then[u.Name] == 0 {
			return 0
		}
		busy := u.Busy.Seconds()
		sum += busy * float64(now) / float64(then[u.Name])
		all += busy
	}
	if all == 0 {
		return 0
	}
	return sum / all
}

// drift says how the speed of the machine has changed since costs were measured.
func (v *verification) drift(then map[string]time.Duration) string {
	now := map[string][]trial{}
	for _, r := range v.runs {
		for name, trials := range r.base {
			now[name] = append(now[name], trials...)
		}
	}
	if len(now) == 0 {
		return "how the speed of the machine has changed since the costs were measured is not known: there is no memory for more than the plans"
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(now)) {
		took, _ := middle(now[name])
		parts = append(parts, fmt.Sprintf("%s: %.3g ms, now %.3g ms", name, ms(then[name]), ms(took)))
	}
	return "a step of the whole model when the costs were measured and right before the trials (at this speed: scaled by that): " + strings.Join(parts, "; ")
}

func (v *verification) say(format string, args ...any) {
	if v.o.Progress != nil {
		v.o.Progress(fmt.Sprintf(format, args...))
	}
}

// middle is the median of the trials that are kept by the rule of package probe,
// and how many of all were undisturbed; 0 of none.
func middle(all []trial) (time.Duration, int) {
	if len(all) == 0 {
		return 0, 0
	}
	shares := make([]float64, len(all))
	for i, t := range all {
		shares[i] = t.waited
	}
	kept, quiet := probe.Keep(shares, verifyFewest)
	var took []time.Duration
	for _, i := range kept {
		took = append(took, all[i].took)
	}
	slices.Sort(took)
	return (took[(len(took)-1)/2] + took[len(took)/2]) / 2, quiet
}
