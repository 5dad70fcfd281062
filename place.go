package tandem

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tandemrun/tandem/machine"
	"github.com/tandemrun/tandem/unit"
	"github.com/tandemrun/tandem/unit/cpu"
	"github.com/tandemrun/tandem/unit/cpu/kernel"
	"github.com/tandemrun/tandem/unit/gpu"
)

// defaultUnit is the unit of chunks that no placement names.
const defaultUnit = "cpu"

// place reads the placement of a flag: either one unit for all chunks ("cpu:0"),
// or a list such as "c1=cpu:0,c3=cpu:1". Chunks that it does not name are on the
// units given.
func place(flag, spec string, units []string) ([]string, error) {
	n := len(units)
	units = slices.Clone(units)
	if spec == "" {
		return units, nil
	}
	if !strings.Contains(spec, "=") {
		if strings.Contains(spec, ",") {
			return nil, fmt.Errorf("--%s %s: give one unit for all chunks, or chunk=unit pairs such as c1=cpu:0,c2=cpu:1", flag, spec)
		}
		for i := range units {
			units[i] = spec
		}
		return units, nil
	}
	named := make([]bool, n)
	for _, pair := range strings.Split(spec, ",") {
		chunk, name, ok := strings.Cut(pair, "=")
		i, err := strconv.Atoi(strings.TrimPrefix(chunk, "c"))
		if !ok || err != nil || !strings.HasPrefix(chunk, "c") || name == "" {
			return nil, fmt.Errorf("--%s %s: %q is not of the form c1=UNIT", flag, spec, pair)
		}
		if i < 1 || i > n {
			return nil, fmt.Errorf("--%s %s: there is no chunk %s; there are c1 to c%d", flag, spec, chunk, n)
		}
		if named[i-1] {
			return nil, fmt.Errorf("--%s %s: chunk %s is placed twice", flag, spec, chunk)
		}
		units[i-1], named[i-1] = name, true
	}
	return units, nil
}

// openUnits opens each named unit once and returns the unit of each chunk.
// What it opened is closed again if one cannot be had.
//
// Beside are units of other layouts that this one is compared with, whose cores a
// software driver of a GPU leaves alone as well.
func openUnits(names []string, threads int, qos machine.QoS, beside ...string) ([]unit.Unit, int, error) {
	m, err := machine.Detect()
	if err != nil {
		return nil, 0, fmt.Errorf("finding the cores of this machine: %w", err)
	}
	open := map[string]unit.Unit{}
	var out []unit.Unit
	workers := 0
	for _, name := range names {
		if open[name] == nil {
			u, n, err := openUnit(name, m, threads, qos, slices.Concat(names, beside))
			if err != nil {
				for _, u := range open {
					err = errors.Join(err, u.Close())
				}
				return nil, 0, err
			}
			open[name] = u
			workers += n
		}
		out = append(out, open[name])
	}
	return out, workers, nil
}

// unitCores are the cores of a unit, by the system's numbers: for a GPU none, or
// those that its software driver may use. It is an error if there is no such
// unit.
func unitCores(name string, m *machine.Machine) ([]int, error) {
	if gpu.Is(name) {
		d, err := findGPU(name)
		if err != nil || !d.Software {
			return nil, err
		}
		return m.Usable(), nil
	}
	kind, _, _ := strings.Cut(name, ":")
	if kind != "cpu" {
		return nil, fmt.Errorf("unit %q: this build knows no such unit; `tandem units` lists those it knows", name)
	}
	return cpu.Cores(name, m)
}

// openUnit opens one of the units of a layout, names, and returns its number of
// workers, which spin. CPU work of a low scheduling class on all cores keeps to
// the efficiency cores, where the system tells them.
func openUnit(name string, m *machine.Machine, threads int, qos machine.QoS, names []string) (unit.Unit, int, error) {
	if gpu.Is(name) {
		u, err := openGPU(name, m, threads, names)
		if err != nil {
			return nil, 0, err
		}
		return u, 0, nil
	}
	cores, err := unitCores(name, m)
	if err != nil {
		return nil, 0, err
	}
	if small := m.OfKind(machine.Efficiency); name == defaultUnit && qos.Efficient() && len(small) > 0 {
		cores = small
	}
	n := len(cores)
	if threads > 0 {
		n = min(n, threads)
	}
	u, err := cpu.New(cpu.Config{Name: name, CPUs: cores, Threads: n, QoS: qos, ISA: kernel.Best()})
	if err != nil {
		return nil, 0, err
	}
	return u, n, nil
}

// unitNotes says what a person should know of units: workers that could not be
// pinned, and what units note themselves.
func unitNotes(units []unit.Unit) []string {
	var notes []string
	for _, u := range units {
		var own []string
		switch u := u.(type) {
		case *cpu.Unit:
			if pinned, err := u.Pinned(); !pinned {
				own = append(own, fmt.Sprintf("the workers of unit %s are not pinned to their cores: %v", u.Name(), err))
			}
		case *gpu.Unit:
			own = u.Notes()
		}
		for _, note := range own {
			if !slices.Contains(notes, note) {
				notes = append(notes, note)
			}
		}
	}
	return notes
}
