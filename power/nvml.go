package power

import (
	"errors"
	"fmt"
	"time"
)

// nvmlLibrary is what is used of NVIDIA's management library; devices are
// numbered from 0. A code other than 0 is an error of the library.
type nvmlLibrary interface {
	Count() (int, nvmlCode)
	Name(device int) (string, nvmlCode)
	Milliwatts(device int) (uint32, nvmlCode)
	Millijoules(device int) (uint64, nvmlCode) // since the driver was loaded
	Celsius(device int) (uint32, nvmlCode)
	Close() error
}

// nvmlCode is nvmlReturn_t.
type nvmlCode int32

const (
	nvmlNotSupported nvmlCode = 3
	nvmlNoPermission nvmlCode = 4
	nvmlGPUIsLost    nvmlCode = 15
)

func (c nvmlCode) Error() string {
	switch c {
	case nvmlNotSupported:
		return "the device does not support it"
	case nvmlNoPermission:
		return "permission refused"
	case 9:
		return "the driver is not loaded"
	case 12:
		return "a function of the library is missing"
	case nvmlGPUIsLost:
		return "the device is lost"
	case 18:
		return "the driver and the library are of different versions"
	}
	return fmt.Sprintf("NVML error %d", int32(c))
}

// nvml is NVIDIA devices. A device's energy counter is taken where it has one,
// else its power, which it measures over its last second or less.
type nvml struct {
	lib     nvmlLibrary
	devices []nvmlDevice
	missing error
}

type nvmlDevice struct {
	label   string
	counter bool
	seen    bool
	moved   bool
	last    uint64
	at      time.Time
}

func openNVML(lib nvmlLibrary) (source, error) {
	n, code := lib.Count()
	if code != 0 {
		return nil, errors.Join(fmt.Errorf("counting devices: %w", code), lib.Close())
	}
	if n < 1 {
		return nil, errors.Join(errors.New("the library knows no device"), lib.Close())
	}
	v := &nvml{lib: lib}
	for i := range n {
		name, code := lib.Name(i)
		if code != 0 {
			name = "device"
		}
		d := nvmlDevice{label: fmt.Sprintf("nvml %d %s", i, name)}
		_, code = lib.Millijoules(i)
		d.counter = code == 0
		v.devices = append(v.devices, d)
	}
	return v, nil
}

func (*nvml) name() string { return "nvml" }

func (v *nvml) sensors() []string {
	var out []string
	for _, d := range v.devices {
		out = append(out, d.label)
	}
	return out
}

func (v *nvml) sample(at time.Time, s *Sample) {
	v.missing = nil
	var readings []Reading
	for i := range v.devices {
		d := &v.devices[i]
		if watts, ok := v.watts(i, d, at); ok {
			readings = append(readings, Reading{GPU, d.label, watts})
		}
		if c, code := v.lib.Celsius(i); code == 0 && c > 0 && c < 200 && (s.Celsius == nil || float64(c) > *s.Celsius) {
			s.Celsius = new(float64(c))
		}
	}
	if len(readings) < len(v.devices) {
		return // the sum of some devices is not that of all
	}
	for _, r := range readings {
		s.add(r.Part, r.Sensor, r.Watts)
	}
}

func (v *nvml) watts(i int, d *nvmlDevice, at time.Time) (float64, bool) {
	if !d.counter {
		mw, code := v.lib.Milliwatts(i)
		if code != 0 {
			v.missing = fmt.Errorf("%s: power: %w", d.label, code)
		}
		return float64(mw) / 1000, code == 0
	}
	now, code := v.lib.Millijoules(i)
	if code != 0 {
		v.missing = fmt.Errorf("%s: energy: %w", d.label, code)
		d.seen = false
		return 0, false
	}
	before, began, seen := d.last, d.at, d.seen
	d.last, d.at, d.seen = now, at, true
	took := at.Sub(began).Seconds()
	if !seen || now < before || took <= 0 {
		return 0, false // the driver was loaded anew
	}
	if d.moved = d.moved || now != before; !d.moved {
		return 0, false
	}
	watts := float64(now-before) / 1000 / took
	return watts, watts <= plausible
}

func (v *nvml) why() string {
	if v.missing != nil {
		return v.missing.Error()
	}
	for _, d := range v.devices {
		if d.seen && !d.moved {
			return fmt.Sprintf("the counter of %s stands still", d.label)
		}
	}
	return ""
}

func (v *nvml) close() error { return v.lib.Close() }
