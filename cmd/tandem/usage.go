package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/tandemrun/tandem"
)

// envUsage names a file to which each command that ran an engine adds a line of
// JSON about what the engine did; see docs/env.md. It is how tandem power and
// tandem ab learn of tokens and busy times of what they run.
const envUsage = "TANDEM_USAGE"

// usageLine is such a line.
type usageLine struct {
	Command string         `json:"command"`
	Engines []tandem.Usage `json:"engines"`
}

// newTally is a tally if the environment asks for one.
func newTally() *tandem.Tally {
	if os.Getenv(envUsage) == "" {
		return nil
	}
	return &tandem.Tally{}
}

// writeUsage adds a command's line to the file that the environment names.
func (c *console) writeUsage(command string) (err error) {
	if c.tally == nil {
		return nil
	}
	line := usageLine{command, c.tally.Usage()}
	if len(line.Engines) == 0 {
		return nil
	}
	data, err := json.Marshal(line)
	if err != nil {
		return fmt.Errorf("%s: %w", envUsage, err)
	}
	f, err := os.OpenFile(os.Getenv(envUsage), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return fmt.Errorf("%s: %w", envUsage, err)
	}
	_, err = f.Write(append(data, '\n')) // in one piece: others may write too
	return errors.Join(err, f.Close())
}

// readUsage reads what commands wrote; none is no error.
func readUsage(path string) ([]usageLine, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []usageLine
	in := bufio.NewReader(f)
	for d := json.NewDecoder(in); d.More(); {
		var x usageLine
		if err := d.Decode(&x); err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", path, len(out)+1, err)
		}
		out = append(out, x)
	}
	return out, nil
}
