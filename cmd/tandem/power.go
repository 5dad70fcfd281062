package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/tandemrun/tandem"
)

type powerCmd struct {
	Interval time.Duration `default:"1s" placeholder:"TIME" help:"Time between samples, such as 500ms. Default: 1s."`
	Idle     time.Duration `default:"3s" placeholder:"TIME" help:"Sample the machine at rest for so long before; 0s for not at all. Default: 3s."`
	Output   string        `short:"o" placeholder:"FILE.csv" help:"Write the samples as CSV."`
	Device   string        `placeholder:"PROFILE" help:"Estimate what is not measured from this device profile's watts and the busy times of the command's units, if it is tandem."`
	JSON     bool          `name:"json" help:"Print one JSON object to stdout; the command's own output goes to stderr."`
	Command  []string      `arg:"" name:"COMMAND" passthrough:"" help:"The command and its arguments, behind --."`
}

// Help is shown by tandem power --help.
func (powerCmd) Help() string {
	return `Examples:

    tandem power -- tandem run -m model.gguf -n 200 "Tell me a story."
    tandem power --interval 500ms -o watts.csv -- make test
    tandem power --json -- tandem bench -m model.gguf 2> bench.txt

Watts are of the whole machine, not of the command alone: 'above idle' subtracts
what it drew before. Each figure is measured, estimated or unavailable, and says
which and why. Sources: RAPL, hwmon, batteries, NVIDIA's NVML; powermetrics (as
root) or macmon on macOS. docs/power.md says what each covers.

The summary goes to stderr. The exit status is that of the command; 127 if it is
not found and 126 if it cannot be run.`
}

// powerOutput is the JSON output of tandem power.
type powerOutput struct {
	Command    []string `json:"command"`
	ExitStatus int      `json:"exit_status"`
	Interval   float64  `json:"interval_s"`
	tandem.PowerReport
	// Tokens are those whose logits were computed, if the command was tandem.
	Tokens             *int     `json:"tokens,omitempty"`
	JoulesToken        *float64 `json:"joules_per_token,omitempty"`
	JoulesTokenAbove   *float64 `json:"joules_per_token_above_idle,omitempty"`
	JoulesTokenUnknown string   `json:"joules_per_token_unavailable,omitempty"`
}

// maxInterval is shorter than it takes any energy counter to begin again twice.
const maxInterval = time.Minute

// Run runs the command and measures.
func (p *powerCmd) Run(c *console) (err error) {
	command := p.Command
	if len(command) > 0 && command[0] == "--" {
		command = command[1:]
	}
	switch {
	case len(command) == 0:
		return errors.New("there is no command to run; give it behind --, as in tandem power -- tandem run Hello")
	case p.Interval < 10*time.Millisecond || p.Interval > maxInterval:
		return fmt.Errorf("--interval %v: it must be from 10ms to %v", p.Interval, maxInterval)
	case p.Idle < 0:
		return fmt.Errorf("--idle %v: it must be 0s or more", p.Idle)
	}
	path, err := exec.LookPath(command[0])
	if err != nil {
		status := 126
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
			status = 127
		}
		return &statusError{status, fmt.Errorf("%s: %w", command[0], err)}
	}
	o := tandem.PowerRun{Interval: p.Interval, Idle: p.Idle}
	if p.Output != "" {
		f, err := os.Create(p.Output)
		if err != nil {
			return fmt.Errorf("-o: %w", err)
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		o.CSV = f
	}
	folder, err := os.MkdirTemp("", "tandem-power")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	usage := filepath.Join(folder, "usage")

	x := exec.Command(path, command[1:]...)
	x.Args[0] = command[0]
	x.Env = append(os.Environ(), envUsage+"="+usage)
	x.Stdin, x.Stdout, x.Stderr = c.in, c.out, c.err
	if p.JSON {
		x.Stdout = c.err
	}
	ctx, stop := c.context()
	defer stop()
	var failed error
	report, err := tandem.MeasurePower(ctx, o, func() error {
		failed = c.runCommand(x)
		return nil
	})
	if err = cause(ctx, err); err != nil {
		return err
	}
	status, err := statusOf(failed)
	if err != nil {
		return &statusError{126, fmt.Errorf("%s: %w", command[0], err)}
	}
	out := powerOutput{Command: command, ExitStatus: status, Interval: p.Interval.Seconds(), PowerReport: report}
	if err := out.count(usage, p.Device); err != nil {
		return err
	}
	if p.JSON {
		err = c.json(out)
	} else {
		err = out.print(c.err)
	}
	if err == nil && status != 0 {
		return &statusError{status: status}
	}
	return err
}

