package machine

import "time"

// A DelayMeter reads how long threads were ready to run and did not, over and
// over. Unlike [RunDelay] it counts the threads that are pinned, the workers of
// CPU units, as long as there are any: those of the runtime, which look for work
// that is not there while all CPUs are busy, wait and disturb nobody. It keeps
// the files of the threads open, so that a reading takes some microseconds a
// thread, and goes on counting what threads had waited that have ended. The zero
// value is ready; it is used by one goroutine at a time and closed in the end.
type DelayMeter struct {
	threads map[string]*threadDelay
	ended   [2]time.Duration // of threads that have ended: all, and those that were pinned
	allowed int              // CPUs of a thread that is not pinned: the most of any
	pinned  bool             // there are or were pinned threads
}
