package power

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Levels of Sample.Pressure, from cool to hot. macOS names its own; on linux they
// come from the trip points of the processor's thermal zones: fair within
// fairBelow of the lowest trip point at which the system acts (passive or hot),
// serious from it on, critical within criticalBelow of the critical one.
const (
	Nominal  = "nominal"
	Fair     = "fair"
	Serious  = "serious"
	Critical = "critical"
)

const (
	fairBelow     = 10.0 // degrees
	criticalBelow = 5.0
)

// thermal is temperatures, frequencies and throttle counts of a linux system.
type thermal struct {
	t       tree
	zones   []heat
	cores   []string // folders of cpufreq
	counts  []string // files of throttle counts
	fastest int64    // kHz; cores whose maximum is less are slow ones
}

// heat is a sensor of temperature in thousandths of a degree.
type heat struct {
	path string
	ours bool // the processor's
	// Trip points in degrees; 0 if there is none.
	acts, critical float64
}

const (
	thermalZones = "sys/class/thermal"
	cpus         = "sys/devices/system/cpu"
)

func openThermal(t tree) (source, error) {
	x := &thermal{t: t}
	for _, name := range t.list(thermalZones) {
		if path := thermalZones + "/" + name; numbered(name, "thermal_zone") {
			x.zone(path)
		}
	}
	for _, name := range t.list(monitors) {
		path := monitors + "/" + name
		chip, err := t.text(path + "/name")
		if err == nil && slices.Contains([]string{"coretemp", "k10temp", "zenpower", "cpu_thermal"}, chip) {
			x.zones = append(x.zones, heat{path: path + "/temp1_input", ours: true})
		}
	}
	x.zones = slices.DeleteFunc(x.zones, func(h heat) bool {
		_, ok := h.celsius(t)
		return !ok
	})
	for _, name := range t.list(cpus) {
		if !numbered(name, "cpu") {
			continue
		}
		path := cpus + "/" + name
		if _, err := t.number(path + "/cpufreq/scaling_cur_freq"); err == nil {
			x.cores = append(x.cores, path+"/cpufreq")
			if most, err := t.number(path + "/cpufreq/cpuinfo_max_freq"); err == nil {
				x.fastest = max(x.fastest, most)
			}
		}
		if count := path + "/thermal_throttle/core_throttle_count"; x.exists(count) {
			x.counts = append(x.counts, count)
		}
	}
	if len(x.zones)+len(x.cores)+len(x.counts) == 0 {
		return nil, errors.New("the system tells no temperature, no frequency and no throttling of its cores")
	}
	return x, nil
}

func (x *thermal) exists(file string) bool {
	_, err := x.t.number(file)
	return err == nil
}

// zone adds a thermal zone.
func (x *thermal) zone(path string) {
	h := heat{path: path + "/temp"}
	kind, _ := x.t.text(path + "/type")
	kind = strings.ToLower(kind)
	for _, word := range []string{"cpu", "pkg", "soc", "core"} {
		h.ours = h.ours || strings.Contains(kind, word)
	}
	for _, file := range x.t.list(path) {
		trip, ok := strings.CutSuffix(file, "_type")
		if !ok || !numbered(trip, "trip_point_") {
			continue
		}
		what, _ := x.t.text(path + "/" + file)
		n, err := x.t.number(path + "/" + trip + "_temp")
		if err != nil || n <= 0 {
			continue // a trip point that is switched off
		}
		at := float64(n) / 1000
		switch what {
		case "passive", "hot":
			if h.acts == 0 || at < h.acts {
				h.acts = at
			}
		case "critical":
			if h.critical == 0 || at < h.critical {
				h.critical = at
			}
		}
	}
	x.zones = append(x.zones, h)
}

// celsius is the temperature now. Sensors that are off give wild values.
func (h heat) celsius(t tree) (float64, bool) {
	n, err := t.number(h.path)
	c := float64(n) / 1000
	return c, err == nil && c > 0 && c < 200
}

// level is the level of a zone at a temperature; "" if it has no trip points.
func (h heat) level(c float64) string {
	switch {
	case h.acts == 0 && h.critical == 0:
		return ""
	case h.critical > 0 && c >= h.critical-criticalBelow:
		return Critical
	case h.acts > 0 && c >= h.acts:
		return Serious
	case h.acts > 0 && c >= h.acts-fairBelow:
		return Fair
	}
	return Nominal
}

var levels = []string{"", Nominal, Fair, Serious, Critical}

// Hotter is the hotter of two levels; "" is the least.
func Hotter(a, b string) string {
	return levels[max(slices.Index(levels, a), slices.Index(levels, b), 0)]
}

func (*thermal) name() string { return "thermal" }

func (*thermal) sensors() []string { return nil }

func (x *thermal) sample(_ time.Time, s *Sample) {
	ours := slices.ContainsFunc(x.zones, func(h heat) bool { return h.ours })
	for _, h := range x.zones {
		c, ok := h.celsius(x.t)
		if !ok || ours && !h.ours {
			continue
		}
		if s.Celsius == nil || c > *s.Celsius {
			s.Celsius = new(c)
		}
		s.Pressure = Hotter(s.Pressure, h.level(c))
	}
	var sum, n float64
	for _, path := range x.cores {
		most, err := x.t.number(path + "/cpuinfo_max_freq")
		if err == nil && most < x.fastest*8/10 {
			continue // an efficiency core
		}
		if now, err := x.t.number(path + "/scaling_cur_freq"); err == nil && now > 0 {
			sum, n = sum+float64(now)/1000, n+1
		}
	}
	if n > 0 {
		s.MHz = new(sum / n)
	}
	var count int64
	for _, file := range x.counts {
		n, err := x.t.number(file)
		if err != nil {
			return
		}
		count += n
	}
	if len(x.counts) > 0 {
		s.Throttles = new(count)
	}
}

func (x *thermal) why() string {
	var missing []string
	for _, m := range []struct {
		none bool
		what string
	}{{len(x.zones) == 0, "temperature"}, {len(x.cores) == 0, "frequency"}, {len(x.counts) == 0, "throttle count"}} {
		if m.none {
			missing = append(missing, m.what)
		}
	}
	if len(missing) == 0 {
		return ""
	}
	return fmt.Sprintf("the system tells no %s", strings.Join(missing, ", no "))
}

func (*thermal) close() error { return nil }