// runCommand runs a command to its end. An interrupt at the terminal reaches it
// directly; other signals that end this process are passed on.
func (c *console) runCommand(x *exec.Cmd) error {
	if err := x.Start(); err != nil {
		return err
	}
	signals := make(chan os.Signal, 1)
	wanted := []os.Signal{syscall.SIGTERM}
	if !isTerminal(c.in) {
		wanted = append(wanted, os.Interrupt)
	}
	signal.Notify(signals, wanted...)
	defer signal.Stop(signals)
	done := make(chan error, 1)
	go func() { done <- x.Wait() }()
	for {
		select {
		case s := <-signals:
			_ = x.Process.Signal(s)
		case err := <-done:
			return err
		}
	}
}

// statusOf is the status that a command ended with, as shells have it: 128 and
// the number of the signal that ended it. An error is one of starting it.
func statusOf(err error) (int, error) {
	var ended *exec.ExitError
	switch {
	case err == nil:
		return 0, nil
	case !errors.As(err, &ended):
		return 0, err
	case ended.ExitCode() >= 0:
		return ended.ExitCode(), nil
	}
	if s, ok := ended.Sys().(interface{ Signal() syscall.Signal }); ok {
		return 128 + int(s.Signal()), nil
	}
	return 1, nil
}

// count fills in tokens and what follows from them, and estimates.
func (out *powerOutput) count(usage, device string) error {
	lines, err := readUsage(usage)
	if err != nil {
		return err
	}
	var engines []tandem.Usage
	tokens := 0
	for _, l := range lines {
		engines = append(engines, l.Engines...)
		for _, e := range l.Engines {
			tokens += e.Tokens
		}
	}
	if device != "" {
		if len(engines) == 0 {
			return errors.New("--device: the command did not say how long its units were busy; only tandem's own commands do")
		}
		if err := tandem.EstimatePower(&out.PowerSummary, device, engines); err != nil {
			return fmt.Errorf("--device: %w", err)
		}
	}
	if len(engines) == 0 {
		out.JoulesTokenUnknown = "the command told of no tokens; only tandem's own commands do"
		return nil
	}
	out.Tokens = &tokens
	all := out.Parts["combined"]
	if tokens == 0 || all.Joules == nil {
		out.JoulesTokenUnknown = "the joules are unavailable"
		if tokens == 0 {
			out.JoulesTokenUnknown = "there were no tokens"
		}
		return nil
	}
	out.JoulesToken = new(*all.Joules / float64(tokens))
	if all.AboveIdle != nil {
		out.JoulesTokenAbove = new(*all.AboveIdle / float64(tokens))
	}
	return nil
}

// print writes the summary for a person.
func (out *powerOutput) print(to io.Writer) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	at := "idle not sampled"
	if out.IdleSeconds > 0 {
		at = fmt.Sprintf("idle sampled for %.1f s before", out.IdleSeconds)
	}
	fmt.Fprintf(w, "%.3g s, %d samples, %s\n", out.Seconds, out.Samples, at)
	fmt.Fprintln(w, "part\twatts\tidle\tjoules\tabove idle\thow it is known")
	number := func(x *float64, unit string) string {
		if x == nil {
			return "unavailable"
		}
		return fmt.Sprintf("%.2f %s", *x, unit)
	}
	for _, part := range tandem.PowerParts() {
		f := out.Parts[part]
		if f.Basis == tandem.PowerUnavailable {
			fmt.Fprintf(w, "%s\tunavailable\t\t\t\t%s\n", part, f.Why)
			continue
		}
		how := fmt.Sprintf("%s: %s", f.Basis, f.Source)
		if f.Covered != nil && *f.Covered < 0.995 {
			how += fmt.Sprintf(" (over %.0f %% of the time)", 100**f.Covered)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", part, number(f.Watts, "W"), number(f.IdleWatts, "W"), number(f.Joules, "J"), number(f.AboveIdle, "J"), how)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	var err error
	switch {
	case out.JoulesToken != nil:
		above := ""
		if out.JoulesTokenAbove != nil {
			above = fmt.Sprintf(", %.4g above idle", *out.JoulesTokenAbove)
		}
		_, err = fmt.Fprintf(to, "%d tokens: %.4g joules a token, loading and prompts included%s (%s)\n",
			*out.Tokens, *out.JoulesToken, above, out.Parts["combined"].Basis)
	case out.Tokens != nil:
		_, err = fmt.Fprintf(to, "%d tokens: joules a token unavailable: %s\n", *out.Tokens, out.JoulesTokenUnknown)
	}
	return err
}
