//go:build !linux

package machine

import "time"

// RunDelay is how long the threads of this process have been ready to run but
// not running; false where the system does not tell, as here.
func RunDelay() (time.Duration, bool) { return 0, false }
