package quant

import (
	"os"
	"os/exec"
	"regexp"
	"testing"
)

// TestNoFusedMultiplyAdd compiles the package for arm64, where the compiler fuses a product and a sum unless the product
// is converted explicitly, and looks for such instructions: they would make results depend on the machine.
func TestNoFusedMultiplyAdd(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the package for another architecture")
	}
	tool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("needs the go command")
	}
	cmd := exec.Command(tool, "build", "-gcflags=-S", ".")
	cmd.Env = append(os.Environ(), "GOARCH=arm64", "GOOS=linux", "CGO_ENABLED=0")
	listing, err := cmd.CombinedOutput()
	if err != nil {
		t.Skipf("cannot compile for arm64: %v\n%.2000s", err, listing)
	}
	if !regexp.MustCompile(`FMULS`).Match(listing) {
		t.Fatal("the listing has no multiplication at all: the test looks at the wrong thing")
	}
	for _, line := range regexp.MustCompile(`(?m)^.*\bFN?M(ADD|SUB)[SD]?\b.*$`).FindAll(listing, 10) {
		t.Errorf("fused: %s", line)
	}
}
