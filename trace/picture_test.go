package trace_test

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/tandemrun/tandem"
	"github.com/tandemrun/tandem/trace"
)

var update = flag.Bool("update", false, "write docs/timeline.svg anew, from runs on this machine")

// tries is how many runs -update chooses from: the shortest, which other work on
// the machine disturbed least.
const tries = 100

// twoStreams runs two prompts at once with the chunks over two cores, again and
// again on the same engine, and returns what each run did.
func twoStreams(t *testing.T, runs, tokens int) []*trace.Timeline {
	t.Helper()
	if h, err := tandem.Units(); err != nil || len(h.Cores) < 2 {
		t.Skipf("needs two cores (%v)", err)
	}
	ctx := context.Background()
	m, err := tandem.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	var r tandem.Trace
	e, err := m.Open(ctx, tandem.Options{Streams: 2, Merge: 1, Block: 16, Place: "c1=cpu:0,c2=cpu:0,c3=cpu:1,c4=cpu:1", Observe: r.Observe})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	var prompts [2][]int32
	var streams [2]*tandem.Stream
	for i, text := range []string{"Hello", "Write a short story about a fox who wanted to see the sea, and about the old owl who told it which way to go and what to take along."} {
		if prompts[i], err = m.Prompt([]tandem.Message{{Role: "user", Content: text}}); err != nil {
			t.Fatal(err)
		}
		if streams[i], err = e.NewStream(ctx); err != nil {
			t.Fatal(err)
		}
		defer streams[i].Close()
	}
	var out []*trace.Timeline
	for range runs {
		var wg sync.WaitGroup
		for _, s := range streams { // forget the last run's prompt
			if err := s.Logits(ctx, prompts[0][:1], false, func(int, []float32) error { return nil }); err != nil {
				t.Fatal(err)
			}
		}
		r.Reset()
		for i, s := range streams {
			wg.Go(func() {
				if _, err := s.Generate(ctx, prompts[i], tandem.Generation{MaxTokens: tokens}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		timeline, err := r.Timeline(e)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, timeline)
	}
	return out
}

// The picture of the documents shows a real run.
func TestPicture(t *testing.T) {
	runs := 1
	if *update {
		runs = tries
	}
	best := slices.MinFunc(twoStreams(t, runs, 8), func(a, b *trace.Timeline) int { return cmp.Compare(a.Length, b.Length) })
	var b bytes.Buffer
	if err := best.SVG(&b, trace.SVGOptions{Title: "Two streams, chunks on two cores"}); err != nil {
		t.Fatal(err)
	}
	checkSVG(t, b.Bytes(), best)
	t.Log("\n" + best.Summary())
	if *update {
		if err := os.WriteFile("../docs/timeline.svg", b.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}
