package tandem

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tandemrun/tandem/verdict"
)

// Plans do not use a unit that failed verify-unit.
func TestPlanUnits(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	m, err := Embedded()
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	judge := func(name string, passed bool) {
		t.Helper()
		s, k, err := m.verdicts(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Put(verdict.Verdict{Key: k, Passed: passed, Against: "cpu", Summary: name + " was judged", Time: time.Unix(1, 0).UTC()}); err != nil {
			t.Fatal(err)
		}
	}
	units, _, err := m.planUnits(nil)
	if err != nil || !slices.Contains(units, "cpu") {
		t.Fatalf("without verdicts: %v, %v", units, err)
	}
	if slices.ContainsFunc(units, func(u string) bool { return strings.HasPrefix(u, "gpu") }) {
		t.Errorf("a GPU that nobody verified is used: %v", units)
	}
	judge("cpu", false)
	all := units
	units, notes, err := m.planUnits(nil)
	if len(all) > 1 && (err != nil || slices.Contains(units, "cpu") || !strings.Contains(strings.Join(notes, " "), "cpu was judged")) {
		t.Errorf("cpu failed: %v, notes %q, %v", units, notes, err)
	}
	if _, _, err := m.planUnits([]string{"cpu"}); err == nil || !strings.Contains(err.Error(), "verify-unit --unit cpu") {
		t.Errorf("a unit that failed is asked for: %v", err)
	}
	judge("cpu", true)
	if units, _, err := m.planUnits([]string{"cpu"}); err != nil || len(units) != 1 {
		t.Errorf("cpu passed: %v, %v", units, err)
	}
}
