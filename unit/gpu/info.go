package gpu

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/tandemrun/tandem/unit/gpu/metal"
	"github.com/tandemrun/tandem/unit/gpu/vulkan"
)

// overMetal says which of the two interfaces this system's devices are used by.
const overMetal = runtime.GOOS == "darwin"

// Info is a graphics device of this machine, as a unit. Sizes are in bytes.
type Info struct {
	Index    int // N of the name gpu:N
	Name     string
	Type     string // such as "discrete GPU" or "software driver"
	API      string // such as "Vulkan 1.3.230" or "Metal"
	Driver   string
	Kind     string // [Unit.Kind] of its unit
	Lacks    string // what makes it unusable; "" if nothing does
	Software bool   // it is the CPU
	Shared   bool   // it works in the machine's memory
	Memory   int64  // of its own, or what it may use of the machine's
	Free     int64  // of that, for this process; -1 if it does not tell
	Binding  int64  // what a kernel sees of a buffer at most
	// Invocations of a workgroup, at most, and of a subgroup; 0 if it does not tell.
	Workgroup, Subgroup int
	Without             []string // what it does without, which makes it slower or blind

	rank int // the lower the better, where none is named
}

// Devices lists the devices of this machine, also those that cannot be used. An
// error says why there are none to list. The configuration is Vulkan's.
func Devices(cfg vulkan.Config) ([]Info, error) {
	if overMetal {
		system, err := metal.System()
		if err != nil {
			return nil, err
		}
		return describeMetal(metal.Devices(system)), nil
	}
	v, err := vulkan.Open(cfg)
	if err != nil {
		return nil, err
	}
	return describeVulkan(v.Devices()), v.Close()
}

// ranks are the order in which kinds of devices are taken.
var ranks = [...]int{vulkan.Discrete: 0, vulkan.Integrated: 1, vulkan.Virtual: 2, vulkan.Other: 3, vulkan.CPU: 4}

func describeVulkan(devices []vulkan.Info) []Info {
	var out []Info
	for _, d := range devices {
		i := Info{
			Index: d.Index, Name: d.Name, Type: d.Type.String(), API: "Vulkan " + d.API.String(), Driver: strings.TrimSpace(d.Driver),
			Kind: "vulkan/" + d.Name + "/" + d.Driver, Lacks: d.Lacks, Software: d.Type == vulkan.CPU, Shared: d.Shared(), Free: -1,
			Binding: d.Limits.StorageRange, Workgroup: d.Limits.Invocations, Subgroup: d.Limits.Subgroup, rank: len(ranks),
		}
		if int(d.Type) < len(ranks) {
			i.rank = ranks[d.Type]
		}
		var free int64
		for _, h := range d.Heaps {
			if h.Device {
				i.Memory += h.Size
				free += max(h.Free, 0)
			}
		}
		if d.Features.Budget {
			i.Free = free
		}
		for _, x := range []struct {
			has  bool
			what string
		}{
			{d.Features.HostImport || !d.Shared(), "import of mapped files (weights are copied)"},
			{d.Limits.TimestampNanos > 0, "timestamps (operations are not timed)"},
			{d.Features.Budget, "a memory budget (free memory is not known)"},
		} {
			if !x.has {
				i.Without = append(i.Without, x.what)
			}
		}
		out = append(out, i)
	}
	return out
}

func describeMetal(devices []metal.Info) []Info {
	var out []Info
	for _, d := range devices {
		i := Info{
			Index: d.Index, Name: d.Name, Type: "integrated GPU", API: "Metal", Driver: "macOS", Kind: "metal/" + d.Name,
			Shared: d.Unified, Memory: d.Memory, Free: -1, Binding: d.Buffer, rank: 1,
			Without: []string{"a run on hardware so far (the Metal code has run against a stand-in only)"},
		}
		if !d.Unified {
			i.Type, i.rank = "discrete GPU", 0
		}
		out = append(out, i)
	}
	return out
}

// Is reports whether a name is one of units of this package.
func Is(name string) bool {
	kind, _, _ := strings.Cut(name, ":")
	return kind == "gpu"
}

// Choose picks the device that a unit's name means.
func Choose(name string, devices []Info) (Info, error) {
	if len(devices) == 0 {
		return Info{}, fmt.Errorf("unit %s: %w", name, NoDevice())
	}
	_, which, named := strings.Cut(name, ":")
	if !named {
		return best(name, devices)
	}
	var found []Info
	for _, d := range devices {
		if which == fmt.Sprint(d.Index) {
			return d, nil
		}
		if which != "" && strings.Contains(strings.ToLower(d.Name), strings.ToLower(which)) {
			found = append(found, d)
		}
	}
	switch len(found) {
	case 0:
		return Info{}, fmt.Errorf("unit %s: there is no such device; there are %s", name, names(devices))
	case 1:
		return found[0], nil
	}
	return Info{}, fmt.Errorf("unit %s: the name fits %s: give the number", name, names(found))
}

// NoDevice is the error of a machine without a device.
func NoDevice() error {
	if overMetal {
		return metal.ErrNoMetal
	}
	return vulkan.ErrNoDriver
}

// best is the device to use where none is named: a real one before a software
// driver, one with memory of its own first.
func best(name string, devices []Info) (Info, error) {
	found := -1
	var why []string
	for i, d := range devices {
		if d.Lacks != "" {
			why = append(why, d.Name+": "+d.Lacks)
		} else if found < 0 || d.rank < devices[found].rank {
			found = i
		}
	}
	if found < 0 {
		return Info{}, fmt.Errorf("unit %s: no device can be used: %s", name, strings.Join(why, "; "))
	}
	return devices[found], nil
}

func names(devices []Info) string {
	var out []string
	for _, d := range devices {
		out = append(out, fmt.Sprintf("gpu:%d (%s)", d.Index, d.Name))
	}
	return strings.Join(out, ", ")
}
