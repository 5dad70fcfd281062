package machine

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Scheduling classes of sched(7).
const (
	schedOther = 0
	schedBatch = 3
	schedIdle  = 5
)

// SetQoS gives the calling thread a scheduling class until it ends: background
// is SCHED_IDLE with nice 19, utility SCHED_BATCH with nice 10 and
// user-initiated SCHED_OTHER; a nice value that is higher already stays. The
// caller must have locked its goroutine to the thread and must leave it locked,
// because a process without privileges cannot take the class back.
func SetQoS(q QoS) error {
	policy, nice := uint32(schedOther), int32(-20)
	switch q {
	case QoSDefault:
		return nil
	case QoSBackground:
		policy, nice = schedIdle, 19
	case QoSUtility:
		policy, nice = schedBatch, 10
	}
	now, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		return fmt.Errorf("reading the thread's scheduling class: %w", err)
	}
	nice = max(nice, now.Nice)
	// Of threads of class SCHED_IDLE the second call ignores the nice value.
	if err := unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), int(nice)); err != nil {
		return fmt.Errorf("setting the thread's nice value to %d for %s: %w", nice, q, err)
	}
	if err := unix.SchedSetAttr(0, &unix.SchedAttr{Policy: policy, Nice: nice}, 0); err != nil {
		return fmt.Errorf("setting the thread's scheduling class for %s: %w", q, err)
	}
	return nil
}
