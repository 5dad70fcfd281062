package vulkan

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A software driver computes with as many threads as it is told to.
func TestSoftwareThreads(t *testing.T) {
	count := func() int {
		n := 0
		files := must[[]string](t)(filepath.Glob("/proc/self/task/*/comm"))
		for _, f := range files {
			if name, err := os.ReadFile(f); err == nil && strings.HasPrefix(string(name), "llvmpipe-") {
				n++
			}
		}
		return n
	}
	before := count()
	v := open(t, Config{SoftwareThreads: 1})
	if v.Devices()[0].Type != CPU {
		t.Skip("a real device")
	}
	d := must[*Device](t)(v.Device(0))
	if n := count() - before; n != 1 {
		t.Errorf("the driver has %d threads", n)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}
