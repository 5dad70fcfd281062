package power

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// blocks is what a program's output has been at the end of each of its lines
// that changed the newest block.
func blocks(l lines, text string) []*block {
	var out []*block
	for line := range strings.Lines(text) {
		b := l.line(strings.TrimRight(line, "\r\n"))
		if b != nil && (len(out) == 0 || out[len(out)-1] != b) {
			out = append(out, b)
		}
	}
	return out
}

func TestPowermetrics(t *testing.T) {
	got := blocks(&powermetrics{}, text(t, "powermetrics"))
	want := []*block{
		{watts: map[Part]float64{CPU: 0.823, GPU: 0.026, ANE: 0.323, Combined: 1.172}, mhz: new(1145.0), pressure: Nominal},
		{watts: map[Part]float64{CPU: 20.5, GPU: 0, ANE: 0, Combined: 20.5}, mhz: new(3100.0), pressure: Serious},
	}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(block{})); d != "" {
		t.Error(d)
	}
}

func TestPowermetricsDamaged(t *testing.T) {
	if got := blocks(&powermetrics{}, text(t, "powermetrics-damaged")); len(got) != 0 {
		t.Errorf("%+v of damaged output", got[0])
	}
}

func TestMacmon(t *testing.T) {
	got := blocks(macmon{}, text(t, "macmon"))
	want := []*block{
		{watts: map[Part]float64{CPU: 0.25, GPU: 0.5, ANE: 0, Combined: 0.75, DRAM: 0.125, Machine: 5.875}, celsius: new(43.75), mhz: new(1974.0)},
		{watts: map[Part]float64{CPU: 14, GPU: 0.03, ANE: 2.5, Combined: 16.53, DRAM: 1.25}, celsius: new(82.5), mhz: new(4424.0)},
	}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(block{})); d != "" {
		t.Error(d)
	}
}

func TestMacmonDamaged(t *testing.T) {
	got := blocks(macmon{}, text(t, "macmon-damaged"))
	want := []*block{{watts: map[Part]float64{CPU: 1.5}}}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(block{})); d != "" {
		t.Error(d)
	}
}

// A stream gives each block once: nothing stands for an interval without one.
func TestStream(t *testing.T) {
	s := &stream{program: "powermetrics"}
	if why := s.why(); why != "it has printed no sample yet" {
		t.Error(why)
	}
	s.read(strings.NewReader(text(t, "powermetrics")), &powermetrics{})
	var first, second Sample
	s.sample(start, &first)
	first.fold()
	watts(t, first, map[Part]float64{CPU: 20.5, GPU: 0, ANE: 0, Combined: 20.5})
	if first.From[Combined] != "powermetrics" || *first.MHz != 3100 || first.Pressure != Serious {
		t.Errorf("%+v", first)
	}
	s.sample(start, &second)
	second.fold()
	watts(t, second, map[Part]float64{})

	long := &stream{program: "macmon"}
	long.read(strings.NewReader(strings.Repeat("x", 2*maxLine)+"\n"), macmon{})
	if why := long.why(); !strings.Contains(why, "reading the output of macmon") {
		t.Error(why)
	}
}

func TestOpenMac(t *testing.T) {
	none := func(string) (string, error) { return "", errors.New("not found") }
	if _, err := openMac(t.Context(), time.Second, false, none); err == nil || !strings.HasPrefix(err.Error(), "permission refused: powermetrics runs as root") {
		t.Error(err)
	}
	if _, err := openMac(t.Context(), time.Second, true, none); err == nil {
		t.Error("a source without a program")
	}
}

func FuzzPowermetrics(f *testing.F) {
	f.Add(text(f, "powermetrics"))
	f.Add(text(f, "powermetrics-damaged"))
	f.Fuzz(func(t *testing.T, s string) { check(t, blocks(&powermetrics{}, s)) })
}

func FuzzMacmon(f *testing.F) {
	f.Add(text(f, "macmon"))
	f.Add(text(f, "macmon-damaged"))
	f.Fuzz(func(t *testing.T, s string) { check(t, blocks(macmon{}, s)) })
}

func check(t *testing.T, all []*block) {
	for _, b := range all {
		for p, w := range b.watts {
			if !(w >= 0 && w <= plausible) {
				t.Errorf("%s: %g W", p, w)
			}
		}
	}
}

// library is a recorded NVML.
type library struct {
	names  []string
	mj     []uint64
	mw     []uint32
	noMJ   nvmlCode
	noMW   nvmlCode
	heat   uint32
	closed int
}

func (l *library) Count() (int, nvmlCode) { return len(l.names), 0 }

func (l *library) Name(i int) (string, nvmlCode) { return l.names[i], 0 }

func (l *library) Milliwatts(i int) (uint32, nvmlCode) {
	if l.noMW != 0 {
		return 0, l.noMW
	}
	return l.mw[i], 0
}

func (l *library) Millijoules(i int) (uint64, nvmlCode) {
	if l.noMJ != 0 {
		return 0, l.noMJ
	}
	return l.mj[i], 0
}

func (l *library) Celsius(int) (uint32, nvmlCode) { return l.heat, 0 }

func (l *library) Close() error { l.closed++; return nil }

func TestNVML(t *testing.T) {
	lib := &library{names: []string{"A", "B"}, mj: []uint64{1000, 50_000}, mw: []uint32{70_000, 5_000}, heat: 66}
	v, err := openNVML(lib)
	if err != nil {
		t.Fatal(err)
	}
	at := start
	sample := func() Sample {
		at = at.Add(500 * time.Millisecond)
		var s Sample
		v.sample(at, &s)
		s.fold()
		return s
	}
	watts(t, sample(), map[Part]float64{})
	lib.mj = []uint64{1000 + 30_000, 50_000 + 10_000}
	s := sample()
	watts(t, s, map[Part]float64{GPU: 80, Combined: 80})
	if s.From[GPU] != "nvml 0 A + nvml 1 B" || *s.Celsius != 66 {
		t.Errorf("%+v", s)
	}
	lib.mj[1] = 5 // the driver was loaded anew
	watts(t, sample(), map[Part]float64{})
	lib.noMJ = nvmlGPUIsLost
	watts(t, sample(), map[Part]float64{})
	if why := v.why(); why != "nvml 1 B: energy: the device is lost" {
		t.Error(why)
	}
	if err := v.close(); err != nil || lib.closed != 1 {
		t.Errorf("closed %d times: %v", lib.closed, err)
	}
}

// A device without a counter, such as those before Volta, tells its power.
func TestNVMLPower(t *testing.T) {
	lib := &library{names: []string{"A"}, mw: []uint32{70_500}, noMJ: nvmlNotSupported}
	v, err := openNVML(lib)
	if err != nil {
		t.Fatal(err)
	}
	var s Sample
	v.sample(start, &s)
	s.fold()
	watts(t, s, map[Part]float64{GPU: 70.5, Combined: 70.5})
	lib.noMW = nvmlNoPermission
	s = Sample{}
	v.sample(start, &s)
	s.fold()
	watts(t, s, map[Part]float64{})
	if why := v.why(); why != "nvml 0 A: power: permission refused" {
		t.Error(why)
	}
}

func TestNVMLWithoutDevice(t *testing.T) {
	lib := &library{}
	if _, err := openNVML(lib); err == nil || lib.closed != 1 {
		t.Errorf("%v, closed %d times", err, lib.closed)
	}
}
