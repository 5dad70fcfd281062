package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/tandemrun/tandem"
)

// needGPU skips a test where there is no Vulkan device, or fails it if
// TANDEM_REQUIRE_GPU says that there must be one.
func needGPU(t *testing.T) {
	t.Helper()
	h, err := tandem.Units()
	if err != nil {
		t.Fatal(err)
	}
	why := ""
	for _, u := range h.Units {
		if strings.HasPrefix(u.Name, "gpu") {
			if u.Usable {
				return
			}
			why = u.Why
		}
	}
	if os.Getenv("TANDEM_REQUIRE_GPU") != "" {
		t.Fatal(why)
	}
	t.Skip("there is no Vulkan device here: ", why)
}

// A model on the GPU, or split across CPU and GPU, answers as on the CPU.
func TestRunOnGPU(t *testing.T) {
	needGPU(t)
	want := succeed(t, "", "run", "Hello")
	for _, place := range []string{"c3=gpu", "gpu:0"} {
		// That gpu is a software driver here is noted.
		if code, got, stderr := command(t, "", "run", "--place", place, "Hello"); code != 0 || got != want {
			t.Errorf("--place %s: %d, %q, %s", place, code, got, stderr)
		}
	}
}

func TestGPUNames(t *testing.T) {
	needGPU(t)
	for _, name := range []string{"gpu:99", "gpu:no such device"} {
		code, _, stderr := command(t, "", "run", "--place", name, "Hello")
		if code != 1 || !strings.Contains(stderr, name) || !strings.Contains(stderr, "gpu:0 (") {
			t.Errorf("%d: %s", code, stderr)
		}
	}
	var h tandem.Host
	if err := json.Unmarshal([]byte(succeed(t, "", "units", "--json")), &h); err != nil {
		t.Fatal(err)
	}
	last := h.Units[len(h.Units)-1]
	if last.GPU == nil || last.GPU.Device == "" || last.GPU.Binding == 0 || !strings.HasPrefix(last.Kind, "vulkan/") {
		t.Errorf("%+v", last)
	}
}
