package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tandemrun/tandem"
)

type runCmd struct {
	modelFlags
	maxFlags
	layoutFlags
	samplingFlags
	planFlags
	Raw     bool          `help:"Continue the prompt as it is, without the chat template. Control tokens in it are read as such."`
	System  string        `placeholder:"TEXT" help:"System message."`
	Profile bool          `help:"Print what decode steps take to stderr, at step 1 and each 10th (LLM_PROFILE_EVERY_STEP=1: each)."`
	Trace   string        `placeholder:"FILE" help:"Write what ran when on which unit: FILE.json is a Chrome trace for ui.perfetto.dev, FILE.svg a picture."`
	Trial   time.Duration `hidden:"" help:"Warm up, answer again and again for so long, and only then as the other flags say; for tandem ab."`
	JSON    bool          `name:"json" help:"Print one JSON object instead of the text."`
	Prompt  string        `arg:"" help:"The prompt, or - to read it from stdin."`
}

// Help is shown by tandem run --help.
func (runCmd) Help() string {
	return `Examples:

    tandem run "Hello"
    tandem run -m model.gguf -n 200 --temp 0.7 --seed 1 "Write a limerick."
    tandem run --split 3,5,7 --place c1=cpu:0,c3=cpu:1 --profile "Hello"
    tandem run --place c1=cpu:0,c3=cpu:1 --trace out.svg "Hello"
    tandem run --json - < prompt.txt

The last line break of a prompt from stdin is left out, except with --raw.`
}

// Run answers one prompt.
func (r *runCmd) Run(c *console) (err error) {
	if r.Raw && r.System != "" {
		return errors.New("--system needs the chat template, which --raw leaves out")
	}
	if err := errors.Join(r.check(), r.samplingFlags.options().Check()); err != nil {
		return err
	}
	var timeline tandem.Trace
	if r.Trace != "" {
		if err := tandem.CheckTraceFile(r.Trace); err != nil {
			return fmt.Errorf("--trace: %w", err)
		}
		r.observe = timeline.Observe
	}
	text, err := c.text(r.Prompt)
	if err != nil {
		return err
	}
	if r.Prompt == "-" && !r.Raw {
		text = strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
	}
	ctx, stop := c.context()
	defer stop()
	var prompt []int32
	s, err := c.prepare(ctx, r.modelFlags, r.layoutFlags.planned(r.Plan), func(m *tandem.Model) (err error) {
		prompt, err = r.tokens(m, text)
		return needsText(m, err)
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.fits(prompt); err != nil {
		return err
	}

	g := tandem.Generation{MaxTokens: r.Max, Sampling: r.samplingFlags.options()}
	var profile *profiler
	if r.Profile {
		fmt.Fprint(c.err, s.loads())
		profile = s.profiler(c.printProfile)
	}
	var failed error
	g.Emit = func(p tandem.Piece) bool {
		if !r.JSON {
			_, failed = io.WriteString(c.out, p.Text)
		}
		if profile != nil {
			profile.add(p)
		}
		s.watch(p)
		return failed == nil
	}
	if r.Trial > 0 {
		if err := s.rehearse(ctx, prompt, g, r.Trial); err != nil {
			return cause(ctx, err)
		}
	}
	result, err := s.stream.Generate(ctx, prompt, g)
	if r.Trace != "" {
		defer func() { err = errors.Join(err, c.writeTrace(r.Trace, &timeline, s.engine)) }()
	}
	if err = cause(ctx, err); err != nil && !errors.Is(err, errInterrupted) {
		return err
	}
	if failed != nil {
		return fmt.Errorf("writing the answer: %w", failed)
	}
	defer func() { err = errors.Join(err, c.checkPlan(s.plan)) }()
	if r.JSON {
		return errors.Join(err, c.jsonLine(s.answer(result)))
	}
	fmt.Fprintln(c.out)
	if r.Profile || isTerminal(c.err) {
		fmt.Fprintln(c.err, summary(result))
	}
	return err
}

// writeTrace writes what an engine did, and tells a person in a line.
func (c *console) writeTrace(path string, t *tandem.Trace, e *tandem.Engine) error {
	x, err := t.Timeline(e)
	if err == nil {
		err = tandem.WriteTimeline(path, x)
	}
	if err != nil {
		return fmt.Errorf("--trace: %w", err)
	}
	if isTerminal(c.err) {
		fmt.Fprintf(c.err, "%s: %s\n", path, x.Line())
	}
	return nil
}

func (r *runCmd) tokens(m *tandem.Model, text string) ([]int32, error) {
	if r.Raw {
		return m.Tokenize(text, true, true)
	}
	var messages []tandem.Message
	if r.System != "" {
		messages = append(messages, tandem.Message{Role: "system", Content: r.System})
	}
	return m.Prompt(append(messages, tandem.Message{Role: "user", Content: text}))
}
