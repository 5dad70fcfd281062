package main

import "testing"

// The answer does not depend on the scheduling class.
func TestQoS(t *testing.T) {
	for _, class := range []string{"background", "utility", "user-initiated"} {
		if got := succeed(t, "", "run", "--qos", class, "--threads", "1", "-n", "3", "Hello"); got != "Hello! How\n" {
			t.Errorf("%s: %q", class, got)
		}
	}
}
