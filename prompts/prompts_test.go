package prompts_test

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tandemrun/tandem/prompts"
)

// Names are never used for another text: recorded files refer to them.
func TestSet(t *testing.T) {
	h := sha256.New()
	count := map[string]int{}
	seen := map[string]bool{}
	for _, p := range prompts.All() {
		fmt.Fprintf(h, "%q %q\n", p.Name, p.Text)
		count[p.Kind]++
		if seen[p.Name] || seen[p.Text] || !strings.HasPrefix(p.Name, p.Kind+"-") || strings.TrimSpace(p.Text) != p.Text {
			t.Errorf("%+v", p)
		}
		seen[p.Name], seen[p.Text] = true, true
	}
	for _, kind := range prompts.Kinds() {
		if count[kind] != 5 {
			t.Errorf("%d prompts of kind %s", count[kind], kind)
		}
	}
	const want = "0c6631b9e2276350"
	if got := fmt.Sprintf("%x", h.Sum(nil))[:16]; got != want {
		t.Errorf("the set's hash is %s, not %s: a changed prompt needs a new name", got, want)
	}
	all := prompts.All()
	slices.Reverse(all)
	if prompts.All()[0].Name != "chat-1" {
		t.Error("All gives its own memory away")
	}
}
