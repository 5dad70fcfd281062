package main

import (
	"io"
	"strings"
	"testing"

	"github.com/tandemrun/tandem"
)

func TestLayoutOf(t *testing.T) {
	for _, x := range []struct {
		of, flags        string
		context, streams int
		kv               string
	}{
		{"run", "--kv q8_0 --temp 0.5", 0, 0, "q8_0"},
		{"run", "--ctx 300 --profile", 300, 0, ""},
		{"bench", "-d 0,100 --streams 1,3", 228, 3, ""},
		{"bench", "-p 16 -n 300 --ctx 1000", 1000, 1, ""},
		{"batch", "--streams 7 --kv=f16", 0, 7, "f16"},
	} {
		r := trialRunner{k: &abCmd{Of: x.of, N: 8, Prompt: "--hello"}, folder: "there"}
		flags, err := splitFlags(x.flags)
		if err != nil {
			t.Fatal(err)
		}
		f, o, err := layoutOf(r.args(flags))
		if err != nil || f.Model != "" || o.Context != x.context || o.Streams != x.streams || o.KV != x.kv {
			t.Errorf("%s %s: %+v of %q, %v", x.of, x.flags, o, f.Model, err)
		}
	}
	r := trialRunner{k: &abCmd{modelFlags: modelFlags{Model: "a.gguf"}, Of: "run", N: 8}}
	if f, _, err := layoutOf(r.args([]string{"-m", "b.gguf"})); err != nil || f.Model != "b.gguf" {
		t.Errorf("the model is %q (%v)", f.Model, err)
	}
	if _, _, err := layoutOf([]string{"run", "--no-such-flag", "x"}); err == nil {
		t.Error("an unknown flag")
	}
}

// The smaller cache is seen in the memory, and the logits are compared.
func TestABLayouts(t *testing.T) {
	r := trialRunner{k: &abCmd{Of: "run", N: 3, Prompt: "Hi", Quality: true}}
	r.sides[tandem.SideA].flags, r.sides[tandem.SideB].flags = []string{"--kv", "f32"}, []string{"--kv", "q8_0"}
	var out abOutput
	if err := r.layouts(t.Context(), &console{err: io.Discard}, &out); err != nil {
		t.Fatal(err)
	}
	a, b := out.Memory.A, out.Memory.B
	if a.KVType != "f32" || b.KVType != "q8_0" || b.KV*128 != a.KV*34 || b.Total != a.Total-a.KV+b.KV {
		t.Errorf("%+v and %+v", a, b)
	}
	q := out.Quality.All
	if q.Prompts != 20 || q.Positions < 20 || q.Positions > 60 || q.MeanKL == nil || !(*q.MeanKL > 0 && *q.MeanKL < 0.01) || q.Top < 0.9 {
		t.Errorf("%+v", q)
	}
	var text strings.Builder
	out.printLayouts(&text)
	for _, want := range []string{"KV cache 1.1 MiB in f32), B ", "288.7 KiB in q8_0)\nlogits of B against A: KL ", " positions of 20 prompts\n"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
	r.sides[tandem.SideB].flags = []string{"-m", "../../testdata/tiny/tiny-q4_0.gguf"}
	if err := r.layouts(t.Context(), &console{err: io.Discard}, &out); err == nil || !strings.Contains(err.Error(), "of one model") {
		t.Errorf("two models: %v", err)
	}
}
