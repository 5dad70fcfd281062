// Package batch answers a file of prompts into a file of answers, several at
// once, so that a run can be ended at any moment and started again.
//
// The input has a prompt on each line (see [Request]), the output an answer on
// each (see [Answer]), as they are finished. The output is all there is to
// know of a run: [Open] reads it back, cuts off a last line that was not
// written to its end, and [Job.Run] answers what has no line yet.
//
// # Promises
//
// Every prompt has exactly one line of output at the end, whenever the process
// was killed before. A line is one write; each second and at the end of a run
// what is written is flushed to the disk, so a machine that loses its power
// repeats a second's answers at most. Nothing of a prompt is kept unless all of
// it is done.
//
// The form of every line of the input is checked before the first is answered.
// A changed input, other settings, an output that is no output, and a second
// process on the same output are errors, before anything is written.
//
// The memory needed is that of the longest lines and 8 bytes for each line of
// the input. A Job is used by one goroutine at a time.
//
// # Not here
//
// What a prompt is to a model: an [Answerer] knows. There is one for each
// stream, and a Job uses each from one goroutine.
package batch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// An Answerer answers one prompt at a time.
type Answerer interface {
	// Answer returns the whole answer. An error that is a [*Refusal] becomes
	// the prompt's line in the output; any other ends the run and leaves the
	// prompt to the next one.
	Answer(ctx context.Context, q Request) (Answer, error)
}

// A Refusal is an error that lies in the prompt: the next run would have it
// again.
type Refusal struct{ Err error }

func (r *Refusal) Error() string { return r.Err.Error() }

// Unwrap returns what is wrong with the prompt.
func (r *Refusal) Unwrap() error { return r.Err }

// An Answer is what an Answerer makes of a prompt.
type Answer struct {
	Text         string
	PromptTokens int
	Reused       int // of them, found in the stream's caches
	Tokens       int // new ones
	End          string
	Prefill      time.Duration // to the first token
	Decode       time.Duration // after it
}

// Config says what to answer.
type Config struct {
	Input, Output string // paths of two regular files; the second may be missing
	// Settings names all that answers depend on beside the input. A run goes on
	// only with the same.
	Settings string
}

// A Summary counts what a run has done so far.
type Summary struct {
	Prompts  int // of the input
	Before   int // answered by earlier runs
	Answered int // by this one, refused ones included
	Errors   int // answers of all runs that are errors
	Streams  int // of this run
	// The tokens are those of this run.
	PromptTokens, Reused, Tokens int
	Elapsed                      time.Duration // of Run
}

// Left is the number of prompts without an answer.
func (s Summary) Left() int { return s.Prompts - s.Before - s.Answered }

// A Job is an input with an output that is locked against other processes.
type Job struct {
	in  *input
	out *output
	sum Summary
}

// Open checks the input, locks the output, and brings it to the end of its last
// whole line.
func Open(ctx context.Context, c Config) (*Job, error) {
	in, err := openInput(ctx, c.Input)
	if err != nil {
		return nil, err
	}
	j := &Job{in: in}
	j.sum.Prompts = in.prompts
	if j.out, err = openOutput(ctx, c, in); err != nil {
		return nil, errors.Join(err, in.close())
	}
	j.sum.Before, j.sum.Errors = j.out.answers, j.out.errors
	return j, nil
}

// Close frees the output for other processes.
func (j *Job) Close() error { return errors.Join(j.in.close(), j.out.close()) }

// Summary tells what has been done.
func (j *Job) Summary() Summary { return j.sum }

// Run answers what has no answer yet, as many prompts at once as there are
// streams, taken in the order of the input; each, if not nil, is called after
// each line is written. A Job runs once.
//
// When ctx is done, or at the first error, no other prompt is begun and what
// runs is cancelled; answers that are finished are written. The error is the
// cause.
func (j *Job) Run(ctx context.Context, streams []Answerer, each func(Summary)) (Summary, error) {
	if len(streams) == 0 && j.sum.Left() > 0 {
		return j.sum, errors.New("answering prompts: there is no stream")
	}
	j.sum.Streams = len(streams)
	begin := time.Now()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	records := make(chan record, len(streams)) // no stream waits for the disk
	var working sync.WaitGroup
	for _, s := range streams {
		working.Go(func() {
			if err := j.work(ctx, s, records); err != nil {
				cancel(err)
			}
		})
	}
	go func() {
		working.Wait()
		close(records)
	}()
	failed := j.write(records, cancel, func() {
		j.sum.Elapsed = time.Since(begin)
		if each != nil {
			each(j.sum)
		}
	})
	j.sum.Elapsed = time.Since(begin)
	switch {
	case failed != nil:
		return j.sum, failed
	case j.sum.Left() > 0 && ctx.Err() != nil:
		return j.sum, context.Cause(ctx)
	case j.sum.Left() > 0:
		return j.sum, j.in.changed("it has become shorter")
	}
	return j.sum, nil
}

// flushEvery is how much work a loss of power can cost.
const flushEvery = time.Second

// write writes records until there are no more; its error cancels the streams.
func (j *Job) write(records <-chan record, cancel context.CancelCauseFunc, wrote func()) error {
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	var failed error
	fail := func(err error) {
		if failed == nil && err != nil {
			failed = err
			cancel(err)
		}
	}
	for {
		select {
		case <-tick.C:
			fail(j.out.flush())
		case r, ok := <-records:
			if !ok {
				fail(j.out.flush())
				return failed
			}
			if failed != nil {
				continue // so that no stream waits
			}
			if err := j.out.add(r); err != nil {
				fail(err)
				continue
			}
			j.sum.add(r)
			wrote()
		}
	}
}

// work answers prompts until there are no more.
func (j *Job) work(ctx context.Context, s Answerer, records chan<- record) error {
	for ctx.Err() == nil {
		q, hash, err := j.in.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		a, err := s.Answer(ctx, q)
		var refusal *Refusal
		if err != nil && !errors.As(err, &refusal) {
			return fmt.Errorf("%s: line %d: %w", j.in.name, q.Line, err)
		}
		r := record{
			Line: q.Line, ID: q.ID, Text: a.Text, PromptTokens: a.PromptTokens, Reused: a.Reused, Tokens: a.Tokens, End: a.End,
			Prefill: a.Prefill.Seconds(), Decode: a.Decode.Seconds(), Input: hexadecimal(hash), Settings: j.out.settings,
		}
		if refusal != nil {
			text := refusal.Error()
			r.End, r.Error = endError, &text
		}
		records <- r
	}
	return nil
}

func (s *Summary) add(r record) {
	s.Answered++
	s.PromptTokens += r.PromptTokens
	s.Reused += r.Reused
	s.Tokens += r.Tokens
	if r.Error != nil {
		s.Errors++
	}
}
