//go:build !linux && !darwin

package machine

import (
	"fmt"
	"runtime"
)

// SetQoS returns ErrUnsupported on this system, unless q is QoSDefault.
func SetQoS(q QoS) error {
	if q == QoSDefault {
		return nil
	}
	return fmt.Errorf("scheduling class %s: %w (%s); linux and darwin have them", q, ErrUnsupported, runtime.GOOS)
}
