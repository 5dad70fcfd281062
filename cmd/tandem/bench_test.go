package main

import (
	"encoding/csv"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tandemrun/tandem"
)

// benchResult is a row of bench -o json.
type benchResult struct {
	Commit    string    `json:"build_commit"`
	Number    int       `json:"build_number"`
	CPU       string    `json:"cpu_info"`
	GPU       string    `json:"gpu_info"`
	Backends  string    `json:"backends"`
	File      string    `json:"model_filename"`
	Model     string    `json:"model_type"`
	Size      int64     `json:"model_size"`
	Params    int64     `json:"model_n_params"`
	Batch     int       `json:"n_batch"`
	Ubatch    int       `json:"n_ubatch"`
	Threads   int       `json:"n_threads"`
	K         string    `json:"type_k"`
	V         string    `json:"type_v"`
	Prompt    int       `json:"n_prompt"`
	Gen       int       `json:"n_gen"`
	Depth     int       `json:"n_depth"`
	Time      time.Time `json:"test_time"`
	NS        int64     `json:"avg_ns"`
	StddevNS  int64     `json:"stddev_ns"`
	TS        float64   `json:"avg_ts"`
	StddevTS  float64   `json:"stddev_ts"`
	SamplesNS []int64   `json:"samples_ns"`
	SamplesTS []float64 `json:"samples_ts"`
	Kernels   string    `json:"kernels"`
	Streams   int       `json:"n_streams"`
	Work      int64     `json:"work"`
	Ceiling   float64   `json:"ceiling"`
	Unit      string    `json:"ceiling_unit"`
	Share     float64   `json:"share"`
}

func TestBenchJSON(t *testing.T) {
	out := succeed(t, "", "bench", "-p", "16,0", "-n", "4", "-d", "0,20", "-r", "2", "--streams", "1,2", "-t", "1", "--kv", "f16", "-o", "json")
	var rows []benchResult
	decode(t, out, &rows)
	type test struct {
		p, n, d, s int
		unit       string
	}
	want := []test{{16, 0, 0, 1, "GOPS"}, {0, 4, 0, 1, "GB/s"}, {0, 4, 0, 2, "GB/s"}, {16, 0, 20, 1, "GOPS"}, {0, 4, 20, 1, "GB/s"}, {0, 4, 20, 2, "GB/s"}}
	if len(rows) != len(want) {
		t.Fatalf("%d rows, want %d: %s", len(rows), len(want), out)
	}
	for i, r := range rows {
		if got := (test{r.Prompt, r.Gen, r.Depth, r.Streams, r.Unit}); got != want[i] {
			t.Errorf("row %d: %+v, want %+v", i, got, want[i])
		}
		if r.Threads != 1 || r.K != "f16" || r.V != "f16" || r.Params != 3701770 || r.Model != "gemma4 3.7M Q8_0" || r.Backends != "CPU" {
			t.Errorf("row %d: %+v", i, r)
		}
		if len(r.SamplesNS) != 2 || len(r.SamplesTS) != 2 || r.Ceiling <= 0 || r.Share <= 0 || time.Since(r.Time) > time.Hour {
			t.Fatalf("row %d: %+v", i, r)
		}
		tokens := float64(r.Prompt + r.Gen*r.Streams)
		if got, want := r.SamplesTS[1], tokens/float64(r.SamplesNS[1])*1e9; math.Abs(got-want) > 1e-4*want {
			t.Errorf("row %d: %v t/s for %v tokens in %d ns", i, got, tokens, r.SamplesNS[1])
		}
		if got, want := r.TS, (r.SamplesTS[0]+r.SamplesTS[1])/2; math.Abs(got-want) > 1e-4*want {
			t.Errorf("row %d: mean %v of %v", i, got, r.SamplesTS)
		}
		// avg_ns is a whole number of nanoseconds of a run that takes few of them.
		if got, want := r.Share, float64(r.Work)/float64(r.NS)/r.Ceiling; math.Abs(got-want) > 1e-3*want {
			t.Errorf("row %d: share %v, want %v", i, got, want)
		}
	}
}

