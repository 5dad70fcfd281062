package tandem

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tandemrun/tandem/measure"
	"github.com/tandemrun/tandem/plan"
	"github.com/tandemrun/tandem/unit/sim"
	"github.com/tandemrun/tandem/unit/sim/play"
)

// Planning says what to find a plan for: Streams sequences that come at once,
// each with a prompt of Prompt tokens and Tokens to generate.
type Planning struct {
	Streams int    // 0 is 1
	Prompt  int    // 0 is 512, or what the context has room for
	Tokens  int    // 0 is 64
	Goal    string // one of PlanGoals; "" is decode
	Top     int    // plans to return; 0 is 3
	// Verify runs the best two plans.
	Verify bool

	// The rest is for models on this machine.

	// Units are those that may be used; nil is all of PlanUnits.
	Units []string
	// Chunks is the most chunks of a plan; 0 is 4.
	Chunks int
	// Layout has the settings that a plan does not choose: threads, context, KV
	// type and so on.
	Layout Options
	// Fresh measures again what has been measured before.
	Fresh bool
	// Time is about how long measuring may take, and verifying as long again,
	// beside loading; 0 is a minute.
	Time time.Duration
	// Progress, if not nil, is told what is being measured.
	Progress func(what string)
}

// defaultPlanTime is the Time of a planning that does not say.
const defaultPlanTime = measure.DefaultTime

// PlanGoals are what a plan can be good at: decode (tokens a second of all
// streams together), prefill (the time until all have their first token), mixed
// (the time for both) and energy (joules a token of decoding).
func PlanGoals() []string {
	var out []string
	for _, g := range plan.Goals() {
		out = append(out, string(g))
	}
	return out
}

// Plans are the best plans that were found. As JSON it has only the plans and
// the baseline.
type Plans struct {
	Plans    []Plan `json:"plans"`    // best first
	Baseline Plan   `json:"baseline"` // the best of those that use one unit

	Name string   `json:"-"` // of the model or device
	Work Planning `json:"-"` // with every choice made
	// Losing says of what is nearest to the best plan how much worse it is and
	// why. Chain says what of a step of a single stream can overlap.
	Losing []string `json:"-"`
	Chain  string   `json:"-"`
	// Space says how many plans there are and how the best were found.
	Space string `json:"-"`
	// Notes are what a person should know about the figures, a sentence each.
	Notes []string `json:"-"`
	// Cache is the file with what was measured; "" for a device.
	Cache string `json:"-"`
	// Verified says what Verify ran the plans on: "this machine" or "simulated
	// units"; "" if it did not. Drift is a sentence about how the machine's speed
	// has changed since the costs were measured; "" of simulated units.
	Verified string `json:"-"`
	Drift    string `json:"-"`
}

// A Plan is where the chunks of a model go and what runs at once, with what it
// is predicted to do.
type Plan struct {
	Placement  []string `json:"placement"`  // unit of each chunk
	Boundaries []int    `json:"boundaries"` // first layer of each later chunk; of a device, first chunk
	Streams    int      `json:"streams"`    // at once
	Block      int      `json:"block"`      // most tokens of a prompt in one task
	// PredictedTokS is what all streams decode together in a second, from when
	// they begin to decode together until the last one has its last token.
	PredictedTokS  float64          `json:"predicted_tok_s"`
	PredictedTTFT  float64          `json:"predicted_ttft_ms"` // until the last stream has its first token
	MeasuredTokS   *float64         `json:"measured_tok_s"`    // median of undisturbed trials; null if not measured
	Bytes          map[string]int64 `json:"bytes"`             // by unit; null if not known
	JoulesPerToken *float64         `json:"joules_per_token"`  // an estimate; null if unavailable

	// Merge is as in Options.
	Merge int `json:"-"`
	// Joules says how the joules are known.
	Joules string `json:"-"`
	// Memory has the limit of each unit beside what the plan takes.
	Memory []UnitMemory `json:"-"`
	// SimulatedTokS and MeasuredTTFT are what Verify found beside MeasuredTokS: on
	// simulated units nothing is measured.
	SimulatedTokS *float64 `json:"-"`
	MeasuredTTFT  *float64 `json:"-"`
	// ScaledTokS is what PredictedTokS would be at the speed that the machine had
	// right before the trials; nil if that is not known.
	ScaledTokS *float64 `json:"-"`
	// Trials is how many were run to verify, and Kept how many were undisturbed;
	// if those were fewer than three, the medians are of the quieter half of all.
	Trials, Kept int `json:"-"`

	p *plan.Plan
}

