//go:build linux && (amd64 || arm64)

package power

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/ebitengine/purego"
)

// nvmlSO calls the library through function pointers, by its public header.
type nvmlSO struct {
	lib         uintptr
	shutdown    func() int32
	count       func(n *uint32) int32
	handle      func(i uint32, device *uintptr) int32
	name        func(device uintptr, text *byte, room uint32) int32
	power       func(device uintptr, mw *uint32) int32
	energy      func(device uintptr, mj *uint64) int32
	temperature func(device uintptr, sensor uint32, celsius *uint32) int32
}

// loadNVML opens the library and starts it.
func loadNVML() (nvmlLibrary, error) {
	const so = "libnvidia-ml.so.1"
	lib, err := purego.Dlopen(so, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fmt.Errorf("there is no %s: NVIDIA's driver is not installed", so)
	}
	n := &nvmlSO{lib: lib}
	var start func() int32
	for _, f := range []struct {
		name string
		to   any
	}{
		{"nvmlInit_v2", &start}, {"nvmlShutdown", &n.shutdown}, {"nvmlDeviceGetCount_v2", &n.count},
		{"nvmlDeviceGetHandleByIndex_v2", &n.handle}, {"nvmlDeviceGetName", &n.name},
		{"nvmlDeviceGetPowerUsage", &n.power}, {"nvmlDeviceGetTotalEnergyConsumption", &n.energy},
		{"nvmlDeviceGetTemperature", &n.temperature},
	} {
		at, err := purego.Dlsym(lib, f.name)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s has no %s: the driver is too old", so, f.name), purego.Dlclose(lib))
		}
		purego.RegisterFunc(f.to, at)
	}
	if code := nvmlCode(start()); code != 0 {
		return nil, errors.Join(fmt.Errorf("starting %s: %w", so, code), purego.Dlclose(lib))
	}
	return n, nil
}

func (n *nvmlSO) Count() (int, nvmlCode) {
	var c uint32
	code := n.count(&c)
	return int(c), nvmlCode(code)
}

// device calls f with a device's handle.
func (n *nvmlSO) device(i int, f func(device uintptr) int32) nvmlCode {
	var d uintptr
	if code := n.handle(uint32(i), &d); code != 0 {
		return nvmlCode(code)
	}
	return nvmlCode(f(d))
}

func (n *nvmlSO) Name(i int) (string, nvmlCode) {
	var text [96]byte // NVML_DEVICE_NAME_V2_BUFFER_SIZE
	code := n.device(i, func(d uintptr) int32 { return n.name(d, &text[0], uint32(len(text))) })
	name, _, _ := bytes.Cut(text[:], []byte{0})
	return string(name), code
}

func (n *nvmlSO) Milliwatts(i int) (mw uint32, code nvmlCode) {
	code = n.device(i, func(d uintptr) int32 { return n.power(d, &mw) })
	return mw, code
}

func (n *nvmlSO) Millijoules(i int) (mj uint64, code nvmlCode) {
	code = n.device(i, func(d uintptr) int32 { return n.energy(d, &mj) })
	return mj, code
}

func (n *nvmlSO) Celsius(i int) (c uint32, code nvmlCode) {
	const chip = 0 // NVML_TEMPERATURE_GPU
	code = n.device(i, func(d uintptr) int32 { return n.temperature(d, chip, &c) })
	return c, code
}

func (n *nvmlSO) Close() error {
	var err error
	if code := nvmlCode(n.shutdown()); code != 0 {
		err = fmt.Errorf("ending NVML: %w", code)
	}
	return errors.Join(err, purego.Dlclose(n.lib))
}