func TestBenchCSV(t *testing.T) {
	table, err := csv.NewReader(strings.NewReader(succeed(t, "", "bench", "-p", "8", "-n", "2", "-r", "1", "-o", "csv"))).ReadAll()
	if err != nil || len(table) != 3 {
		t.Fatalf("%v: %v", err, table)
	}
	at := map[string]int{}
	for i, name := range table[0] {
		at[name] = i
	}
	for _, name := range strings.Fields("build_commit cpu_info model_filename n_prompt n_gen avg_ts stddev_ts ceiling share") {
		if _, ok := at[name]; !ok {
			t.Errorf("no column %s in %v", name, table[0])
		}
	}
	if _, ok := at["samples_ns"]; ok {
		t.Error("samples in a table")
	}
	if table[1][at["n_prompt"]] != "8" || table[2][at["n_gen"]] != "2" {
		t.Errorf("rows %v", table[1:])
	}
}

func TestBenchMarkdown(t *testing.T) {
	out := succeed(t, "", "bench", "-p", "8", "-n", "2", "-d", "5", "-r", "1")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 4 || !strings.Contains(lines[2], " pp8 @ d5 |") || !strings.Contains(lines[3], " tg2 @ d5 |") {
		t.Fatalf("got\n%s", out)
	}
	for _, word := range []string{"model", "size", "params", "backend", "threads", "test", "t/s", "ceiling", "share"} {
		if !strings.Contains(lines[0], "| "+word+" ") && !strings.Contains(lines[0], " "+word+" |") {
			t.Errorf("no column %s in %s", word, lines[0])
		}
	}
	if strings.Contains(lines[0], "streams") {
		t.Error("a column of streams though there is always one")
	}
	if out := succeed(t, "", "bench", "-p", "0", "-n", "2", "--streams", "2", "-r", "1"); !strings.Contains(out, "streams") {
		t.Errorf("no column of streams in\n%s", out)
	}
}

func TestBenchOps(t *testing.T) {
	type op struct {
		File    string   `json:"model_filename"`
		Model   string   `json:"model_type"`
		Threads int      `json:"n_threads"`
		Prompt  int      `json:"n_prompt"`
		Gen     int      `json:"n_gen"`
		Depth   int      `json:"n_depth"`
		Streams int      `json:"n_streams"`
		ReadGBS float64  `json:"read_gbs"`
		GOPS    float64  `json:"int8_gops"`
		Name    string   `json:"operation"`
		Rows    string   `json:"rows"`
		Steps   int      `json:"steps"`
		Calls   int      `json:"calls"`
		NS      int64    `json:"ns"`
		Bytes   *int64   `json:"bytes"`
		Ops     *int64   `json:"ops"`
		GBS     *float64 `json:"gbs"`
		OpGOPS  *float64 `json:"gops"`
		OfOwn   *float64 `json:"share_of_ceiling"`
		OfAStep float64  `json:"share_of_step"`
	}
	var ops []op
	decode(t, succeed(t, "", "bench", "--ops", "-p", "8", "-n", "3", "-r", "2", "-o", "json"), &ops)
	sum := map[int]float64{}
	matmul := map[int]bool{}
	for _, x := range ops {
		sum[x.Prompt] += x.OfAStep
		if want := map[int]int{8: 2, 0: 6}[x.Prompt]; x.Steps != want {
			t.Errorf("%+v has %d steps, want %d", x, x.Steps, want)
		}
		if x.Name == "matmul" && x.Bytes != nil && x.Ops != nil && x.OfOwn != nil && *x.OfOwn > 0 && x.ReadGBS > 0 && x.GOPS > 0 {
			matmul[x.Prompt] = true
		}
	}
	for _, p := range []int{8, 0} {
		if math.Abs(sum[p]-1) > 1e-6 || !matmul[p] {
			t.Errorf("prompt %d: shares of the step add up to %v; products measured: %v", p, sum[p], matmul[p])
		}
	}
	out := succeed(t, "", "bench", "--ops", "-p", "8", "-n", "3", "-r", "2")
	for _, text := range []string{"pp8, 2 prompts of", "tg3, 6 steps of", "| matmul", "| attention", "| other", "of ceiling"} {
		if !strings.Contains(out, text) {
			t.Errorf("no %q in\n%s", text, out)
		}
	}
}

