//go:build !linux

package machine

// SharpenTimers does nothing: the timers of this system have no slack to be set.
func SharpenTimers() error { return nil }
