package machine

import (
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A Parker is where a goroutine waits that is locked to its thread. The Go
// scheduler wakes such a goroutine by way of a second thread, which has to be woken
// first, and which may have to wait for a CPU: on two cores of a virtual machine,
// where the kernel takes a halted CPU for one that is not there, one wake in five
// came milliseconds late. A futex(2) wakes the thread itself. The zero value is
// ready. It keeps its place in the Go scheduler for some milliseconds while it
// waits, so GOMAXPROCS must be larger than the number of such goroutines.
type Parker struct{ unparked atomic.Uint32 }

const (
	futexWait = 0 | 128 // FUTEX_WAIT and FUTEX_PRIVATE_FLAG
	futexWake = 1 | 128
)

// Park waits until Unpark is called, or has been since Park returned last. One
// goroutine waits at a parker.
func (p *Parker) Park() {
	for p.unparked.Swap(0) == 0 {
		// It returns at once if the word is not 0 any more, and now and then without a
		// reason.
		unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&p.unparked)), futexWait, 0, 0, 0, 0)
	}
}

// Unpark lets the goroutine go on that waits or is about to. It does not block.
func (p *Parker) Unpark() {
	if p.unparked.Swap(1) == 0 {
		unix.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&p.unparked)), futexWake, 1, 0, 0, 0)
	}
}
