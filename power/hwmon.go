package power

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// hwmon is sensors of power and energy on the hardware monitoring bus. Only
// chips whose sensors have a known meaning count for a part; others, such as the
// rails of a board, are readings of their own.
type hwmon struct {
	t      tree
	gauges []gauge
	zones  []*zone
	failed error
}

// gauge is a sensor of watts.
type gauge struct {
	path  string // file with microwatts
	label string
	part  Part
}

const monitors = "sys/class/hwmon"

func openHwmon(t tree) (source, error) {
	h := &hwmon{t: t}
	for _, name := range t.list(monitors) {
		path := monitors + "/" + name
		chip, err := t.text(path + "/name")
		if err != nil {
			continue
		}
		gauges, zones := len(h.gauges), len(h.zones)
		for _, file := range t.list(path) {
			h.file(path, chip, file)
		}
		// A chip that counts energy does not count again by its power.
		for _, z := range h.zones[zones:] {
			for i := range h.gauges[gauges:] {
				if g := &h.gauges[gauges+i]; g.part == z.part {
					g.part = ""
				}
			}
		}
	}
	if len(h.gauges)+len(h.zones) == 0 {
		return nil, errors.New("no chip in /sys/class/hwmon measures power")
	}
	return h, nil
}

// file adds the sensor that a file is. A sensor may have its power now (input)
// and a mean (average); the mean is taken.
func (h *hwmon) file(path, chip, file string) {
	stem, kind, _ := strings.Cut(file, "_")
	label := chip + " " + stem
	own, err := h.t.text(path + "/" + stem + "_label")
	if err == nil && own != "" {
		label = chip + " " + own
	}
	part := partOfChip(chip, own)
	switch {
	case numbered(stem, "energy") && kind == "input":
		h.zones = append(h.zones, &zone{path: path + "/" + stem, label: label, part: part})
	case numbered(stem, "power") && kind == "average":
		h.gauges = append(h.gauges, gauge{path + "/" + file, label, part})
	case numbered(stem, "power") && kind == "input":
		if _, err := h.t.number(path + "/" + stem + "_average"); err != nil {
			h.gauges = append(h.gauges, gauge{path + "/" + file, label, part})
		}
	}
}

// partOfChip is what a sensor's watts are of, by the names of the kernel's
// drivers (Documentation/hwmon and the drivers' own).
func partOfChip(chip, label string) Part {
	switch chip {
	case "amdgpu", "nouveau":
		return GPU
	case "xe", "i915": // discrete cards; "card" is the board and "pkg" the chip on it
		if label == "pkg" {
			return ""
		}
		return GPU
	case "amd_energy": // a counter a socket and one a core
		if strings.HasPrefix(label, "Esocket") {
			return CPU
		}
	case "power_meter": // ACPI
		return Machine
	}
	return ""
}

func (*hwmon) name() string { return "hwmon" }

func (h *hwmon) sensors() []string {
	out := labels(h.zones)
	for _, g := range h.gauges {
		out = append(out, g.label)
	}
	return out
}

func (h *hwmon) sample(at time.Time, s *Sample) {
	h.failed = nil
	for _, g := range h.gauges {
		n, err := h.t.number(g.path)
		if err != nil {
			h.failed = refused(err, "/"+g.path)
			continue
		}
		s.add(g.part, "hwmon "+g.label, float64(n)/1e6)
	}
	for _, z := range h.zones {
		if watts, ok := z.read(h.t, z.path+"_input", at); ok {
			s.add(z.part, "hwmon "+z.label, watts)
		} else if z.failed != nil {
			h.failed = refused(z.failed, "/"+z.path+"_input")
		}
	}
}

func (h *hwmon) why() string {
	if h.failed != nil {
		return h.failed.Error()
	}
	for _, z := range h.zones {
		if z.seen && !z.moved {
			return fmt.Sprintf("the counter of %s stands still", z.label)
		}
	}
	return ""
}

func (*hwmon) close() error { return nil }
