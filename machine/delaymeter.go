package machine

import "time"

// A DelayMeter reads how long threads were ready to run and did not, over and
// over. Unlike [RunDelay] it counts the threads that are pinned, the workers of
// CPU units, as long as there are any: those of the runtime, which look for work
// that is not there while all CPUs are busy, wait and disturb nobody. And a worker
// that waited while the process's own other threads ran was not put off by others:
// as much as those ran between two readings does not count. It keeps
// the files of the threads open, so that a reading takes some microseconds a
// thread; what a thread waited between the last reading and its end is lost. The zero
// value is ready; it is used by one goroutine at a time and closed in the end.
type DelayMeter struct {
	threads map[string]*threadDelay
	counted time.Duration // so far
	allowed int           // CPUs of a thread that is not pinned: the most of any
	pinned  bool          // there are or were pinned threads
}
