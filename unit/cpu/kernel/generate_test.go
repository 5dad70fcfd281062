package kernel

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestGenerated runs the generator and compares what it writes with what is checked in.
func TestGenerated(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the generator: not in short mode")
	}
	dir := t.TempDir()
	gen := filepath.Join(dir, "gen-binary")
	build := exec.Command("go", "build", "-o", gen, ".")
	build.Dir = "gen"
	build.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "GOOS=", "GOARCH=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Skipf("the generator cannot be built here (its modules may be missing): %v\n%s", err, out)
	}
	out := filepath.Join(dir, "out")
	if err := os.Mkdir(out, 0o755); err != nil {
		t.Fatal(err)
	}
	if text, err := exec.Command(gen, "-o", out).CombinedOutput(); err != nil {
		t.Fatalf("the generator failed: %v\n%s", err, text)
	}
	files, err := os.ReadDir(out)
	if err != nil || len(files) == 0 {
		t.Fatalf("the generator wrote no file (%v)", err)
	}
	for _, f := range files {
		want, err := os.ReadFile(filepath.Join(out, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(f.Name()); err != nil || string(got) != string(want) {
			t.Errorf("%s is not what the generator writes: run go generate (%v)", f.Name(), err)
		}
	}
}
