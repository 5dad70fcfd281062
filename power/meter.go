package power

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// Options say where a Meter looks. The zero value is this machine.
type Options struct {
	Root     fs.FS         // the files of a linux system; nil is those of this machine, if it is one
	Interval time.Duration // of programs that sample on their own; 0 is a second
	// Files leaves out programs and libraries: what remains costs some
	// microseconds a sample.
	Files bool
}

// A Meter asks all sources of a machine.
type Meter struct {
	mu      sync.Mutex
	sources []source
	absent  []Status
	last    time.Time
}

// Open finds the sources. It does not fail: a machine without any has a Meter
// whose samples are empty and whose Status says why.
func Open(ctx context.Context, o Options) *Meter {
	m := &Meter{}
	if o.Interval == 0 {
		o.Interval = time.Second
	}
	linux := o.Root != nil || runtime.GOOS == "linux"
	root := o.Root
	if root == nil {
		root = os.DirFS("/")
	}
	t := tree{root}
	try := func(name string, open func() (source, error)) {
		s, err := open()
		if err != nil {
			m.absent = append(m.absent, Status{Source: name, Why: strings.ReplaceAll(err.Error(), "\n", "; ")})
			return
		}
		m.sources = append(m.sources, s)
	}
	if linux {
		try("rapl", func() (source, error) { return openRAPL(t) })
		try("hwmon", func() (source, error) { return openHwmon(t) })
		try("battery", func() (source, error) { return openBattery(t) })
		try("thermal", func() (source, error) { return openThermal(t) })
	}
	if !o.Files && o.Root == nil {
		if runtime.GOOS == "darwin" {
			try("powermetrics", func() (source, error) { return openMac(ctx, o.Interval, os.Geteuid() == 0, exec.LookPath) })
		} else {
			try("nvml", func() (source, error) {
				lib, err := loadNVML()
				if err != nil {
					return nil, err
				}
				return openNVML(lib)
			})
		}
	}
	return m
}

// Sample asks all sources. Energy counters need two samples to tell anything.
func (m *Meter) Sample(at time.Time) Sample {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := Sample{At: at}
	if !m.last.IsZero() {
		s.Length = at.Sub(m.last)
	}
	m.last = at
	for _, x := range m.sources {
		x.sample(at, &s)
	}
	s.fold()
	return s
}

// fold makes parts of readings. Of processors and memory the first source that
// tells them counts, since others measure the same; graphics cards of different
// sources are different cards and add up.
func (s *Sample) fold() {
	s.Watts, s.From = map[Part]float64{}, map[Part]string{}
	owner := map[Part]string{}
	for _, r := range s.Readings {
		source, _, _ := strings.Cut(r.Sensor, " ")
		if r.Part == "" {
			continue
		}
		if first, ok := owner[r.Part]; ok && first != source && r.Part != GPU {
			continue
		}
		owner[r.Part] = source
		s.Watts[r.Part] += r.Watts
		if s.From[r.Part] != "" {
			s.From[r.Part] += " + "
		}
		s.From[r.Part] += r.Sensor
	}
	if _, ok := s.Watts[Combined]; ok {
		return
	}
	var parts []string
	sum := 0.0
	for _, p := range []Part{CPU, GPU, ANE, DRAM} {
		if w, ok := s.Watts[p]; ok {
			sum += w
			parts = append(parts, string(p))
		}
	}
	if len(parts) > 0 {
		s.Watts[Combined], s.From[Combined] = sum, strings.Join(parts, " + ")
	} else if w, ok := s.Watts[Machine]; ok {
		s.Watts[Combined], s.From[Combined] = w, "the whole machine"
	}
}

// Status says what became of each source.
func (m *Meter) Status() []Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []Status
	for _, s := range m.sources {
		out = append(out, Status{Source: s.name(), Usable: true, Why: s.why(), Sensors: s.sensors()})
	}
	return append(out, m.absent...)
}

// Watts reports whether there is a source that may tell watts.
func (m *Meter) Watts() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.sources, func(s source) bool { return s.name() != "thermal" })
}

// Close ends the sources.
func (m *Meter) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var err error
	for _, s := range m.sources {
		err = errors.Join(err, s.close())
	}
	m.sources = nil
	return err
}
