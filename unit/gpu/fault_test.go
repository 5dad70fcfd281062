package gpu

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tandemrun/tandem/engine"
	"github.com/tandemrun/tandem/unit"
	"github.com/tandemrun/tandem/unit/gpu/compute"
	"github.com/tandemrun/tandem/unit/gpu/vulkan"
)

// faults answers calls of the API with an error when told to.
type faults struct {
	call   atomic.Pointer[string]
	after  atomic.Int32 // calls of that name that still succeed
	result vulkan.Result
}

func (f *faults) config() vulkan.Config {
	return vulkan.Config{Fault: func(call string) vulkan.Result {
		if p := f.call.Load(); p != nil && *p == call && f.after.Add(-1) < 0 {
			return f.result
		}
		return vulkan.Success
	}}
}

func (f *faults) fail(call string, after int, r vulkan.Result) {
	f.result = r
	f.after.Store(int32(after))
	f.call.Store(&call)
}

// A device that is lost in the middle of an answer ends the streams with an
// error that names the unit and the cause; the engine closes, and nothing is
// left behind on the device or in the process.
func TestDeviceLost(t *testing.T) {
	var f faults
	u := openOwned(t, Config{Vulkan: f.config()})
	c := openCPU(t, "cpu:0")
	e := start(t, loadModel(t, "tiny/tiny-q8_0.gguf"), []unit.Unit{c, u, c, u}, func(*engine.Config) {})
	defer closeEngine(t, e)
	first, err := e.Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	second, err := e.Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	forward := func(s *engine.Stream) error {
		return s.Forward(t.Context(), []int32{2, 105, 10, 11, 12}, engine.Last, func(int, []float32) error { return nil })
	}
	for _, s := range []*engine.Stream{first, second} {
		if err := forward(s); err != nil {
			t.Fatal(err)
		}
	}
	f.fail("vkQueueSubmit", 1, vulkan.DeviceLost)
	for i, s := range []*engine.Stream{first, second, first} {
		err := forward(s)
		lost := (*unit.LostError)(nil)
		if !errors.As(err, &lost) || lost.Unit != "gpu" || !errors.Is(err, vulkan.DeviceLost) || !strings.Contains(err.Error(), "vkQueueSubmit") {
			t.Errorf("call %d: %v", i, err)
		}
	}
	first.Close()
	second.Close()
	third, err := e.Stream(t.Context()) // the slots are free
	if err != nil {
		t.Fatal(err)
	}
	third.Close()
}

// Whatever call fails for want of memory while a model is loaded, the error says
// so and names the unit, and nothing is left behind.
func TestNoMemory(t *testing.T) {
	m := loadModel(t, "tiny/tiny-q8_0.gguf")
	p, err := m.Program(0, len(m.Layers))
	if err != nil {
		t.Fatal(err)
	}
	var f faults
	cfg := f.config()
	cfg.Alter = func(i *vulkan.Info) { i.Features.HostImport = false } // copy, to allocate more
	u := open(t, Config{Vulkan: cfg})
	o := unit.Options{Slots: 1, Context: 128, Block: 16}
	for _, call := range []string{"vkAllocateMemory", "vkCreateBuffer", "vkMapMemory", "vkCreateComputePipelines", "vkAllocateDescriptorSets", "vkAllocateCommandBuffers"} {
		for after := range 4 {
			f.fail(call, after, vulkan.OutOfMemory)
			c, err := u.Compile(t.Context(), p, o)
			if err == nil {
				if after == 0 && call != "vkCreateComputePipelines" {
					t.Errorf("%s failed and the chunk was made", call)
				}
				err = c.Close()
				if err != nil {
					t.Error(err)
				}
				continue
			}
			if !errors.Is(err, compute.ErrMemory) || !strings.Contains(err.Error(), call) || !strings.Contains(err.Error(), "unit gpu") {
				t.Errorf("%s: %v", call, err)
			}
		}
	}
	f.call.Store(nil)
	c, err := u.Compile(t.Context(), p, o)
	if err != nil {
		t.Fatal(err) // the unit is as before
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// Memory that is exhausted in a run is an error of that run; the chunk goes on.
func TestNoMemoryInRun(t *testing.T) {
	var f faults
	u := openOwned(t, Config{Vulkan: f.config()})
	e := start(t, loadModel(t, "tiny/tiny-q8_0.gguf"), []unit.Unit{u}, func(*engine.Config) {})
	defer closeEngine(t, e)
	s, err := e.Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	forward := func(n int) error {
		return s.Forward(t.Context(), make([]int32, n), engine.Last, func(int, []float32) error { return nil })
	}
	f.fail("vkAllocateCommandBuffers", 0, vulkan.OutOfHostMemory)
	if err := forward(3); !errors.Is(err, compute.ErrMemory) { // a shape that was not recorded
		t.Error(err)
	}
	f.call.Store(nil)
	if err := forward(3); err != nil {
		t.Error(err)
	}
}

// What a device must have and lacks is named before anything is made.
func TestMissing(t *testing.T) {
	open(t, Config{}) // skips without a device
	for name, c := range map[string]struct {
		cfg  vulkan.Config
		says string
	}{
		"no library": {vulkan.Config{Library: "/nonexistent/libvulkan.so"}, "no Vulkan loader library"},
		"no driver": {vulkan.Config{Fault: func(call string) vulkan.Result {
			if call == "vkCreateInstance" {
				return vulkan.NoDriver
			}
			return vulkan.Success
		}}, "no Vulkan driver is installed"},
		"old driver": {vulkan.Config{Alter: func(i *vulkan.Info) { i.API = vulkan.MakeVersion(1, 1, 0) }}, "version 1.1.0 of Vulkan"},
		"feature refused": {vulkan.Config{Fault: func(call string) vulkan.Result {
			if call == "vkCreateDevice" {
				return vulkan.FeatureMissing
			}
			return vulkan.Success
		}}, "a feature is missing"},
	} {
		u, err := New(Config{Name: "gpu", Vulkan: c.cfg})
		if err == nil {
			u.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "gpu") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A cancelled load leaves nothing behind.
func TestCancelledCompile(t *testing.T) {
	m := loadModel(t, "tiny/tiny-q8_0.gguf")
	p, err := m.Program(0, len(m.Layers))
	if err != nil {
		t.Fatal(err)
	}
	u := open(t, Config{Vulkan: vulkan.Config{Alter: func(i *vulkan.Info) { i.Features.HostImport = false }}})
	ctx, cancel := context.WithCancel(t.Context())
	o := unit.Options{Slots: 1, Context: 128, Block: 16, Progress: func(int64) { cancel() }}
	if c, err := u.Compile(ctx, p, o); err == nil {
		c.Close()
		t.Error("a cancelled load succeeded")
	}
}
