package machine

import "errors"

// ErrUnsupported is returned where the system offers no such call.
var ErrUnsupported = errors.New("not supported on this system")
