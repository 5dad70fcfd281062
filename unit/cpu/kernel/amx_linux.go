//go:build !noasm && amd64

package kernel

import "golang.org/x/sys/unix"

// allowTiles asks the system to let this process use the tile registers of AMX, whose state is too large to be saved for
// every process, and reports whether it may (Linux, Documentation/arch/x86/xstate.rst).
func allowTiles() bool {
	const requestPermission, tileData = 0x1023, 18
	_, _, errno := unix.RawSyscall(unix.SYS_ARCH_PRCTL, requestPermission, tileData, 0)
	return errno == 0
}
