package vulkan

import "golang.org/x/sys/windows"

// libraries are the names of the loader.
func libraries() []string { return []string{"vulkan-1.dll"} }

// openLibrary returns the address of a symbol in a library, which stays loaded:
// drivers have threads of their own. A bare name is looked for beside
// the program and in the system's folder, not in the current one.
func openLibrary(name, symbol string) (uintptr, error) {
	lib, err := windows.LoadLibraryEx(name, 0, windows.LOAD_LIBRARY_SEARCH_DEFAULT_DIRS)
	if err != nil {
		return 0, err
	}
	return windows.GetProcAddress(lib, symbol)
}

// setenv does nothing: the driver it is for is not one of Windows.
func setenv(string, string) error { return nil }
