package machine

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// A thread gets the class and the nice value that were asked for, and others
// of the process keep theirs.
func TestSetQoS(t *testing.T) {
	before, err := unix.SchedGetAttr(unix.Getpid(), 0)
	if err != nil {
		t.Skipf("this system does not tell scheduling classes: %v", err)
	}
	for _, test := range []struct {
		q      QoS
		policy uint32
		nice   int32
	}{
		{QoSDefault, before.Policy, before.Nice},
		{QoSUserInitiated, schedOther, before.Nice},
		{QoSUtility, schedBatch, max(10, before.Nice)},
		{QoSBackground, schedIdle, 19},
	} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			runtime.LockOSThread() // the thread ends with the goroutine
			if err := SetQoS(test.q); err != nil {
				t.Errorf("%q: %v", test.q, err)
				return
			}
			got, err := unix.SchedGetAttr(0, 0)
			if err != nil {
				t.Error(err)
				return
			}
			// SchedGetAttr tells no nice value of SCHED_IDLE threads.
			raw, err := unix.Getpriority(unix.PRIO_PROCESS, unix.Gettid())
			if err != nil {
				t.Error(err)
			}
			if nice := int32(20 - raw); got.Policy != test.policy || nice != test.nice {
				t.Errorf("%q: class %d, nice %d; want %d, %d", test.q, got.Policy, nice, test.policy, test.nice)
			}
		}()
		<-done
	}
	after, err := unix.SchedGetAttr(unix.Getpid(), 0)
	if err != nil || after.Policy != before.Policy || after.Nice != before.Nice {
		t.Errorf("the first thread has changed from %+v to %+v (%v)", before, after, err)
	}
}
