package main

import (
	"os"
	"testing"
)

// asTandem in the environment makes the test binary the program itself, for
// commands that run commands.
const asTandem = "TANDEM_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asTandem) != "" {
		main()
	}
	os.Exit(m.Run())
}

// self is the path of this program, made to behave as tandem.
func self(t *testing.T) string {
	t.Helper()
	t.Setenv(asTandem, "1")
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}
