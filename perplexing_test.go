package tandem

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tandemrun/tandem/program"
)

const tale = `There once was a painter named Mia who worked near the bridge. Every day she took her turtle Dusty along. Late one night,
when it was bright, Mia and Dusty went to the park. But the golden coin was gone! Mia was very confused. "Where is my golden coin?"
she asked. She looked under the table and behind the barn, but it was not there. Then Dusty the turtle ran to the park and came back
with the golden coin. Mia was so glad that she gave Dusty a carrot. From that day on, they were the best of friends. The next day Mia
and Kira went to the bridge. They took a clock and some carrots with them. It was cloudy, and they felt proud.`

// evaluated is the perplexity of a text by the float32 evaluator, written out
// anew: windows of n tokens, the second half scored.
func evaluated(t *testing.T, m *Model, n int) float64 {
	t.Helper()
	tokens, err := m.Tokenize(tale, false, true)
	if err != nil {
		t.Fatal(err)
	}
	bos := tokens[0]
	p, err := m.model.Program(0, len(m.model.Layers))
	if err != nil {
		t.Fatal(err)
	}
	var sum float64
	count := 0
	for at := 0; at+n <= len(tokens); at += n {
		w := append([]int32{bos}, tokens[at+1:at+n]...)
		var rows []int
		for i := n / 2; i < n-1; i++ {
			rows = append(rows, i)
		}
		logits, err := new(program.Evaluator).Run(program.Block{Tokens: w, Wanted: rows}, p)
		if err != nil {
			t.Fatal(err)
		}
		for r, i := range rows {
			var all float64
			for _, x := range logits.Row(r) {
				all += math.Exp(float64(x))
			}
			sum += math.Log(all) - float64(logits.Row(r)[w[i+1]])
			count++
		}
	}
	return math.Exp(sum / float64(count))
}

func TestPerplexity(t *testing.T) {
	embedded, err := Embedded()
	if err != nil {
		t.Fatal(err)
	}
	defer embedded.Close()
	plain, err := Load(filepath.Join("testdata", "tiny", "tiny-f32.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	const window = 48
	for _, c := range []struct {
		m   *Model
		far float64
	}{
		{plain, 1e-5},
		{embedded, 0.02}, // activations are rounded to 8 bits
	} {
		want := evaluated(t, c.m, window)
		var first Perplexity
		for i, o := range []Options{{Chunks: 1, Threads: 1}, {Chunks: 3, Place: "c2=cpu:0", Block: 7}} {
			o.Context = window
			windows := 0
			got, err := c.m.Perplexity(t.Context(), PerplexityTest{Text: tale, Options: o, Progress: func(p Perplexity) { windows = p.Done }})
			if err != nil {
				t.Fatal(err)
			}
			if math.Abs(got.Perplexity/want-1) > c.far {
				t.Errorf("%s: %g, the evaluator's is %g", c.m.Name(), got.Perplexity, want)
			}
			if i == 0 {
				first = got
			} else if got.Perplexity != first.Perplexity || got.Error != first.Error {
				t.Errorf("%s: %g in one layout, %g in another", c.m.Name(), first.Perplexity, got.Perplexity)
			}
			if got.Windows != got.Tokens/window || got.Windows < 2 || windows != got.Windows || got.Scored != got.Windows*(window/2-1) || got.Error <= 0 {
				t.Errorf("%s: %+v, %d windows seen", c.m.Name(), got, windows)
			}
		}
	}
	short := PerplexityTest{Text: "Hello", Options: Options{Context: 16}}
	if _, err := embedded.Perplexity(t.Context(), short); err == nil || !strings.Contains(err.Error(), "--ctx") {
		t.Errorf("a short text: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	got, err := embedded.Perplexity(ctx, PerplexityTest{Text: tale, Options: Options{Context: window}, Progress: func(Perplexity) { cancel() }})
	if !errors.Is(err, context.Canceled) || got.Done != 1 || got.Perplexity <= 1 {
		t.Errorf("cancelled: %+v, %v", got, err)
	}
}
