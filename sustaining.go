package tandem

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tandemrun/tandem/engine"
	"github.com/tandemrun/tandem/power"
	"github.com/tandemrun/tandem/sampler"
	"github.com/tandemrun/tandem/sustain"
)

type (
	// A SustainWindow is what one time of a [Model.Sustain] gave.
	SustainWindow = sustain.Window
	// A SustainVerdict says whether the speed was kept; see package sustain.
	SustainVerdict = sustain.Verdict
)

// A Sustain says for how long to decode.
type Sustain struct {
	Options Options
	Time    time.Duration
	// Window is the time of one figure; 0 is 30 s, or an eighth of Time if that is
	// less, so that there are enough for a verdict.
	Window time.Duration
	// Ready, if not nil, is called when the model is loaded, and Each with each
	// window; an error of Each ends the run.
	Ready func(*Engine)
	Each  func(SustainWindow) error
}

const (
	sustainWindow = 30 * time.Second
	// sustainTokens is how many tokens are decoded behind the prompt before it
	// begins anew: with a longer context each would take longer.
	sustainTokens = 128
	sustainEvery  = time.Second // between samples of the machine
)

// SustainWindowOf is the window of a [Sustain] of some length that does not say.
func SustainWindowOf(length time.Duration) time.Duration { return min(sustainWindow, length/8) }

// Sustain decodes one stream without end and reports speed, temperature,
// frequency and watts, and whether the machine kept its speed. A cancelled
// context ends it early: windows so far are judged then, with the context's
// error.
func (m *Model) Sustain(ctx context.Context, s Sustain) (windows []SustainWindow, v SustainVerdict, err error) {
	if s.Window == 0 {
		s.Window = SustainWindowOf(s.Time)
	}
	if s.Window < 0 || s.Time < s.Window {
		return nil, v, fmt.Errorf("%v in windows of %v: there must be room for one", s.Time, s.Window)
	}
	prompt, err := m.someTokens()
	if err != nil {
		return nil, v, err
	}
	e, err := m.Open(ctx, s.Options)
	if err != nil {
		return nil, v, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	if len(prompt)+2 > e.Context() {
		return nil, v, fmt.Errorf("a context of %d positions is too short to decode in; at least %d are needed", e.Context(), len(prompt)+2)
	}
	if s.Ready != nil {
		s.Ready(e)
	}
	x, err := e.NewStream(ctx)
	if err != nil {
		return nil, v, err
	}
	defer x.Close()
	generate := func(max int, emit func(engine.Token) bool) error {
		x.s.Return(0)
		_, err := x.s.Generate(ctx, engine.Generation{Prompt: prompt, Max: max, Picker: sampler.New(Sampling{})}, emit)
		return err
	}
	if err := generate(16, func(engine.Token) bool { return true }); err != nil { // to warm up
		return nil, v, err
	}
	meter := power.Open(ctx, power.Options{Interval: sustainEvery})
	defer func() { err = errors.Join(err, meter.Close()) }()
	begin := time.Now()
	c := sustain.NewCollector(begin, s.Window, meter.Sample(begin))
	next, end := begin.Add(min(sustainEvery, s.Window)), begin.Add(s.Time)
	var failed error
	sample := func(now time.Time) {
		next = now.Add(min(sustainEvery, s.Window))
		var duty *float64
		if e.duty != nil {
			duty = new(e.duty.share())
		}
		if c.Sample(meter.Sample(now), duty) && s.Each != nil {
			failed = s.Each(c.Done[len(c.Done)-1])
		}
	}
	token := func(engine.Token) bool {
		c.Token()
		now := time.Now()
		if !now.Before(next) || c.Due(now) {
			sample(now)
		}
		return failed == nil && now.Before(end)
	}
	for err == nil && failed == nil && time.Now().Before(end) {
		err = generate(sustainTokens, token)
	}
	if now := time.Now(); err == nil && failed == nil && c.Due(now) {
		sample(now) // the last token came just before the end
	}
	return c.Done, sustain.Judge(c.Done), errors.Join(err, failed)
}
