package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	public "github.com/tandemrun/tandem"
)

func TestPerplexity(t *testing.T) {
	text := strings.Repeat("Mia is a painter who lives near the bridge. She has a turtle named Dusty. ", 12)
	path := filepath.Join(t.TempDir(), "text.txt")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var a, b public.Perplexity
	decode(t, succeed(t, "", "perplexity", "--json", "--ctx", "64", path), &a)
	decode(t, succeed(t, text, "perplexity", "--json", "--ctx", "64", "--chunks", "2", "-"), &b)
	if a.Perplexity != b.Perplexity || a.Perplexity <= 1 || a.Window != 64 || a.Done != a.Windows || a.Scored != a.Windows*31 || a.Rate <= 0 {
		t.Errorf("got %+v and %+v", a, b)
	}
	if out := succeed(t, "", "perplexity", "--ctx", "64", path); !strings.HasPrefix(out, "perplexity ") || !strings.Contains(out, " ± ") || !strings.Contains(out, "tok/s") || strings.Count(out, "\n") != 1 {
		t.Errorf("prints %q", out)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--ctx", "64", "no-such"}, "no-such"},
		{[]string{path}, "--ctx"}, // shorter than a window of 512
		{[]string{"--ctx", "2", path}, "at least 3"},
		{[]string{"--ctx", "9999", path}, "9999"},
		{[]string{"-m", noVocabFile, path}, "no_vocab"},
	} {
		status, out, err := command(t, "", append([]string{"perplexity"}, c.args...)...)
		if status != 1 || out != "" || strings.Count(err, "\n") != 1 || !strings.Contains(err, c.want) {
			t.Errorf("%q: status %d, stdout %q, stderr %q", c.args, status, out, err)
		}
	}
}
