// Package gpu is the unit that runs chunks on a graphics device, through Vulkan,
// or Metal on macOS, and without cgo. The Metal side has not run on hardware yet.
//
// # What is where
//
// Weights are on the device as the file lays them out. Where the device works
// in the machine's own memory and its driver can import memory, it reads them
// in the mapped file and there is no copy; elsewhere they are copied when a
// chunk is compiled, and the file's pages are released. KV caches are on the
// device. Tables that are looked up by row stay in the file: the host gathers
// the rows that a task's tokens name.
//
// # How a task runs
//
// The operations of a program become dispatches of the kernels of package
// shader. They are recorded once for each shape of a task (how many rows, how
// many of them wanted) and submitted as often as a task of that shape comes;
// what changes (tokens, positions, slots, rows handed over) is in one small
// buffer that the host writes before. Run returns when the device is done.
//
// # What it promises
//
// What package unit asks of every unit, bits included: they are equal on one
// device with one driver, which is what [Unit.Kind] names, and differ from
// those of CPUs. The suite of package conformance runs on it with the
// validation layer on.
//
// A device that was lost makes Run return a [unit.LostError], on every chunk
// of the unit from then on; memory that is exhausted is an error of Compile, or
// of Run for buffers made later. Neither leaves anything behind after Close.
// Nothing runs elsewhere instead: a device that lacks something is an error
// that names it, or another kernel, never a CPU.
package gpu

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"

	"github.com/tandemrun/tandem/machine"
	"github.com/tandemrun/tandem/unit"
	"github.com/tandemrun/tandem/unit/gpu/compute"
	"github.com/tandemrun/tandem/unit/gpu/metal"
	"github.com/tandemrun/tandem/unit/gpu/vulkan"
)

// Config says which device a unit is.
type Config struct {
	// Name is "gpu", the best device there is; "gpu:1", the device of that number;
	// or "gpu:NAME", the one whose name contains NAME in any case.
	Name string
	// CPUs are the cores that a software driver's threads are pinned to. Without
	// any, and for real devices, nothing is pinned.
	CPUs []int
	// Cache is a folder for compiled pipelines; "" keeps none.
	Cache string
	// Vulkan opens the loader. Tests change it.
	Vulkan vulkan.Config
}

// Unit is a device with one queue. See [unit.Unit] for who may call what when.
type Unit struct {
	cfg      Config
	instance *vulkan.Instance // nil over Metal
	dev      compute.Device
	info     Info
	lost     error
	notes    []string
}

// New opens a device.
func New(cfg Config) (*Unit, error) {
	cfg.CPUs = slices.Clone(cfg.CPUs)
	u := &Unit{cfg: cfg}
	done := make(chan error)
	go func() {
		if len(cfg.CPUs) > 0 {
			// The threads of a software driver inherit the affinity of the thread
			// that opens it, and how many there are comes from the environment.
			runtime.LockOSThread() // never unlocked: a pinned thread ends with its goroutine
			if err := machine.Pin(cfg.CPUs); err != nil {
				u.notes = append(u.notes, fmt.Sprintf("the threads of unit %s are not pinned to their cores: %v", cfg.Name, err))
			}
		}
		done <- u.open()
	}()
	if err := <-done; err != nil {
		return nil, errors.Join(err, u.Close())
	}
	return u, nil
}

func (u *Unit) open() error {
	open := u.openVulkan
	if overMetal {
		open = u.openMetal
	}
	if err := open(); err != nil {
		return err
	}
	if u.info.Software && u.cfg.Name == "gpu" { // it was not asked for by name
		u.notes = append(u.notes, fmt.Sprintf("unit %s is %s, a software driver: it computes on the CPU", u.cfg.Name, u.info.Name))
	}
	return nil
}

func (u *Unit) openVulkan() error {
	var err error
	v := u.cfg.Vulkan
	v.SoftwareThreads = len(u.cfg.CPUs)
	if u.instance, err = vulkan.Open(v); err != nil {
		return fmt.Errorf("unit %s: %w", u.cfg.Name, err)
	}
	if u.info, err = Choose(u.cfg.Name, describeVulkan(u.instance.Devices())); err != nil {
		return err
	}
	d, err := u.instance.Device(u.info.Index)
	if err != nil {
		return fmt.Errorf("unit %s: %w", u.cfg.Name, err)
	}
	if u.cfg.Cache != "" {
		d.CacheIn(u.cfg.Cache)
	}
	u.dev = newVulkan(d)
	return nil
}

func (u *Unit) openMetal() error {
	system, err := metal.System()
	if err != nil {
		return fmt.Errorf("unit %s: %w", u.cfg.Name, err)
	}
	if u.info, err = Choose(u.cfg.Name, describeMetal(metal.Devices(system))); err != nil {
		return err
	}
	d, err := metal.Open(system, u.info.Index, os.Getpagesize())
	if err != nil {
		return fmt.Errorf("unit %s: %w", u.cfg.Name, err)
	}
	u.dev = d
	u.notes = append(u.notes, fmt.Sprintf("unit %s computes through Metal, which has not been run on hardware before: compare it with a CPU (tandem verify-unit)", u.cfg.Name))
	return nil
}

// Name is the unit's name, such as "gpu:0".
func (u *Unit) Name() string { return u.cfg.Name }

// Kind names the device and its driver: other drivers may round differently.
func (u *Unit) Kind() string { return u.info.Kind }

// Info describes the device.
func (u *Unit) Info() Info { return u.info }

// Notes are what a person should know about the unit as it was opened and as
// its chunks were compiled, one sentence each.
func (u *Unit) Notes() []string { return slices.Clone(u.notes) }

// Messages are what the validation layer said, if it is on.
func (u *Unit) Messages() []string {
	if u.instance == nil {
		return nil
	}
	return u.instance.Messages()
}

// Bind pins the goroutine that submits work to a software driver to its cores;
// see [unit.Binder].
func (u *Unit) Bind() {
	if len(u.cfg.CPUs) > 0 {
		runtime.LockOSThread()
		_ = machine.Pin(u.cfg.CPUs) // New has tried it and noted the error
	}
}

// fail gives an error of the device its meaning for the engine.
func (u *Unit) fail(err error) error {
	if err == nil {
		return nil
	}
	if u.lost == nil && errors.Is(err, compute.ErrLost) {
		u.lost = &unit.LostError{Unit: u.Name(), Cause: err}
	}
	if u.lost != nil {
		return u.lost
	}
	return err
}

// free is what the device has left, if it tells.
func (u *Unit) free() (int64, bool) {
	d, ok := u.dev.(*vulkanDevice)
	if !ok {
		return 0, false
	}
	return d.d.Free()
}

// Close closes the device.
func (u *Unit) Close() error {
	var err error
	if u.dev != nil {
		err = u.dev.Close()
		u.dev = nil
	}
	if u.instance != nil {
		err = errors.Join(err, u.instance.Close())
	}
	return err
}

var _ interface {
	unit.Unit
	unit.Binder
} = (*Unit)(nil)
