package tandem

import (
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/tandemrun/tandem/unit"
	"github.com/tandemrun/tandem/unit/cpu"
	"github.com/tandemrun/tandem/unit/cpu/kernel"
)

// A unit whose workers cannot be pinned works, and a note says so once and why.
func TestPinNotes(t *testing.T) {
	u, err := cpu.New(cpu.Config{Name: "cpu:0", CPUs: []int{100000}, ISA: kernel.Best()})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	notes := unitNotes([]unit.Unit{u, u})
	if len(notes) != 1 || !strings.Contains(notes[0], "unit cpu:0 ") || strings.Contains(notes[0], "<nil>") {
		t.Errorf("notes %q", notes)
	}
}

// Where pinning works, there is nothing to note.
func TestNoPinNotes(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("workers are pinned on linux alone")
	}
	m, err := Embedded()
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	e, err := m.Open(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if notes := e.Notes(); len(notes) != 0 {
		t.Errorf("notes %q", notes)
	}
}

// Chunks whose unit differs in prefill are there twice, in what is planned and
// in what is opened, and the text stays the same.
func TestPlacePrefill(t *testing.T) {
	m, err := Embedded()
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	o := Options{Context: 256, Place: "c4=cpu:1"}
	one, err := m.Inspect(o)
	if err != nil {
		t.Skipf("this machine has no second core: %v", err)
	}
	text := func(o Options) string {
		e, err := m.Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		s, err := e.NewStream(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		r, err := s.Chat(t.Context(), []Message{{Role: "user", Content: "Hello"}}, Generation{MaxTokens: 12})
		if err != nil {
			t.Fatal(err)
		}
		return r.Text
	}
	want := text(o)
	for _, test := range []struct {
		prefill string
		twins   []string
	}{
		{"", nil},
		{"cpu", []string{"c4@cpu"}},
		{"c2=cpu:0,c4=cpu:1", []string{"c2@cpu:0"}},
	} {
		o.PlacePrefill = test.prefill
		info, err := m.Inspect(o)
		if err != nil {
			t.Fatal(err)
		}
		var twins []string
		weights := one.Memory.Weights
		for _, c := range info.Chunks {
			if c.Prefill {
				twins = append(twins, c.Name+"@"+c.Unit)
				weights += c.Weights
			}
		}
		if !slices.Equal(twins, test.twins) || info.Memory.Weights != weights {
			t.Errorf("%q: chunks of prefill %v, not %v; weights %d, not %d", test.prefill, twins, test.twins, info.Memory.Weights, weights)
		}
		if got := text(o); got != want {
			t.Errorf("%q: %q, not %q", test.prefill, got, want)
		}
	}
	o.PlacePrefill = "c9=cpu:0"
	if _, err := m.Inspect(o); err == nil || !strings.Contains(err.Error(), "--place-prefill c9=cpu:0") {
		t.Errorf("a chunk that is not there: %v", err)
	}
}

// What is planned for caches is what the units then have.
func TestPlannedCaches(t *testing.T) {
	m, err := Embedded()
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for _, o := range []Options{
		{Place: "cpu:0"},
		{Place: "c4=cpu:1"},
		{Place: "cpu:0", PlacePrefill: "cpu:1"},
		{Chunks: 4, Place: "c2=cpu:1,c4=cpu:0", PlacePrefill: "c2=cpu:0,c4=cpu:1,c1=cpu:1"},
	} {
		info, err := m.Inspect(o)
		if err != nil {
			t.Skipf("this machine has no second core: %v", err)
		}
		e, err := m.Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range append(e.Chunks(), e.PrefillChunks()...) {
			p := info.Chunks[i]
			if p.Name != c.Name || p.Unit != c.Unit || p.KV != c.Bytes.KV {
				t.Errorf("%+v: planned %s on %s with %d bytes of caches, there are %s on %s with %d", o, p.Name, p.Unit, p.KV, c.Name, c.Unit, c.Bytes.KV)
			}
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}
