// Package power reads what a machine draws: watts and joules by part, and the
// temperatures, frequencies and signs of throttling beside them.
//
// A [Meter] asks every source that the machine has. A [Recorder] adds samples up
// to a [Summary]. docs/power.md describes the sources and what each covers.
//
// # Promises
//
// What no source tells is absent: from a sample's map of watts, from a CSV row,
// from a summary, where it has the reason in words. A zero is a reading of zero.
// An energy counter that has never moved is no reading: virtual machines have
// counters that stand still.
//
// Text from outside (files of the kernel, output of other programs) may hold
// anything; what cannot be understood is absent, and nothing panics.
//
// A Meter is safe for concurrent use; a Recorder is not. The package knows
// nothing of models or tokens.
package power

import (
	"time"
)

// A Part is what watts are of.
type Part string

// The parts. A processor's package includes a graphics unit on the same chip.
const (
	CPU  Part = "cpu"
	GPU  Part = "gpu"
	ANE  Part = "ane"
	DRAM Part = "dram"
	// Combined is what a source states for several parts together, or else the
	// sum of those above that are known, or else that of the machine.
	Combined Part = "combined"
	// Machine is the whole machine, where something measures that.
	Machine Part = "machine"
)

// Parts lists the parts in the order of the CSV columns, and Machine behind them.
func Parts() []Part { return []Part{CPU, GPU, ANE, DRAM, Combined, Machine} }

// A Basis says how a figure is known.
type Basis string

// How a figure is known.
const (
	Measured    Basis = "measured"
	Estimated   Basis = "estimated"
	Unavailable Basis = "unavailable"
)

// A Reading is what one sensor drew on average since the sample before.
type Reading struct {
	Part   Part   // "" for a sensor that is part of another or of nothing in particular
	Sensor string // source and the sensor's own name: "rapl package-0"
	Watts  float64
}

// A Sample is what the sources tell of the time since the sample before. Fields
// that nothing tells are nil, empty or absent.
type Sample struct {
	At       time.Time
	Length   time.Duration // since the sample before; 0 of the first
	Readings []Reading
	Watts    map[Part]float64
	From     map[Part]string // the sensors behind Watts, or the parts that Combined adds up

	Celsius  *float64 // the hottest of the processor's sensors, or of all if none is known to be its
	MHz      *float64 // mean of the processor's cores, or of its fast ones where it has kinds
	Pressure string   // nominal, fair, serious or critical; see Thermal
	// Throttles counts how often cores were slowed down for heat since the machine
	// was started.
	Throttles *int64
}

// A Status is what became of a source.
type Status struct {
	Source  string   `json:"source"`
	Usable  bool     `json:"usable"`
	Why     string   `json:"why,omitempty"` // it is not, or what is missing
	Sensors []string `json:"sensors,omitempty"`
}

// source is one kind of sensor.
type source interface {
	name() string
	sensors() []string // of power, by name
	// sample adds what its sensors tell of the time since the call before. The
	// first call of a source of counters adds nothing.
	sample(at time.Time, s *Sample)
	// why says what is missing; "" if nothing is.
	why() string
	close() error
}

// plausible is the most watts that one sensor is believed: above it a counter
// was set back, not wrapped.
const plausible = 10_000

// add appends a reading if it can be true.
func (s *Sample) add(p Part, sensor string, watts float64) bool {
	if !(watts >= 0 && watts <= plausible) {
		return false
	}
	s.Readings = append(s.Readings, Reading{p, sensor, watts})
	return true
}
