package tandem

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/tandemrun/tandem/machine"
	"github.com/tandemrun/tandem/unit/cpu"
	"github.com/tandemrun/tandem/unit/gpu"
	"github.com/tandemrun/tandem/unit/gpu/vulkan"
)

// GPU describes a graphics device. Sizes are in bytes.
type GPU struct {
	Device    string   `json:"device"`
	Type      string   `json:"type"` // such as "discrete GPU" or "software driver"
	API       string   `json:"api"`
	Driver    string   `json:"driver"`
	Memory    int64    `json:"memory_bytes"`          // of the device's own heaps
	Free      int64    `json:"free_bytes,omitempty"`  // of them, for this process; 0 if the driver does not tell
	Binding   int64    `json:"buffer_range_bytes"`    // what a kernel sees of a buffer at most
	Workgroup int      `json:"workgroup_invocations"` // at most; 0 if the device does not tell
	Subgroup  int      `json:"subgroup_invocations"`
	Lacks     []string `json:"lacks,omitempty"` // what it does without, which makes it slower or blind
	// Handoffs are what MeasureGPUs measured.
	Handoffs []HandoffCost `json:"handoffs,omitempty"`
}

// openGPU opens the unit of a name such as "gpu" or "gpu:0". A software driver
// computes on the cores that no CPU unit beside it has.
func openGPU(name string, m *machine.Machine, threads int, names []string) (*gpu.Unit, error) {
	cfg := gpu.Config{Name: name}
	if dir, err := os.UserCacheDir(); err == nil { // without one kernels are compiled in each process
		cfg.Cache = filepath.Join(dir, "tandem", "vulkan")
	}
	d, err := findGPU(name)
	if err != nil {
		return nil, err
	}
	if d.Software {
		taken := map[int]bool{}
		for _, other := range names {
			if !gpu.Is(other) {
				cores, err := cpu.Cores(other, m)
				if err != nil {
					return nil, err
				}
				for _, id := range cores {
					taken[id] = true
				}
			}
		}
		cfg.CPUs = slices.DeleteFunc(m.Usable(), func(id int) bool { return taken[id] })
		if threads > 0 {
			cfg.CPUs = cfg.CPUs[:min(threads, len(cfg.CPUs))]
		}
	}
	return gpu.New(cfg)
}

// findGPU is the device that a unit's name means.
func findGPU(name string) (gpu.Info, error) {
	devices, err := gpu.Devices(vulkan.Config{})
	if err != nil {
		return gpu.Info{}, fmt.Errorf("unit %s: %w", name, err)
	}
	return gpu.Choose(name, devices)
}

// gpuUnits lists the graphics devices as units, or the one unit gpu with the
// reason why there are none.
func gpuUnits() []UnitInfo {
	devices, err := gpu.Devices(vulkan.Config{})
	if err == nil && len(devices) == 0 {
		err = gpu.NoDevice()
	}
	if err != nil {
		return []UnitInfo{{Name: "gpu", Why: err.Error()}}
	}
	var out []UnitInfo
	for _, d := range devices {
		g := describeGPU(d)
		u := UnitInfo{Name: fmt.Sprintf("gpu:%d", d.Index), Usable: d.Lacks == "", Why: d.Lacks, Kind: d.Kind, GPU: &g}
		if !u.Usable {
			u.Kind = ""
		}
		out = append(out, u)
	}
	return out
}

func describeGPU(d gpu.Info) GPU {
	return GPU{Device: d.Name, Type: d.Type, API: d.API, Driver: d.Driver, Memory: d.Memory, Free: max(d.Free, 0),
		Binding: d.Binding, Workgroup: d.Workgroup, Subgroup: d.Subgroup, Lacks: d.Without}
}

// ownMemory is what a unit has of memory of its own, apart from the machine's:
// that of a discrete GPU. It is 0 for other units, and what is free of it is -1
// where the driver does not tell.
func ownMemory(name string) (total, free int64, err error) {
	if !gpu.Is(name) {
		return 0, 0, nil
	}
	d, err := findGPU(name)
	if err != nil || d.Shared {
		return 0, 0, err
	}
	return d.Memory, d.Free, nil
}

// A HandoffCost is what it takes to bring rows of tasks or of caches to a GPU
// ("in") or from it ("out"): CallUS microseconds once, and NSPerByte nanoseconds
// for each byte.
type HandoffCost struct {
	What      string  `json:"what"`
	CallUS    float64 `json:"call_us"`
	NSPerByte float64 `json:"ns_per_byte"`
}

// MeasureGPUs adds to the GPUs of a host what handoffs to and from them cost.
func MeasureGPUs(ctx context.Context, h *Host) error {
	m, err := machine.Detect()
	if err != nil {
		return fmt.Errorf("finding the cores of this machine: %w", err)
	}
	for i := range h.Units {
		x := &h.Units[i]
		if x.GPU == nil || !x.Usable {
			continue
		}
		u, err := openGPU(x.Name, m, 0, []string{x.Name})
		if err != nil {
			return err
		}
		costs, err := u.MeasureHandoffs(ctx)
		if err = errors.Join(err, u.Close()); err != nil {
			return err
		}
		for _, c := range costs {
			x.GPU.Handoffs = append(x.GPU.Handoffs, HandoffCost{c.What, float64(c.Call.Nanoseconds()) / 1e3, c.PerByte})
		}
	}
	return nil
}
