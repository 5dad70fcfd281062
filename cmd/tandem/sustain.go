package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/tandemrun/tandem"
)

type sustainCmd struct {
	modelFlags
	layoutFlags
	Minutes float64       `default:"10" placeholder:"N" help:"For how long. Default: 10."`
	Window  time.Duration `placeholder:"TIME" help:"Time of one figure. Default: 30s, or an eighth of the time if that is less."`
	JSON    bool          `name:"json" help:"Print one JSON object at the end instead of lines as they come."`
}

// Help is shown by tandem sustain --help.
func (sustainCmd) Help() string {
	return `Examples:

    tandem sustain -m model.gguf
    tandem sustain -m model.gguf --minutes 30 --duty 80%
    tandem sustain --minutes 2 --json

Decodes one stream and prints tok/s, temperature, thermal state, frequency and
watts of each window, as far as the system tells them. The machine has slowed
down from the first window on that, like the next, is below 90 % of the first
ones'. With evidence of heat that is called throttling, otherwise the cause is
unknown. docs/sustain.md has the rule, and that of --duty.`
}

// sustainOutput is the JSON output.
type sustainOutput struct {
	Model   string  `json:"model"`
	Seconds float64 `json:"seconds"`
	Window  float64 `json:"window_s"`
	Duty    string  `json:"duty,omitempty"`
	tandem.SustainVerdict
	Windows []tandem.SustainWindow `json:"windows"`
	Chunks  []chunk                `json:"chunks"`
}

// maxMinutes bounds a run to a week.
const maxMinutes = 7 * 24 * 60

// Run decodes and judges.
func (s *sustainCmd) Run(c *console) (err error) {
	if !(s.Minutes > 0 && s.Minutes <= maxMinutes) {
		return fmt.Errorf("--minutes %g: it must be above 0 and at most %d", s.Minutes, maxMinutes)
	}
	length := time.Duration(s.Minutes * float64(time.Minute))
	if s.Window == 0 {
		s.Window = max(tandem.SustainWindowOf(length), min(100*time.Millisecond, length))
	}
	if s.Window < 100*time.Millisecond || s.Window > length {
		return fmt.Errorf("--window %v: it must be from 100ms to the whole time, %v", s.Window, length)
	}
	o, err := s.options()
	if err != nil {
		return err
	}
	ctx, stop := c.context()
	defer stop()
	m, err := s.load()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	loading := c.progress()
	o.Progress = loading.update
	out := sustainOutput{Model: cmp.Or(s.Model, embedded), Seconds: length.Seconds(), Window: s.Window.Seconds(), Duty: s.Duty}
	run := tandem.Sustain{Options: o, Time: length, Window: s.Window, Ready: func(e *tandem.Engine) {
		loading.clear()
		out.Chunks = chunksOf(e)
	}}
	if !s.JSON {
		fmt.Fprintln(c.out, "     at     tok/s       °C  state            MHz  throttles      W   duty")
		run.Each = func(w tandem.SustainWindow) error { return printWindow(c.out, w) }
	}
	out.Windows, out.SustainVerdict, err = m.Sustain(ctx, run)
	loading.clear()
	err = cause(ctx, err)
	if err != nil && !errors.Is(err, errInterrupted) {
		return err
	}
	if s.JSON {
		return errors.Join(err, c.json(out))
	}
	return errors.Join(err, printVerdict(c.out, out.SustainVerdict))
}

// printWindow writes a line of the table. What is not known is a dash.
func printWindow(to io.Writer, w tandem.SustainWindow) error {
	number := func(x *float64, scale float64, digits int) string {
		if x == nil {
			return "-"
		}
		return fmt.Sprintf("%.*f", digits, *x*scale)
	}
	throttles := "-"
	if w.Throttles != nil {
		throttles = fmt.Sprint(*w.Throttles)
	}
	_, err := fmt.Fprintf(to, "%6.1fs %9.2f %8s  %-10s %9s %10s %6s %6s\n", w.Begin, w.Rate, number(w.Celsius, 1, 1),
		cmp.Or(w.Pressure, "-"), number(w.MHz, 1, 0), throttles, number(w.Watts, 1, 1), number(w.Duty, 100, 0))
	return err
}

func printVerdict(to io.Writer, v tandem.SustainVerdict) error {
	line := v.Verdict
	if v.From != nil {
		line += fmt.Sprintf(" from %s on: %.2f instead of %.2f tok/s",
			time.Duration(math.Round(*v.From))*time.Second, *v.Rate, v.Reference)
	}
	_, err := fmt.Fprintf(to, "%s (%s)\n", line, v.Why)
	return err
}
