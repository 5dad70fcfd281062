package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/tandemrun/tandem"
)

type spikeCmd struct {
	modelFlags
	deviceFlags
	layoutFlags
	Move    string `placeholder:"cN=UNIT" help:"The chunk that moves, and where to; several with commas. Default: c3=cpu:1."`
	Streams []int  `default:"1,2,4" placeholder:"N" help:"Numbers of streams that decode at once. Default: 1,2,4."`
	Tokens  int    `short:"n" default:"64" placeholder:"N" help:"Tokens of each stream in a trial. Default: 64."`
	Trials  int    `default:"4" placeholder:"N" help:"Trials of each schedule, in turn. Default: 4, one for each kind of prompt."`
	Probes  int    `default:"10" placeholder:"N" help:"Trials of the overlap probe. Default: 10."`
	Output  string `short:"o" placeholder:"DIR" help:"Folder for report.md, report.html, raw.jsonl and trace.json. Default: no files."`
	JSON    bool   `name:"json" help:"Print the summary as one JSON object."`
}

// Help is shown by tandem spike --help.
func (spikeCmd) Help() string {
	return `Measures each chunk on each unit, whether two units overlap, decoding by one and by several streams before and
after the move, and a prompt on one unit and flowing through two. Each figure is predicted before it is measured, and
tokens are compared. The verdict is against the best single unit.

Without -m, times are those of a synthetic Gemma 4 made in memory, and tokens are compared on the embedded model too;
everything is on cpu:0 (--place) and c3 moves to cpu:1. It takes about a minute.

Examples:

    tandem spike
    tandem spike -o report
    tandem spike -m model.gguf --move c3=gpu --streams 1,2 -n 32 --json
    tandem spike --device mac-studio`
}

// Run measures and reports.
func (s *spikeCmd) Run(c *console) error {
	for _, n := range []struct {
		flag       string
		n, atLeast int
	}{{"-n", s.Tokens, 2}, {"--trials", s.Trials, 1}, {"--probes", s.Probes, 1}} {
		if n.n < n.atLeast {
			return fmt.Errorf("%s %d: it must be at least %d", n.flag, n.n, n.atLeast)
		}
	}
	for _, n := range s.Streams {
		if n < 1 {
			return fmt.Errorf("--streams %d: it must be at least 1", n)
		}
	}
	if s.Merge != nil || s.Ctx != nil || s.Block != nil {
		return errors.New("--merge, --ctx and --block cannot be given: both rules of merging are measured, and the rest follows from it")
	}
	o, err := s.options()
	if err != nil {
		return err
	}
	if s.Place == "" {
		o.Place = ""
	}
	ctx, stop := c.context()
	defer stop()
	p := c.stages()
	r, err := s.measure(ctx, tandem.Spike{Layout: o, Move: s.Move, Streams: s.Streams, Tokens: s.Tokens, Trials: s.Trials, Probes: s.Probes, Stage: p.show})
	p.clear()
	if err != nil {
		return cause(ctx, err)
	}
	r.Version = "tandem " + revision()
	if s.Output != "" {
		if err := r.WriteFiles(s.Output); err != nil {
			return err
		}
		if isTerminal(c.err) {
			fmt.Fprintf(c.err, "wrote %s to %s\n", strings.Join(tandem.SpikeFiles(), ", "), filepath.Clean(s.Output))
		}
	}
	if s.JSON {
		return c.json(r.Summary())
	}
	return r.WriteText(c.out)
}

func (s *spikeCmd) measure(ctx context.Context, what tandem.Spike) (*tandem.SpikeReport, error) {
	if d, ok, err := s.device(s.modelFlags); ok || err != nil {
		if err != nil {
			return nil, err
		}
		return d.Spike(ctx, what)
	}
	if s.Model == "" {
		return tandem.SpikeDefault(ctx, what)
	}
	m, err := s.load()
	if err != nil {
		return nil, err
	}
	r, err := m.Spike(ctx, what)
	return r, errors.Join(err, m.Close())
}

// stages shows what is being done, on a terminal.
type stages struct {
	c     *console
	on    bool
	begin time.Time
	mu    sync.Mutex
}

func (c *console) stages() *stages {
	return &stages{c: c, on: isTerminal(c.err), begin: time.Now()}
}

func (s *stages) show(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.on {
		fmt.Fprintf(s.c.err, "\r\x1b[K%3.0f s  %.100s", time.Since(s.begin).Seconds(), what)
	}
}

func (s *stages) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.on {
		fmt.Fprint(s.c.err, "\r\x1b[K")
	}
}
