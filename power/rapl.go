package power

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"time"
)

// rapl is the energy counters of Intel and AMD processors, as the powercap tree
// has them. Its zones are packages, with core, uncore and dram below, and psys.
type rapl struct {
	t     tree
	zones []*zone
}

// zone is one counter.
type zone struct {
	path   string
	label  string // "package-0", or "package-0 core" of one below
	part   Part
	most   int64 // the counter begins again behind it; 0 unknown
	seen   bool
	last   int64
	at     time.Time
	moved  bool
	failed error
}

const powercap = "sys/class/powercap"

// zoneName leaves out intel-rapl-mmio, which counts the same packages again.
var zoneName = regexp.MustCompile(`^intel-rapl:\d+(:\d+)*$`)

func openRAPL(t tree) (source, error) {
	r := &rapl{t: t}
	labels := map[string]string{}
	var failed error
	names := slices.DeleteFunc(t.list(powercap), func(n string) bool { return !zoneName.MatchString(n) })
	slices.SortStableFunc(names, func(a, b string) int {
		return cmp.Compare(strings.Count(a, ":"), strings.Count(b, ":")) // parents first
	})
	for _, name := range names {
		path := powercap + "/" + name
		label, err := t.text(path + "/name")
		if err != nil {
			failed = errors.Join(failed, refused(err, "/"+path+"/name"))
			continue
		}
		z := &zone{path: path, label: label, part: partOfZone(label)}
		if parent, ok := labels[name[:strings.LastIndex(name, ":")]]; ok {
			z.label = parent + " " + label
		}
		labels[name] = label
		if _, err := t.number(path + "/energy_uj"); err != nil {
			failed = errors.Join(failed, refused(err, "/"+path+"/energy_uj is for root alone"))
			continue
		}
		if z.most, err = t.number(path + "/max_energy_range_uj"); err != nil || z.most < 0 {
			z.most = 0
		}
		r.zones = append(r.zones, z)
	}
	switch {
	case len(r.zones) > 0:
		return r, nil
	case failed != nil:
		return nil, firstOf(failed)
	}
	return nil, errors.New("/sys/class/powercap has no intel-rapl zone: the kernel has no RAPL driver, or this is a virtual machine")
}

// partOfZone is what a zone's watts are of. Core and uncore are within their
// package.
func partOfZone(name string) Part {
	switch {
	case strings.HasPrefix(name, "package"):
		return CPU
	case name == "dram":
		return DRAM
	case name == "psys":
		return Machine
	}
	return ""
}

// firstOf is the first of joined errors: the others say the same of other files.
func firstOf(err error) error {
	if all, ok := err.(interface{ Unwrap() []error }); ok && len(all.Unwrap()) > 0 {
		return firstOf(all.Unwrap()[0])
	}
	return err
}

func (*rapl) name() string { return "rapl" }

func (r *rapl) sensors() []string { return labels(r.zones) }

func labels(zones []*zone) []string {
	var out []string
	for _, z := range zones {
		out = append(out, z.label)
	}
	return out
}

func (r *rapl) sample(at time.Time, s *Sample) {
	missing := map[Part]bool{}
	var readings []Reading
	for _, z := range r.zones {
		watts, ok := z.read(r.t, z.path+"/energy_uj", at)
		if !ok {
			missing[z.part] = true
			continue
		}
		readings = append(readings, Reading{z.part, "rapl " + z.label, watts})
	}
	for _, x := range readings {
		// Some of several packages are not the part: their sum would be too little.
		if x.Part == "" || !missing[x.Part] {
			s.add(x.Part, x.Sensor, x.Watts)
		}
	}
}

// read is the mean watts since the call before, by a file of microjoules.
func (z *zone) read(t tree, file string, at time.Time) (float64, bool) {
	now, err := t.number(file)
	if z.failed = err; err != nil {
		z.seen = false
		return 0, false
	}
	before, began, seen := z.last, z.at, z.seen
	z.last, z.at, z.seen = now, at, true
	d := now - before
	if seen && d < 0 {
		if z.most == 0 {
			return 0, false
		}
		d += z.most
	}
	z.moved = z.moved || seen && d != 0
	took := at.Sub(began)
	if !seen || !z.moved || took <= 0 {
		return 0, false
	}
	watts := float64(d) / 1e6 / took.Seconds()
	return watts, watts >= 0 && watts <= plausible
}

func (r *rapl) why() string {
	var still []string
	for _, z := range r.zones {
		switch {
		case z.failed != nil && errors.Is(z.failed, fs.ErrPermission):
			return refused(z.failed, "/"+z.path+"/energy_uj").Error()
		case z.failed != nil:
			return z.failed.Error()
		case z.seen && !z.moved:
			still = append(still, z.label)
		}
	}
	if len(still) > 0 {
		return fmt.Sprintf("the counter of %s stands still", strings.Join(still, ", "))
	}
	return ""
}

func (*rapl) close() error { return nil }
