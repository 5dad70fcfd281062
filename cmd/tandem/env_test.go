package main

import (
	"strings"
	"testing"

	"github.com/tandemrun/tandem"
)

// The seeds' names stand for --place, and the flag wins.
func TestPlacement(t *testing.T) {
	for _, test := range []struct {
		flag, units, split, chunk string
		want                      string // placement, or part of the error if it begins with !
	}{
		{"", "", "", "", ""},
		{"", "", "0", "chunk2", ""},
		{"", "cpu:0", "", "", "cpu:0"},
		{"", "all", "", "", ""},
		{"c1=cpu:1", "cpu:0", "", "", "c1=cpu:1"},
		{"cpu:0", "", "1", "", "cpu:0"},
		{"", "", "1", "", "!--place c3=cpu:1"},
		{"", "all", "1", "chunk2", "!--place c2=cpu:1"},
		{"", "cpu:0", "1", "", "!exclude each other"},
		{"", "", "yes", "", "!COMPUTE_UNIT_SPLIT=yes"},
		{"", "", "1", "c2", "!COMPUTE_UNIT_SPLIT_CHUNK=c2"},
		{"", "", "1", "chunk0", "!COMPUTE_UNIT_SPLIT_CHUNK=chunk0"},
	} {
		t.Setenv(envUnits, test.units)
		t.Setenv(envSplit, test.split)
		t.Setenv(envSplitChunk, test.chunk)
		got, err := placement(test.flag)
		if part, fails := strings.CutPrefix(test.want, "!"); fails {
			if h, e := tandem.Units(); e == nil && strings.Contains(part, "--place") {
				if _, e := secondUnit(h, 3); e == nil {
					continue // this machine has a GPU
				}
			}
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%+v: %q, %v", test, got, err)
			}
			continue
		}
		if err != nil || got != test.want {
			t.Errorf("%+v: %q, %v", test, got, err)
		}
	}
}

func TestSecondUnit(t *testing.T) {
	cpu := tandem.UnitInfo{Name: "cpu", Usable: true}
	for _, test := range []struct {
		units []tandem.UnitInfo
		want  string
		err   string
	}{
		{[]tandem.UnitInfo{cpu}, "", "no GPU"},
		{[]tandem.UnitInfo{cpu, {Name: "gpu", Why: "no driver"}}, "", "no driver"},
		{[]tandem.UnitInfo{cpu, {Name: "gpu:0", Why: "no driver"}, {Name: "gpu:1", Usable: true}}, "gpu:1", ""},
	} {
		got, err := secondUnit(tandem.Host{Units: test.units}, 2)
		if got != test.want || (err != nil) != (test.err != "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%+v: %q, %v", test, got, err)
		}
	}
}

// The names reach the command: units of all chunks, and the scheduling class.
func TestEnvironment(t *testing.T) {
	t.Setenv(envUnits, "cpu:0")
	var a answer
	decode(t, succeed(t, "", "run", "--json", "-n", "2", "Hello"), &a)
	for _, c := range a.Chunks {
		if c.Unit != "cpu:0" {
			t.Errorf("chunk %s is on %s", c.Name, c.Unit)
		}
	}
	t.Setenv("LLM_DECODE_QOS", "fast")
	if status, _, err := command(t, "", "run", "Hello"); status != 1 || !strings.Contains(err, `--qos: "fast"`) {
		t.Errorf("status %d: %s", status, err)
	}
}
