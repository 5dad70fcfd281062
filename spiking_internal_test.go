package tandem

import (
	"slices"
	"strings"
	"testing"
)

// The units that are measured are those of the placements, under the names they
// have there, and no hardware twice under another name.
func TestSpikeUnits(t *testing.T) {
	m, err := Embedded()
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}()
	host, err := Units()
	if err != nil {
		t.Fatal(err)
	}
	moves := map[string]string{"cpu": "cpu:0"} // by the name that is used: the base
	if slices.ContainsFunc(host.Units, func(u UnitInfo) bool { return u.GPU != nil && u.Usable }) {
		moves["gpu"] = "cpu:0"
	}
	for name, on := range moves {
		b, err := m.bench(Options{})
		if err != nil {
			t.Fatal(err)
		}
		base := slices.Repeat([]string{on}, len(b.ranges))
		with := slices.Clone(base)
		with[2] = name
		err = b.find(base, with)
		if len(host.Cores) == 1 && name == "cpu" {
			if err == nil || !strings.Contains(err.Error(), "same under another name") {
				t.Errorf("cpu and cpu:0 of one core: %v", err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(b.units) < 2 || b.units[0].Name != on || b.units[1].Name != name {
			t.Errorf("%s: units %v", name, b.units)
		}
		kinds := 0
		for _, u := range b.units {
			if strings.HasPrefix(u.Kind, "cpu/") != strings.HasPrefix(u.Name, "cpu") {
				t.Errorf("%s is of kind %s", u.Name, u.Kind)
			}
			if u.Kind == b.units[1].Kind {
				kinds++
			}
		}
		if gpus := slices.DeleteFunc(slices.Clone(host.Units), func(u UnitInfo) bool { return u.GPU == nil || !u.Usable }); name == "gpu" && len(gpus) == 1 && kinds != 1 {
			t.Errorf("the device is measured %d times: %v", kinds, b.units)
		}
	}
}
