package main

import (
	"encoding/csv"
	"slices"
	"strings"
	"testing"
)

func TestBenchLoad(t *testing.T) {
	type row struct {
		Commit  string   `json:"build_commit"`
		CPU     string   `json:"cpu_info"`
		File    string   `json:"model_filename"`
		Model   string   `json:"model_type"`
		Size    int64    `json:"model_size"`
		Kernels string   `json:"kernels"`
		Threads int      `json:"n_threads"`
		Cache   string   `json:"page_cache"`
		Share   *float64 `json:"page_cache_share"`
		Phase   string   `json:"phase"`
		Unit    string   `json:"unit"`
		Bytes   int64    `json:"weight_bytes"`
		Min     int64    `json:"min_ns"`
		Median  int64    `json:"median_ns"`
		Samples []int64  `json:"samples_ns"`
	}
	var rows []row
	decode(t, succeed(t, "", "bench", "--load", "-r", "3", "--place", "cpu:0", "-o", "json"), &rows)
	var phases []string
	at := map[string]row{}
	for _, r := range rows {
		phases = append(phases, strings.TrimSpace(r.Phase+" "+r.Unit))
		at[r.Phase] = r
		if len(r.Samples) != 3 || r.Min <= 0 || r.Min != slices.Min(r.Samples) || r.Median != slices.Sorted(slices.Values(r.Samples))[1] {
			t.Errorf("%s: %+v", r.Phase, r)
		}
		if r.Threads != 1 || r.Share != nil || !strings.Contains(r.Cache, "in the binary") || !strings.HasPrefix(r.File, "embedded:") {
			t.Errorf("%+v", r)
		}
	}
	if want := []string{"map", "open", "repack cpu:0", "compile cpu:0", "first dispatch", "steady step"}; !slices.Equal(phases, want) {
		t.Errorf("phases %q, want %q", phases, want)
	}
	if at["repack"].Bytes < 3<<20 || at["compile"].Bytes != 0 {
		t.Errorf("%d bytes repacked, %d compiled", at["repack"].Bytes, at["compile"].Bytes)
	}
	for i := range at["open"].Samples {
		if parts := at["repack"].Samples[i] + at["compile"].Samples[i]; parts > at["open"].Samples[i] {
			t.Errorf("sample %d: the parts of open take %d ns, it all %d", i, parts, at["open"].Samples[i])
		}
	}
}

// A file has a state in the page cache, and each output has the same phases.
func TestBenchLoadOutputs(t *testing.T) {
	const file = "../../testdata/tiny/tiny-q4_0.gguf"
	load := func(args ...string) string {
		return succeed(t, "", append([]string{"bench", "--load", "-m", file, "-r", "1", "-t", "1"}, args...)...)
	}
	table, err := csv.NewReader(strings.NewReader(load("-o", "csv"))).ReadAll()
	if err != nil || len(table) != 7 || slices.Contains(table[0], "samples_ns") {
		t.Errorf("%v: %v", err, table)
	}
	if state := table[1][slices.Index(table[0], "page_cache")]; !strings.Contains(state, "warm") {
		t.Errorf("the page cache is %q", state)
	}
	if out := load("-o", "jsonl"); strings.Count(out, "\n") != 6 {
		t.Errorf("jsonl:\n%s", out)
	}
	if out := load("-o", "sql"); !strings.Contains(out, "CREATE TABLE IF NOT EXISTS loading") || strings.Count(out, "INSERT INTO") != 6 {
		t.Errorf("sql:\n%s", out)
	}
	out := load()
	for _, want := range []string{"page cache: warm", "| phase ", "| map ", "| repack ", "| first dispatch ", "| steady step ", " ms |"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if out := load("--place", "c1=cpu:0", "-o", "csv"); strings.Count(out, "steady step") != 3 {
		t.Errorf("two units, but\n%s", out)
	}
}

func TestBenchLoadErrors(t *testing.T) {
	for want, args := range map[string][]string{
		"--load excludes":             {"--load", "--ops"},
		"--drop-cache is for --load":  {"--drop-cache"},
		"no file of its own":          {"--load", "--drop-cache", "-r", "1"},
		"no-such.gguf":                {"--load", "-m", "no-such.gguf"},
		"-r 0: it must be at least 1": {"--load", "-r", "0"},
		"17 steps do not fit":         {"--load", "-r", "1", "--ctx", "10"},
		"it must be f32, f16 or q8_0": {"--load", "--kv", "q5_0"},
	} {
		status, _, stderr := command(t, "", append([]string{"bench"}, args...)...)
		if status != 1 || !strings.Contains(stderr, want) {
			t.Errorf("%v: status %d, %s", args, status, stderr)
		}
	}
}
