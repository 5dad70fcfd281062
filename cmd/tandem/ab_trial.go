package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tandemrun/tandem"
)

// trialRunner runs trials: processes of this program.
type trialRunner struct {
	k      *abCmd
	log    *tandem.PowerLog
	sides  [2]trialSide
	path   string // of this program
	folder string // for what trials write
	count  int
}

type trialSide struct{ flags, env []string }

// begin prepares for trials; end is called when it succeeded.
func (t *trialRunner) begin() (err error) {
	if t.path, err = os.Executable(); err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	if t.folder, err = os.MkdirTemp("", "tandem-ab"); err != nil {
		return err
	}
	if t.k.Of != "batch" {
		return nil
	}
	var in bytes.Buffer
	for _, text := range tandem.FixedPrompts() {
		line, err := json.Marshal(map[string]string{"prompt": text})
		if err != nil {
			return err
		}
		in.Write(append(line, '\n'))
	}
	return os.WriteFile(t.file("in"), in.Bytes(), 0o600)
}

func (t *trialRunner) end() { _ = os.RemoveAll(t.folder) }

// file is a file of the trial in hand; that of the input is the same for all.
func (t *trialRunner) file(name string) string {
	if name != "in" {
		name += strconv.Itoa(t.count)
	}
	return filepath.Join(t.folder, name)
}

// trialTime is for how long a trial of run repeats its answer, at least once:
// what others do is known to some 10 ms for each CPU.
const trialTime = 500 * time.Millisecond

// args is the command line of a trial.
func (t *trialRunner) args(flags []string) []string {
	k := t.k
	var args []string
	n := []string{"-n", strconv.Itoa(k.N)}
	switch k.Of {
	case "run":
		args = append([]string{"run", "--json", "--trial", trialTime.String()}, n...)
	case "batch":
		args = append([]string{"batch", "--json"}, n...)
	case "bench":
		args = []string{"bench", "-o", "json", "-r", "1"}
		// The flags' own numbers would be further tests.
		if !hasFlag(flags, "-n", "--n-gen") {
			args = append(args, n...)
		}
		if !hasFlag(flags, "-p", "--n-prompt") {
			args = append(args, "-p", "128")
		}
	}
	if k.Model != "" {
		args = append(args, "-m", k.Model)
	}
	args = append(args, flags...)
	switch k.Of {
	case "run":
		args = append(args, "--", k.Prompt)
	case "batch":
		args = append(args, "--", t.file("in"), t.file("out"))
	}
	return args
}

func hasFlag(flags []string, names ...string) bool {
	for _, f := range flags {
		for _, n := range names {
			if f == n || strings.HasPrefix(f, n+"=") {
				return true
			}
		}
	}
	return false
}

// run runs a trial of a side.
func (t *trialRunner) run(ctx context.Context, side tandem.Side) (trial tandem.Trial, err error) {
	t.count++
	s := t.sides[side]
	args := t.args(s.flags)
	x := exec.CommandContext(ctx, t.path, args...)
	x.WaitDelay = 5 * time.Second
	x.Env = append(append(os.Environ(), s.env...), envUsage+"="+t.file("usage"))
	var out, problems bytes.Buffer
	x.Stdout, x.Stderr = &out, &problems
	if err := x.Run(); err != nil {
		if ctx.Err() != nil {
			return trial, context.Cause(ctx)
		}
		why := strings.TrimPrefix(strings.TrimSpace(problems.String()), "tandem: ")
		return trial, fmt.Errorf("tandem %s: %w: %s", strings.Join(args, " "), err, why)
	}
	lines, err := readUsage(t.file("usage"))
	if err != nil {
		return trial, err
	}
	if len(lines) != 1 || len(lines[0].Engines) != 1 {
		return trial, fmt.Errorf("tandem %s: it ran no engine, or several", strings.Join(args, " "))
	}
	u := lines[0].Engines[0]
	trial.Values = t.figures(u)
	trial.Others = u.Others
	if len(trial.Values) == 0 {
		return trial, fmt.Errorf("tandem %s: it decoded nothing that could be measured", strings.Join(args, " "))
	}
	return trial, t.answers(&trial, out.Bytes())
}

// figures are those of a trial.
func (t *trialRunner) figures(u tandem.Usage) map[string]float64 {
	values := map[string]float64{}
	decoded, prompts := measuredSequences(t.k.Of, u.Sequences)
	f := newFigures(decoded, prompts)
	if t.k.Of == "batch" {
		f.aggregate()
	}
	f.put(values)
	if joules, ok := t.log.Joules(f.from, f.to); ok && f.tokens > 0 {
		values["joules_per_token"] = joules / float64(f.tokens)
	}
	return values
}

// answers adds what was generated.
func (t *trialRunner) answers(trial *tandem.Trial, stdout []byte) error {
	switch t.k.Of {
	case "run":
		var a answer
		if err := json.Unmarshal(stdout, &a); err != nil {
			return fmt.Errorf("the output of run: %w", err)
		}
		trial.Tokens = a.Tokens
	case "batch":
		text, err := batchTexts(t.file("out"))
		if err != nil {
			return err
		}
		trial.Text = text
	}
	return nil
}

// batchTexts are the answers of a batch in the order of their prompts.
func batchTexts(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	texts := map[int]string{}
	for d := json.NewDecoder(f); d.More(); {
		var line struct {
			Index *int   `json:"index"`
			Text  string `json:"text"`
		}
		if err := d.Decode(&line); err != nil {
			return "", fmt.Errorf("the output of batch: %w", err)
		}
		if line.Index != nil {
			texts[*line.Index] = line.Text
		}
	}
	if len(texts) == 0 {
		return "", errors.New("the output of batch has no answers")
	}
	var out strings.Builder
	for i := 0; len(texts) > 0; i++ {
		if text, ok := texts[i]; ok {
			fmt.Fprintf(&out, "%d: %s\n", i, text)
			delete(texts, i)
		}
	}
	return out.String(), nil
}
