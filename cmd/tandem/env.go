package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/tandemrun/tandem"
)

// Names of the environment that stand for --place; see docs/env.md.
const (
	envUnits      = "LLM_COMPUTE_UNITS"
	envSplit      = "COMPUTE_UNIT_SPLIT"
	envSplitChunk = "COMPUTE_UNIT_SPLIT_CHUNK"
)

// placement is the value of --place, or what the environment says if the flag
// is not given.
func placement(flag string) (string, error) {
	if flag != "" {
		return flag, nil
	}
	all := os.Getenv(envUnits)
	if all == "all" {
		all = "" // no choice
	}
	switch split := os.Getenv(envSplit); split {
	case "", "0":
		return all, nil
	case "1":
	default:
		return "", fmt.Errorf("%s=%s: it must be 0 or 1", envSplit, split)
	}
	if all != "" {
		return "", fmt.Errorf("%s=%s and %s=1 exclude each other; use --place", envUnits, all, envSplit)
	}
	name := os.Getenv(envSplitChunk)
	if name == "" {
		name = "chunk3"
	}
	digits, ok := strings.CutPrefix(name, "chunk")
	n, err := strconv.Atoi(digits)
	if !ok || err != nil || n < 1 {
		return "", fmt.Errorf("%s=%s: it must be the name of a chunk, such as chunk3", envSplitChunk, name)
	}
	h, err := tandem.Units()
	if err != nil {
		return "", err
	}
	second, err := secondUnit(h, n)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("c%d=%s", n, second), nil
}

// secondUnit is the unit that COMPUTE_UNIT_SPLIT moves a chunk to: the first
// GPU that can be used.
func secondUnit(h tandem.Host, chunk int) (string, error) {
	why := "this build knows no GPU"
	for _, u := range h.Units {
		if kind, _, _ := strings.Cut(u.Name, ":"); kind != "gpu" {
			continue
		}
		if u.Usable {
			return u.Name, nil
		}
		why = u.Why
	}
	return "", fmt.Errorf("%s=1 moves chunk %d to the GPU, and there is none to use (%s); name another unit, as in --place c%d=cpu:1", envSplit, chunk, why, chunk)
}
