//go:build unix

package power

import (
	"os/exec"
	"syscall"
)

// detach keeps an interrupt at the terminal from a program that samples: it has
// to see the end of what it measures.
func detach(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
