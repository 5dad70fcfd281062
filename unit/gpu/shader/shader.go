// Package shader holds the compute kernels of the graphics units: GLSL sources
// in glsl/, and what is made of them for Vulkan (SPIR-V) and Metal (MSL). Both
// are checked in and embedded, so a build needs no compiler; after a change to
// a source, go generate makes them anew. A test compiles the sources and
// compares, where the compilers are installed.
//
// # What kernels promise
//
// They need no feature and no extension beyond Vulkan 1.2: no subgroup
// operations, no 8-bit or 16-bit storage, no half-precision arithmetic.
// Workgroups have 64 invocations and use at most 16 KiB of shared memory,
// buffers are storage buffers 0, 1, ... of set 0, and there are at most 64
// bytes of push constants: what every device has.
//
// A result depends on its own row alone: which other rows are there, how they
// are cut into dispatches and which of two kernels for the same operation runs
// changes no bit. See docs/gpu.md for the order of sums.
package shader

import (
	"embed"
	"fmt"
)

//go:generate go run ./gen

// A Kernel is a compute shader.
type Kernel struct {
	Name     string
	Bindings int // storage buffers
	Push     int // words of push constants
	// Constants is the number of specialisation constants, with ids from 0 on.
	Constants int
	// SPIRV is the module; its entry point is "main".
	SPIRV []byte
	// MSL is the source for Metal; its entry point is "main0", storage buffer i is
	// buffer i, and the push constants are buffer [PushIndex]. It is empty for
	// matrow, which software drivers use.
	MSL string
}

// PushIndex is the number of the buffer of push constants in MSL.
const PushIndex = 8

// Invocations is the size of a workgroup of every kernel.
const Invocations = 64

//go:embed spirv/*.spv msl/*.metal
var modules embed.FS

// kernels are all kernels, without their modules.
var kernels = [...]Kernel{
	{Name: "attention", Bindings: 6, Push: 10, Constants: 5},
	{Name: "embed", Bindings: 2, Push: 6, Constants: 1},
	{Name: "map", Bindings: 4, Push: 8, Constants: 1},
	{Name: "matmul", Bindings: 4, Push: 10, Constants: 1},
	{Name: "matrow", Bindings: 4, Push: 10, Constants: 4},
	{Name: "matvec", Bindings: 4, Push: 10, Constants: 3},
	{Name: "rmsnorm", Bindings: 3, Push: 7},
	{Name: "rope", Bindings: 3, Push: 6, Constants: 1},
	{Name: "store", Bindings: 5, Push: 7, Constants: 1},
}

// Names lists the kernels.
func Names() []string {
	var out []string
	for _, k := range kernels {
		out = append(out, k.Name)
	}
	return out
}

// Lookup returns a kernel by name.
func Lookup(name string) (Kernel, error) {
	for _, k := range kernels {
		if k.Name != name {
			continue
		}
		var err error
		if k.SPIRV, err = modules.ReadFile("spirv/" + name + ".spv"); err != nil {
			return k, err
		}
		if name != "matrow" {
			var source []byte
			source, err = modules.ReadFile("msl/" + name + ".metal")
			k.MSL = string(source)
		}
		return k, err
	}
	return Kernel{}, fmt.Errorf("there is no kernel %q", name)
}