// UnitMemory is what a plan takes of a unit's memory. Available is 0 where that
// is not known.
type UnitMemory struct {
	Unit             string
	Bytes, Available int64
}

// String names the placement as --place does: "c1=cpu:0,c2=cpu:1", or the unit
// of all chunks.
func (p *Plan) String() string {
	if len(p.units()) == 1 {
		return p.Placement[0]
	}
	return placement(p.Placement)
}

func (p *Plan) units() []string {
	var out []string
	for _, name := range p.Placement {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// prepare makes every choice of a planning.
func (p Planning) prepare(room int) (Planning, error) {
	for _, x := range []struct {
		flag string
		n    int
	}{{"--streams", p.Streams}, {"--prompt", p.Prompt}, {"-n", p.Tokens}, {"--top", p.Top}, {"--chunks", p.Chunks}} {
		if x.n < 0 {
			return p, fmt.Errorf("%s %d: it must be at least 1", x.flag, x.n)
		}
	}
	p.Goal = cmp.Or(p.Goal, string(plan.GoalDecode))
	if !slices.Contains(PlanGoals(), p.Goal) {
		return p, fmt.Errorf("--goal %s: it must be %s", p.Goal, strings.Join(PlanGoals(), ", "))
	}
	if p.Time < 0 {
		return p, fmt.Errorf("--time %v: it must be more than 0", p.Time)
	}
	p.Streams, p.Top, p.Chunks = cmp.Or(p.Streams, 1), cmp.Or(p.Top, 3), cmp.Or(p.Chunks, 4)
	p.Tokens = cmp.Or(p.Tokens, min(64, max(room/2, 1)))
	p.Prompt = cmp.Or(p.Prompt, max(min(512, room-p.Tokens), 1))
	if p.Prompt+p.Tokens > room {
		return p, fmt.Errorf("--prompt %d and -n %d need %d positions, but the context has %d", p.Prompt, p.Tokens, p.Prompt+p.Tokens, room)
	}
	return p, nil
}

func (p Planning) work() plan.Work {
	return plan.Work{Streams: p.Streams, Prompt: p.Prompt, Tokens: p.Tokens}
}

// stagger is the time between the begins of streams on this machine: those that
// begin at the very same time, to a microsecond, would be merged from the first
// task on, which is nothing to rely on.
const stagger = 500 * time.Microsecond

// PlanDevice plans for a device that is not at hand, by its profile: the name of
// one that ships, or a file (docs/devices.md). With Verify the best two plans
// are played on simulated units.
func PlanDevice(ctx context.Context, nameOrFile string, o Planning) (Plans, error) {
	profile, err := sim.Find(nameOrFile)
	if err != nil {
		return Plans{}, err
	}
	if o, err = o.prepare(1 << 20); err != nil {
		return Plans{}, err
	}
	problem := plan.Problem{
		Costs: plan.FromProfile(profile), Work: o.work(), Goal: plan.Goal(o.Goal), Top: o.Top, Blocks: blocks(o.Prompt), Gain: 0.001,
	}
	out, err := search(ctx, problem)
	if err != nil {
		return Plans{}, fmt.Errorf("planning for %s: %w", profile.Name, err)
	}
	out.Name, out.Work = profile.Name, o
	out.Notes = deviceNotes(profile)
	if !o.Verify {
		return out, nil
	}
	out.Verified = "simulated units"
	for i := range out.Plans[:min(len(out.Plans), 2)] {
		if err := out.Plans[i].play(ctx, profile, o); err != nil {
			return Plans{}, err
		}
	}
	return out, nil
}

// blocks are the block sizes to try for prompts.
func blocks(prompt int) []int {
	var out []int
	for _, n := range []int{32, 64, 128, 256, 512} {
		if n < prompt {
			out = append(out, n)
		}
	}
	return append(out, max(min(prompt, defaultBlock), 1))
}

// deviceNotes say what a profile leaves open.
func deviceNotes(p *sim.Profile) []string {
	var notes, rows []string
	if p.Source != "" {
		notes = append(notes, "the figures of the device are from its profile: "+p.Source)
	}
	for _, c := range p.Chunks {
		for _, cost := range c.On {
			if cost.RowMS == nil && !slices.Contains(rows, c.Name) {
				rows = append(rows, c.Name)
			}
		}
	}
	if len(rows) > 0 {
		notes = append(notes, fmt.Sprintf("the profile does not say what further rows of a prompt take in %s: each is counted like a step, so prefill is at most as slow as predicted", strings.Join(rows, ", ")))
	}
	return append(notes, "the profile says nothing of memory and of units slowing each other: memory is unavailable, and units are taken not to slow each other")
}

// search finds plans and says in words what was found.
func search(ctx context.Context, p plan.Problem) (Plans, error) {
	f, err := plan.Search(ctx, p)
	if err != nil {
		return Plans{}, err
	}
	var out Plans
	for i := range f.Plans {
		out.Plans = append(out.Plans, planOf(&f.Plans[i]))
	}
	if f.Baseline.Costs != nil {
		out.Baseline = planOf(&f.Baseline)
	}
	how := "all of them were looked at; none is predicted better than the first"
	if !f.Exact {
		how = "too many to look at; boundaries were moved one at a time from equal parts as long as that helped, so there may be a better one"
	}
	if f.Refused > 0 {
		how += fmt.Sprintf("; %d did not fit into memory", f.Refused)
	}
	out.Space = fmt.Sprintf("%d layouts, %d plans with streams, merging and block sizes: %s (%d schedules predicted)", f.Layouts, f.Space, how, f.Predicted)
	best := out.Plans[0].p
	losing, err := p.Alternatives(best)
	if err != nil {
		return Plans{}, err
	}
	for _, a := range losing {
		if len(out.Losing) < 6 {
			out.Losing = append(out.Losing, fmt.Sprintf("%s loses %.0f %% for %s: %s", a.What, 100*a.Loss, streamsText(p.Work.Streams), a.Why))
		}
	}
	out.Chain = fmt.Sprintf("usable overlap of one stream with the first plan: %.2f; %s", best.Decode.Step.Overlap, best.Decode.Step.Why)
	return out, nil
}

func streamsText(n int) string {
	if n == 1 {
		return "one stream"
	}
	return fmt.Sprintf("%d streams", n)
}

// planOf is a plan for people and programs.
func planOf(p *plan.Plan) Plan {
	out := Plan{
		Placement: p.Placement, Boundaries: p.Cuts, Streams: p.Streams, Block: p.Block, Merge: p.Merge,
		PredictedTokS: p.Decode.Aggregate, PredictedTTFT: p.Prefill.TTFT.Seconds() * 1e3,
		JoulesPerToken: p.Energy.Joules, Joules: p.Energy.Basis, p: p,
	}
	if out.Boundaries == nil {
		out.Boundaries = []int{}
	}
	for _, m := range p.Memory {
		if out.Bytes == nil {
			out.Bytes = map[string]int64{}
		}
		out.Bytes[m.Unit] = m.Bytes
		out.Memory = append(out.Memory, UnitMemory{m.Unit, m.Bytes, m.Limit})
	}
	return out
}

// play runs a plan on simulated units.
func (p *Plan) play(ctx context.Context, profile *sim.Profile, o Planning) error {
	on := map[string]string{}
	for i, name := range p.Placement {
		on[profile.Chunks[i].Name] = name
	}
	run := func(prompt, tokens int) (play.Result, error) {
		return play.Run(ctx, play.Config{Profile: profile, Placement: on, Streams: play.Same(o.Streams, prompt, tokens), Slots: p.Streams, Block: p.Block, Merge: p.Merge})
	}
	decode, err := run(1, o.Tokens)
	if err != nil {
		return err
	}
	prompts, err := run(o.Prompt, 1)
	if err != nil {
		return err
	}
	ttft := prompts.Wall.Seconds() * 1e3
	p.SimulatedTokS, p.MeasuredTTFT, p.Trials, p.Kept = &decode.Aggregate, &ttft, 1, 1
	return nil
}
