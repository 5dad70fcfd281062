//go:build !noasm && amd64 && !linux

package kernel

// allowTiles reports that this process may not use the tile registers of AMX: how other systems are asked was not tried.
func allowTiles() bool { return false }
