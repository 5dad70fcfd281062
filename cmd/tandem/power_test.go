package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestPowerOfTandem(t *testing.T) {
	file := filepath.Join(t.TempDir(), "w.csv")
	status, out, stderr := command(t, "", "power", "--json", "--idle", "0s", "--interval", "20ms", "-o", file,
		"--", self(t), "run", "--json", "-n", "5", "Tell me a story.")
	if status != 0 {
		t.Fatalf("status %d: %s", status, stderr)
	}
	var got powerOutput
	decode(t, out, &got)
	if got.Tokens == nil || *got.Tokens != 5 || got.Samples < 1 || got.Seconds <= 0 {
		t.Errorf("%s", out)
	}
	// Either there are joules by token, or it says why not.
	if (got.JoulesToken == nil) == (got.JoulesTokenUnknown == "") {
		t.Errorf("%s", out)
	}
	for part, f := range got.Parts {
		if f.Basis == "unavailable" && (f.Watts != nil || f.Joules != nil || f.Why == "") {
			t.Errorf("%s: %+v", part, f)
		}
	}
	var a answer
	if err := json.Unmarshal([]byte(stderr), &a); err != nil || len(a.Tokens) != 5 {
		t.Errorf("the command's output on stderr: %q: %v", stderr, err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	if rows[0] != "ts_sec,cpu_w,gpu_w,ane_w,dram_w,combined_w" || len(rows) != got.Samples+1 {
		t.Errorf("%d samples:\n%s", got.Samples, data)
	}
	row := regexp.MustCompile(`^\d+\.\d{3}(,(\d+\.\d{4})?){5}$`)
	for _, r := range rows[1:] {
		if !row.MatchString(r) {
			t.Errorf("row %q", r)
		}
	}
}

// The watts of a profile and the busy time of the unit make an estimate that is
// called one.
func TestPowerEstimate(t *testing.T) {
	profile := filepath.Join(t.TempDir(), "mine.json")
	err := os.WriteFile(profile, []byte(`{"name": "mine", "hidden": 8,
		"units": [{"name": "cpu", "busy_watts": 30, "idle_watts": 5, "watts": "stated"}],
		"chunks": [{"name": "c1", "on": {"cpu": {"ms": 1}}}]}`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	status, out, stderr := command(t, "", "power", "--json", "--idle", "0s", "--device", profile, "--", self(t), "run", "-n", "3", "Hello")
	if status != 0 {
		t.Fatalf("status %d: %s", status, stderr)
	}
	var got powerOutput
	decode(t, out, &got)
	f := got.Parts["cpu"]
	if f.Basis == "measured" {
		t.Skip("this machine measures its processor")
	}
	if f.Basis != "estimated" || *f.Watts < 5 || *f.Watts > 30 || !strings.Contains(f.Source, "at stated 30 W") {
		t.Errorf("%+v", f)
	}
	if got.JoulesToken == nil || got.Parts["combined"].Basis != "estimated" {
		t.Errorf("%s", out)
	}
	status, _, stderr = command(t, "", "power", "--idle", "0s", "--device", "mac-studio", "--", self(t), "run", "-n", "3", "Hello")
	if status != 1 || !strings.Contains(stderr, "it has none of the units that ran (cpu)") {
		t.Errorf("status %d: %s", status, stderr)
	}
}

func TestPowerStatus(t *testing.T) {
	for _, c := range []struct {
		args   []string
		status int
		stderr string
	}{
		{[]string{"power", "--idle", "0s", "--", self(t), "run", "--chunks", "0", "x"}, 1, "unavailable"},
		{[]string{"power", "--idle", "0s", "--", self(t), "nosuch"}, 2, "unavailable"},
		{[]string{"power", "--", "no-such-command"}, 127, "no-such-command"},
		{[]string{"power", "--", t.TempDir()}, 126, "tandem: "},
		{[]string{"power", "--interval", "0s", "--", self(t)}, 1, "--interval 0s"},
		{[]string{"power"}, 2, "COMMAND"},
	} {
		status, out, stderr := command(t, "", c.args...)
		if status != c.status || !strings.Contains(stderr, c.stderr) || out != "" {
			t.Errorf("%q: status %d, want %d; %s", c.args, status, c.status, stderr)
		}
	}
}
