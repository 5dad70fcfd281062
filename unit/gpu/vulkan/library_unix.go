//go:build darwin || freebsd || linux || netbsd

package vulkan

import (
	"runtime"

	"github.com/ebitengine/purego"
)

// libraries are the names of the loader, or of a driver that can stand for it.
func libraries() []string {
	if runtime.GOOS == "darwin" {
		return []string{"libvulkan.1.dylib", "libvulkan.dylib", "libMoltenVK.dylib",
			"/opt/homebrew/lib/libvulkan.1.dylib", "/usr/local/lib/libvulkan.1.dylib", "/opt/homebrew/lib/libMoltenVK.dylib", "/usr/local/lib/libMoltenVK.dylib"}
	}
	return []string{"libvulkan.so.1", "libvulkan.so"}
}

// openLibrary returns the address of a symbol in a library, which stays loaded:
// drivers have threads of their own.
func openLibrary(name, symbol string) (uintptr, error) {
	lib, err := purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return 0, err
	}
	return purego.Dlsym(lib, symbol)
}
