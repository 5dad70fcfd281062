//go:build !darwin

package metal

// System opens the system's runtime and Metal.
func System() (Runtime, error) { return nil, ErrNoMetal }