func TestBenchRoofline(t *testing.T) {
	var rows []struct {
		Threads int     `json:"n_threads"`
		Read    float64 `json:"read_gbs"`
		Best    float64 `json:"read_best_gbs"`
		Int8    float64 `json:"int8_gops"`
		BestInt float64 `json:"int8_best_gops"`
		Samples int     `json:"samples"`
	}
	decode(t, succeed(t, "", "bench", "--roofline", "-t", "1", "-o", "json"), &rows)
	if len(rows) != 1 || rows[0].Threads != 1 || rows[0].Samples < 3 {
		t.Fatalf("got %+v", rows)
	}
	if r := rows[0]; r.Read <= 0 || r.Best < r.Read || r.Int8 <= 0 || r.BestInt < r.Int8 {
		t.Errorf("got %+v", r)
	}
}

func TestOwnShare(t *testing.T) {
	prompt := tandem.BenchmarkResult{Prompt: 8, Read: 100, Multiply: 1000}
	decode := tandem.BenchmarkResult{Decoded: 8, Read: 100, Multiply: 1000}
	for _, test := range []struct {
		name  string
		op    tandem.OpTime
		in    tandem.BenchmarkResult
		share float64
	}{
		{"bound by arithmetic", tandem.OpTime{Name: "matmul", Time: 2 * time.Second, Bytes: 10, Ops: 1000}, prompt, 0.5},
		{"bound by memory", tandem.OpTime{Name: "matmul", Time: 2 * time.Second, Bytes: 100, Ops: 100}, decode, 0.5},
		{"attention reads the cache", tandem.OpTime{Name: "attention", Time: time.Second, Bytes: 25, Ops: 1000}, decode, 0.25},
		{"attention of a prompt", tandem.OpTime{Name: "attention", Time: time.Second, Bytes: 25, Ops: 1000}, prompt, 0},
		{"no time", tandem.OpTime{Name: "matmul", Bytes: 25, Ops: 1000}, prompt, 0},
		{"no ceiling", tandem.OpTime{Name: "matmul", Time: time.Second, Bytes: 25}, tandem.BenchmarkResult{}, 0},
	} {
		if got := ownShare(test.op, test.in); got != test.share {
			t.Errorf("%s: %v, want %v", test.name, got, test.share)
		}
	}
}

func TestBenchErrors(t *testing.T) {
	for _, test := range []struct {
		args   string
		status int
		says   string
	}{
		{"-p 0 -n 0", 1, "nothing to measure"},
		{"-p 100000 -o json", 1, "positions"},
		{"-p 100000", 1, "pp100000 needs 100000 positions"},
		{"-n 10 -d 2000", 1, "positions"},
		{"-r 0", 1, "-r 0"},
		{"--streams 0", 1, "streams"},
		{"--n-prompt=-3", 1, "-3"},
		{"--roofline --ops", 1, "exclude each other"},
		{"--roofline -t 99999", 1, "99999 threads"},
		{"-o xml", 2, "xml"},
		{"-m nowhere.gguf", 1, "nowhere.gguf"},
		{"--place cpu:999", 1, "cpu:999"},
	} {
		status, out, err := command(t, "", append([]string{"bench"}, strings.Fields(test.args)...)...)
		if status != test.status || out != "" || !strings.Contains(err, test.says) || strings.Count(err, "\n") != 1 {
			t.Errorf("%s: status %d, stdout %q, stderr %q", test.args, status, out, err)
		}
	}
}
