package tandem

import (
	"runtime"
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
	notes := pinNotes([]unit.Unit{u, u})
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
