package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/tandemrun/tandem"
)

type batchCmd struct {
	modelFlags
	maxFlags
	layoutFlags
	samplingFlags
	planFlags
	Streams *int   `placeholder:"N" help:"Prompts answered at once. Default: as --plan FILE says, or 4."`
	JSON    bool   `name:"json" help:"Print the summary as a JSON object to stdout instead of a line to stderr."`
	In      string `arg:"" name:"IN.jsonl" help:"File with a prompt on each line."`
	Out     string `arg:"" name:"OUT.jsonl" help:"File for the answers. If it has some already, only the others are made."`
}

// Help is shown by tandem batch --help.
func (batchCmd) Help() string {
	return `Examples:

    echo '{"prompt":"Hello"}' > in.jsonl
    tandem batch in.jsonl out.jsonl
    tandem batch -m model.gguf --streams 8 -n 200 --json in.jsonl out.jsonl
    tandem batch -m model.gguf --streams 8 --plan auto in.jsonl out.jsonl

A line of the input is a JSON object with prompt, or with messages, a list of
{role, content}. It may have id, system, raw, max_tokens, seed and temperature.
A line of the output has the number of the line it answers as index, and id,
text, tokens, end_reason and error. Answers come as they are finished.

The command can be killed at any moment and started again: it goes on where it
was, and no prompt is answered twice. Ctrl-C keeps what is finished. The exit
status is 1 if an answer is an error.`
}

// batchSummary is a summary in JSON output.
type batchSummary struct {
	Prompts      int     `json:"prompts"`
	Before       int     `json:"answered_before"`
	Answered     int     `json:"answered"`
	Errors       int     `json:"errors"`
	Left         int     `json:"left"`
	Streams      int     `json:"streams"`
	PromptTokens int     `json:"prompt_tokens"`
	Reused       int     `json:"reused_tokens"`
	Tokens       int     `json:"tokens"`
	Load         float64 `json:"load_s"`
	Elapsed      float64 `json:"elapsed_s"`
	Rate         float64 `json:"tok_s"`
	Chunks       []chunk `json:"chunks"`
}

// Run answers a file of prompts.
func (b *batchCmd) Run(c *console) (err error) {
	if b.Streams != nil && *b.Streams < 1 {
		return fmt.Errorf("--streams %d: it must be at least 1", *b.Streams)
	}
	if err := errors.Join(b.check(), b.samplingFlags.options().Check()); err != nil {
		return err
	}
	o, err := b.layoutFlags.options()
	if err != nil {
		return err
	}
	ctx, stop := c.context()
	defer stop()
	begin := time.Now()
	m, err := b.load()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	used, o, err := b.plan(ctx, c, m, o)
	if err != nil {
		return cause(ctx, err)
	}
	loading, count := c.progress(), c.counter()
	o.Progress = loading.update
	s := batchSummary{Chunks: []chunk{}}
	sum, err := m.Batch(ctx, tandem.Batch{
		Input: b.In, Output: b.Out, Options: o, MaxTokens: b.Max, Sampling: b.samplingFlags.options(),
		Loaded: func(e *tandem.Engine) {
			loading.clear()
			s.Load = time.Since(begin).Seconds()
			s.Chunks = chunksOf(e)
		},
		Progress: count.update,
	})
	loading.clear()
	count.clear()
	err = cause(ctx, needsText(m, err))
	if err != nil && !errors.Is(err, errInterrupted) {
		return err
	}
	return errors.Join(b.summarise(c, s, sum), c.checkPlan(used), err, b.refused(ctx, sum))
}

// plan lays the model out by the plan of the flags, if there is one. It has
// streams at once; fewer can be asked for.
func (b *batchCmd) plan(ctx context.Context, c *console, m *tandem.Model, o tandem.Options) (*tandem.UsedPlan, tandem.Options, error) {
	streams := batchStreams
	if b.Streams != nil {
		streams = *b.Streams
	}
	u, o, err := c.lay(ctx, m, b.layoutFlags.planned(b.Plan), o, streams)
	if err != nil || u == nil {
		o.Streams = streams
		return nil, o, err
	}
	o.Streams = u.Streams()
	if b.Streams != nil {
		o.Streams = min(o.Streams, streams)
	}
	o.Observe = func(r tandem.Record) { u.Add([]tandem.Record{r}) }
	return u, o, nil
}

// batchStreams is how many prompts are answered at once where nothing says so.
const batchStreams = 4

// refused is the error of a batch in which prompts have one.
func (b *batchCmd) refused(ctx context.Context, sum tandem.BatchSummary) error {
	if sum.Errors == 0 || sum.Left() > 0 && ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("%s: %d of %d prompts could not be answered; their lines have an error", b.Out, sum.Errors, sum.Prompts)
}

func (b *batchCmd) summarise(c *console, s batchSummary, sum tandem.BatchSummary) error {
	s.Prompts, s.Before, s.Answered, s.Errors, s.Left = sum.Prompts, sum.Before, sum.Answered, sum.Errors, sum.Left()
	s.Streams, s.PromptTokens, s.Reused, s.Tokens = sum.Streams, sum.PromptTokens, sum.Reused, sum.Tokens
	s.Elapsed, s.Rate = sum.Elapsed.Seconds(), tokenRate(sum)
	if b.JSON {
		return c.json(s)
	}
	line := fmt.Sprintf("%d prompts: %d answered before, %d now, %d left, %d errors", s.Prompts, s.Before, s.Answered, s.Left, s.Errors)
	if s.Streams > 0 {
		line += fmt.Sprintf("; %d new tokens in %.1f s, %.1f tok/s over %d streams", s.Tokens, s.Elapsed, s.Rate, s.Streams)
	}
	if s.Left > 0 {
		line += "; the same command goes on from here"
	}
	_, err := fmt.Fprintln(c.err, line)
	return err
}

// tokenRate is new tokens a second, all streams together.
func tokenRate(sum tandem.BatchSummary) float64 {
	if sum.Elapsed <= 0 {
		return 0
	}
	return float64(sum.Tokens) / sum.Elapsed.Seconds()
}

// counter shows on a terminal how many prompts are answered.
type counter struct {
	w     io.Writer // nil: silent
	shown time.Time
}

func (c *console) counter() *counter {
	if isTerminal(c.err) {
		return &counter{w: c.err}
	}
	return &counter{}
}

func (n *counter) update(sum tandem.BatchSummary) {
	now := time.Now()
	if n.w == nil || now.Sub(n.shown) < progressEvery {
		return
	}
	n.shown = now
	fmt.Fprintf(n.w, "\r%d of %d prompts, %d errors, %.1f tok/s\x1b[K", sum.Before+sum.Answered, sum.Prompts, sum.Errors, tokenRate(sum))
}

// clear takes the line away again.
func (n *counter) clear() {
	if n.w != nil && !n.shown.IsZero() {
		fmt.Fprint(n.w, "\r\x1b[K")
	}
}
