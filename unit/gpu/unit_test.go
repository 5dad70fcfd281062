package gpu

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/tandemrun/tandem/unit/conformance"
	"github.com/tandemrun/tandem/unit/gpu/vulkan"
)

// missing skips a test for want of a device, or fails it if TANDEM_REQUIRE_GPU
// says that there must be one.
func missing(t testing.TB, err error) {
	t.Helper()
	if os.Getenv("TANDEM_REQUIRE_GPU") != "" {
		t.Fatal(err)
	}
	t.Skip("there is no Vulkan device here: ", err)
}

// open opens a unit with the validation layer on. Closing it must leave nothing
// behind, or the layer says so.
func open(t testing.TB, cfg Config) *Unit {
	t.Helper()
	if cfg.Name == "" {
		cfg.Name = "gpu"
	}
	cfg.Vulkan.Validate = true
	u, err := New(cfg)
	if err != nil {
		missing(t, err)
	}
	t.Cleanup(func() {
		if err := u.Close(); err != nil {
			t.Error(err)
		}
		for _, m := range u.Messages() {
			t.Error("the validation layer says: ", m)
		}
	})
	return u
}

// suite runs the checks of package conformance, or a few of them in short mode:
// the software driver takes seconds to compile the kernels of a type.
func suite(t *testing.T, u *Unit, of func(check string) bool) {
	for _, c := range conformance.Checks() {
		if !of(c.Name) {
			continue
		}
		if testing.Short() && !strings.HasPrefix(c.Name, "errors") && c.Name != "operations/Q4_0" && c.Name != "equal/merged/f16" {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			if err := c.Run(t.Context(), u); err != nil {
				t.Error(err)
			}
		})
	}
}

// all are all checks.
func all(string) bool { return true }

// memory are the checks that tell whether weights, caches and rows are where they
// should be: an operation on each type of weight, and all that compares bits, with
// one type of cache. The others run the same kernels again.
func memory(check string) bool {
	kind, what, _ := strings.Cut(check, "/")
	switch kind {
	case "operations":
		return strings.ToUpper(what) == what
	case "cache":
		return true
	}
	return !strings.Contains(what, "/") || strings.HasSuffix(what, "/f16")
}

func TestConformance(t *testing.T) {
	suite(t, open(t, Config{Cache: t.TempDir()}), all)
}

// With limits lower than they may be, tensors are cut into pieces and memory is
// copied instead of imported; the results are the same.
func TestConformanceSmallLimits(t *testing.T) {
	suite(t, open(t, Config{Vulkan: vulkan.Config{Alter: func(i *vulkan.Info) {
		i.Limits.StorageRange, i.Limits.StorageAlign = 1_000_000, 256 // the least that the caches of the suite fit in
		i.Features = vulkan.Features{}
	}}}), memory)
}

func TestChoose(t *testing.T) {
	devices := describeVulkan([]vulkan.Info{
		{Index: 0, Name: "llvmpipe (LLVM 15.0.6, 256 bits)", Type: vulkan.CPU},
		{Index: 1, Name: "Intel(R) UHD Graphics", Type: vulkan.Integrated},
		{Index: 2, Name: "NVIDIA H200", Type: vulkan.Discrete},
		{Index: 3, Name: "NVIDIA H200", Type: vulkan.Discrete, Lacks: "something"},
	})
	for name, want := range map[string]int{"gpu": 2, "gpu:0": 0, "gpu:3": 3, "gpu:llvmpipe": 0, "gpu:uhd": 1} {
		if d, err := Choose(name, devices); err != nil || d.Index != want {
			t.Errorf("%s is device %d, %v", name, d.Index, err)
		}
	}
	for _, name := range []string{"gpu:7", "gpu:nvidia", "gpu:", "gpu:radeon"} {
		if d, err := Choose(name, devices); err == nil {
			t.Errorf("%s is device %d", name, d.Index)
		}
	}
	if _, err := Choose("gpu", devices[3:]); err == nil {
		t.Error("a device that lacks something was chosen")
	}
	if _, err := Choose("gpu", nil); !errors.Is(err, vulkan.ErrNoDriver) {
		t.Error(err)
	}
}
