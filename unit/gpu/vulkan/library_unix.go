//go:build darwin || freebsd || linux || netbsd

package vulkan

import (
	"errors"
	"runtime"
	"unsafe"

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

// setenv sets a variable of the environment as C code sees it, which is not the
// one that package os changes.
func setenv(name, value string) error {
	fn, err := purego.Dlsym(purego.RTLD_DEFAULT, "setenv")
	if err != nil {
		return err
	}
	if r, _, _ := purego.SyscallN(fn, uintptr(unsafe.Pointer(cstring(name))), uintptr(unsafe.Pointer(cstring(value))), 1); int32(r) != 0 {
		return errors.New("the environment variable " + name + " cannot be set")
	}
	return nil
}
