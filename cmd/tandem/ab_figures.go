package main

import (
	"time"

	"github.com/tandemrun/tandem"
)

// abRow is one figure of a comparison.
type abRow = tandem.ComparisonRow

type sequence = tandem.Sequence

// measuredSequences are those of a trial that count: sequences that decoded, and
// those whose time to the first token is taken. What warmed up is left out.
func measuredSequences(of string, all []sequence) (decoded, prompts []sequence) {
	if len(all) == 0 {
		return nil, nil
	}
	switch of {
	case "run":
		return all[1:], all[1:]
	case "bench":
		// Of each stream the last that decoded, and of all the last prompt alone.
		newest := map[int]int{}
		for i, s := range all {
			switch {
			case s.Tokens > 1:
				newest[s.Stream] = i
			case s.Prompt > 1:
				prompts = all[i : i+1]
			}
		}
		for i, s := range all {
			if at, ok := newest[s.Stream]; ok && at == i {
				decoded = append(decoded, s)
			}
		}
		return decoded, prompts
	}
	return all, all
}

// figures are the figures of sequences.
type figures struct {
	from, to time.Time // of all
	tokens   int       // in that time
	rate     float64   // tokens a second behind the first ones; of streams at once, added up
	between  []time.Duration
	first    []time.Duration
	inside   time.Duration
	overlap  bool // several were at work at once
}

func newFigures(decoded, prompts []sequence) *figures {
	f := &figures{}
	rates := 0.0
	for i, s := range decoded {
		f.overlap = f.overlap || i > 0 && s.Submitted.Before(f.to)
		f.tokens += s.Tokens
		f.inside += s.Inside
		f.between = append(f.between, s.Between...)
		if sum := total(s.Between); sum > 0 {
			rates += float64(len(s.Between)) / sum.Seconds()
		}
		if f.from.IsZero() || s.Submitted.Before(f.from) {
			f.from = s.Submitted
		}
		if s.Last.After(f.to) {
			f.to = s.Last
		}
	}
	f.rate = rates
	if sum := total(f.between); !f.overlap && sum > 0 {
		f.rate = float64(len(f.between)) / sum.Seconds()
	}
	for _, s := range prompts {
		if s.First > 0 {
			f.first = append(f.first, s.First)
		}
	}
	return f
}

// aggregate takes all tokens over all of the time as the rate, prompts included.
func (f *figures) aggregate() {
	if d := f.to.Sub(f.from); d > 0 {
		f.rate = float64(f.tokens) / d.Seconds()
	}
}

func total(all []time.Duration) time.Duration {
	var sum time.Duration
	for _, d := range all {
		sum += d
	}
	return sum
}

// put adds what is known to values.
func (f *figures) put(values map[string]float64) {
	ms := func(d time.Duration) float64 { return d.Seconds() * 1e3 }
	if f.rate > 0 {
		values["tok_s"] = f.rate
	}
	if len(f.first) > 0 {
		values["ttft"] = ms(tandem.Percentile(f.first, 0.5))
	}
	if len(f.between) == 0 {
		return
	}
	for name, p := range map[string]float64{"itl_p50": 0.50, "itl_p90": 0.90, "itl_p99": 0.99} {
		values[name] = ms(tandem.Percentile(f.between, p))
	}
	// With several streams a step also waits for the others', which is no work of
	// the host.
	if sum := total(f.between); !f.overlap && sum > 0 {
		values["cpu_active"] = max(0, 1-f.inside.Seconds()/sum.Seconds())
	}
}
