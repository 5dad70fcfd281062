//go:build !linux

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
	return fmt.Errorf("scheduling class %s: %w (%s); only linux has them so far", q, ErrUnsupported, runtime.GOOS)
}
