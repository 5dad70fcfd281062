package machine

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/ebitengine/purego"
)

// classOfDarwin is the system's number of a class, from sys/qos.h of the
// macOS SDK.
func classOfDarwin(q QoS) uintptr {
	switch q {
	case QoSBackground:
		return 0x09 // QOS_CLASS_BACKGROUND
	case QoSUtility:
		return 0x11 // QOS_CLASS_UTILITY
	}
	return 0x19 // QOS_CLASS_USER_INITIATED
}

// SetQoS gives the calling thread the system's QoS class of that name. The
// caller must have locked its goroutine to the thread and should leave it
// locked, so that the thread ends with the goroutine.
//
// It has been compiled, and never run on hardware.
func SetQoS(q QoS) error {
	if q == QoSDefault {
		return nil
	}
	lib, err := purego.Dlopen("/usr/lib/libSystem.B.dylib", purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return fmt.Errorf("scheduling class %s: %w", q, err)
	}
	set, err := purego.Dlsym(lib, "pthread_set_qos_class_self_np")
	if err != nil {
		return fmt.Errorf("scheduling class %s: %w", q, err)
	}
	if set == 0 {
		return fmt.Errorf("scheduling class %s: %w", q, errors.Join(ErrUnsupported, errors.New("the system has no pthread_set_qos_class_self_np")))
	}
	// int pthread_set_qos_class_self_np(qos_class_t, int relative_priority)
	if code, _, _ := purego.SyscallN(set, classOfDarwin(q), 0); int32(code) != 0 {
		return fmt.Errorf("setting the thread's scheduling class for %s: %w", q, syscall.Errno(code))
	}
	return nil
}
