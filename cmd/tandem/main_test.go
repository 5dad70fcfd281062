package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// command runs one command line.
func command(t *testing.T, stdin string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	status = run(args, strings.NewReader(stdin), &out, &err)
	return status, out.String(), err.String()
}

// succeed runs a command line that works and prints nothing on stderr.
func succeed(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	status, out, err := command(t, stdin, args...)
	if status != 0 || err != "" {
		t.Fatalf("tandem %q: status %d, stderr %q", args, status, err)
	}
	return out
}

// decode reads exactly one JSON value without unknown fields.
func decode(t *testing.T, text string, v any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	if d.More() {
		t.Fatalf("more than one value in %s", text)
	}
}
