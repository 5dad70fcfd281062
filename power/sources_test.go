package power

import (
	"io/fs"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// recorded reads a tree of testdata: a comment, then "-- path --" before the
// content of each file.
func recorded(t testing.TB, name string) fstest.MapFS {
	t.Helper()
	fsys := fstest.MapFS{}
	var file *fstest.MapFile
	for line := range strings.Lines(text(t, name)) {
		if path, ok := strings.CutPrefix(line, "-- "); ok {
			file = &fstest.MapFile{}
			fsys[strings.TrimSuffix(strings.TrimSpace(path), " --")] = file
		} else if file != nil {
			file.Data = append(file.Data, line...)
		}
	}
	return fsys
}

func text(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func set(tree fstest.MapFS, path string, n int64) {
	tree[path] = &fstest.MapFile{Data: []byte(strconv.FormatInt(n, 10) + "\n")}
}

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// watts compares a sample's watts.
func watts(t *testing.T, s Sample, want map[Part]float64) {
	t.Helper()
	if d := cmp.Diff(want, s.Watts, cmpopts.EquateApprox(0, 1e-9)); d != "" {
		t.Errorf("watts (-want +got):\n%s", d)
	}
}

const pc = "sys/class/powercap/"

func TestServer(t *testing.T) {
	tree := recorded(t, "server")
	m := Open(t.Context(), Options{Root: tree})
	watts(t, m.Sample(start), map[Part]float64{}) // counters have no watts yet

	set(tree, pc+"intel-rapl:0/energy_uj", 1_000_000_000+200_000_000)
	set(tree, pc+"intel-rapl:1/energy_uj", 100_000_000-328_850) // began again
	set(tree, pc+"intel-rapl:0:0/energy_uj", 500_000_000+20_000_000)
	set(tree, pc+"intel-rapl:1:0/energy_uj", 600_000_000+30_000_000)
	s := m.Sample(start.Add(2 * time.Second))
	watts(t, s, map[Part]float64{CPU: 150, DRAM: 25, Combined: 175})
	want := map[Part]string{
		CPU:      "rapl package-0 + rapl package-1",
		DRAM:     "rapl package-0 dram + rapl package-1 dram",
		Combined: "cpu + dram",
	}
	if d := cmp.Diff(want, s.From); d != "" {
		t.Error(d)
	}
	if s.Length != 2*time.Second {
		t.Errorf("length %v", s.Length)
	}

	// One package that cannot be read takes the part away: the other alone is not it.
	tree[pc+"intel-rapl:1/energy_uj"] = &fstest.MapFile{Data: []byte("\xff\x00junk")}
	set(tree, pc+"intel-rapl:0/energy_uj", 1_300_000_000)
	set(tree, pc+"intel-rapl:0:0/energy_uj", 530_000_000)
	set(tree, pc+"intel-rapl:1:0/energy_uj", 640_000_000)
	watts(t, m.Sample(start.Add(3*time.Second)), map[Part]float64{DRAM: 20, Combined: 20})
	if why := m.Status()[0].Why; !strings.Contains(why, "intel-rapl:1/energy_uj") {
		t.Errorf("why: %q", why)
	}

	// A counter that was set back would mean hundreds of kilowatts.
	set(tree, pc+"intel-rapl:0/energy_uj", 5)
	set(tree, pc+"intel-rapl:0:0/energy_uj", 540_000_000)
	set(tree, pc+"intel-rapl:1:0/energy_uj", 650_000_000)
	watts(t, m.Sample(start.Add(4*time.Second)), map[Part]float64{DRAM: 20, Combined: 20})
}

func TestWrapWithoutRange(t *testing.T) {
	tree := recorded(t, "server")
	delete(tree, pc+"intel-rapl:1/max_energy_range_uj")
	m := Open(t.Context(), Options{Root: tree})
	m.Sample(start)
	set(tree, pc+"intel-rapl:0/energy_uj", 1_100_000_000)
	set(tree, pc+"intel-rapl:1/energy_uj", 5)
	s := m.Sample(start.Add(time.Second))
	if w, ok := s.Watts[CPU]; ok {
		t.Errorf("%g W of a counter that began again nobody knows where", w)
	}
}

// Virtual machines have counters that never move.
func TestStandingStill(t *testing.T) {
	m := Open(t.Context(), Options{Root: recorded(t, "server")})
	for i := range 3 {
		watts(t, m.Sample(start.Add(time.Duration(i)*time.Second)), map[Part]float64{})
	}
	if why := m.Status()[0].Why; why != "the counter of package-0, package-1, package-0 dram, package-1 dram stands still" {
		t.Errorf("why: %q", why)
	}
}

// forbidden refuses files whose path ends in a suffix.
type forbidden struct {
	fs.FS
	suffix string
}

func (f forbidden) Open(name string) (fs.File, error) {
	if strings.HasSuffix(name, f.suffix) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return f.FS.Open(name)
}

func TestPermission(t *testing.T) {
	m := Open(t.Context(), Options{Root: forbidden{recorded(t, "server"), "energy_uj"}})
	got := m.Status()
	i := 0
	for i < len(got) && got[i].Source != "rapl" {
		i++
	}
	want := "permission refused: /sys/class/powercap/intel-rapl:0/energy_uj is for root alone; run as root, or let root make it readable"
	if got[i].Usable || got[i].Why != want {
		t.Errorf("%+v", got[i])
	}
}

func TestLaptop(t *testing.T) {
	tree := recorded(t, "laptop")
	m := Open(t.Context(), Options{Root: tree})
	first := m.Sample(start)
	watts(t, first, map[Part]float64{Machine: 18, Combined: 18}) // the battery needs no second sample
	set(tree, pc+"intel-rapl:0/energy_uj", 10_000_000+7_000_000)
	set(tree, pc+"intel-rapl:0:0/energy_uj", 8_000_000+5_000_000)
	set(tree, pc+"intel-rapl:1/energy_uj", 90_000_000+15_000_000)
	s := m.Sample(start.Add(time.Second))
	watts(t, s, map[Part]float64{CPU: 7, Machine: 15, Combined: 7})
	if s.From[Machine] != "rapl psys" {
		t.Errorf("machine from %s", s.From[Machine])
	}
	if *s.Celsius != 62 || s.Pressure != Nominal || *s.MHz != 4100 || *s.Throttles != 7 {
		t.Errorf("%g °C, %s, %g MHz, %d throttles", *s.Celsius, s.Pressure, *s.MHz, *s.Throttles)
	}
	for celsius, level := range map[int64]string{79: Nominal, 80: Fair, 90: Serious, 94: Serious, 95: Critical} {
		set(tree, "sys/class/thermal/thermal_zone1/temp", celsius*1000)
		if s := m.Sample(start.Add(2 * time.Second)); s.Pressure != level {
			t.Errorf("%d °C: %s, want %s", celsius, s.Pressure, level)
		}
	}
}

func TestBattery(t *testing.T) {
	const bat = "sys/class/power_supply/BAT0/"
	for _, c := range []struct {
		name   string
		change func(fstest.MapFS)
		want   float64 // 0: unavailable
		why    string
	}{
		{"current and voltage", func(fstest.MapFS) {}, 18, ""},
		{"power", func(m fstest.MapFS) { set(m, bat+"power_now", 9_500_000) }, 9.5, ""},
		{"power with a sign", func(m fstest.MapFS) { set(m, bat+"power_now", -9_500_000) }, 9.5, ""},
		{"no power told", func(m fstest.MapFS) { set(m, bat+"power_now", 0) }, 18, ""},
		{"nothing told", func(m fstest.MapFS) { set(m, bat+"current_now", 0) }, 0, "tells no current"},
		{"charging", func(m fstest.MapFS) { m[bat+"status"] = &fstest.MapFile{Data: []byte("Charging\n")} }, 0, "does not run on its battery"},
		{"no voltage", func(m fstest.MapFS) { delete(m, bat+"voltage_now") }, 0, "voltage_now"},
		{"junk", func(m fstest.MapFS) { m[bat+"current_now"] = &fstest.MapFile{Data: []byte("1e6\n")} }, 0, "not a number"},
		{"no status", func(m fstest.MapFS) { delete(m, bat+"status") }, 0, "status"},
	} {
		tree := recorded(t, "laptop")
		c.change(tree)
		b, err := openBattery(trees(tree))
		if err != nil {
			t.Fatal(err)
		}
		var s Sample
		b.sample(start, &s)
		s.fold()
		got := s.Watts[Machine]
		if got != c.want || !strings.Contains(b.why(), c.why) {
			t.Errorf("%s: %g W, %q", c.name, got, b.why())
		}
		if _, ok := s.Watts[Machine]; ok != (c.want > 0) {
			t.Errorf("%s: known %v", c.name, ok)
		}
	}
}

func trees(fsys fs.FS) tree { return tree{fsys} }

func TestWorkstation(t *testing.T) {
	tree := recorded(t, "workstation")
	m := Open(t.Context(), Options{Root: tree})
	m.Sample(start)
	set(tree, monitors+"/hwmon2/energy1_input", 40_000_000+80_000_000)
	set(tree, monitors+"/hwmon2/energy2_input", 30_000_000+60_000_000)
	s := m.Sample(start.Add(2 * time.Second))
	watts(t, s, map[Part]float64{GPU: 142 + 40, Combined: 182})
	if *s.Celsius != 71.25 || s.Pressure != "" {
		t.Errorf("%g °C %q", *s.Celsius, s.Pressure)
	}
	var rail float64
	for _, r := range s.Readings {
		if r.Sensor == "hwmon ina226 power1" && r.Part == "" {
			rail = r.Watts
		}
	}
	if rail != 2.5 {
		t.Errorf("the board's rail: %g W in %+v", rail, s.Readings)
	}
}

func TestNothing(t *testing.T) {
	m := Open(t.Context(), Options{Root: fstest.MapFS{}})
	for i := range 2 {
		s := m.Sample(start.Add(time.Duration(i) * time.Second))
		watts(t, s, map[Part]float64{})
		if s.Celsius != nil || s.MHz != nil || s.Throttles != nil || s.Pressure != "" {
			t.Errorf("%+v", s)
		}
	}
	for _, s := range m.Status() {
		if s.Usable || s.Why == "" {
			t.Errorf("%+v", s)
		}
	}
	if m.Watts() {
		t.Error("a source of watts")
	}
}

// A tree with anything in its files is read without a panic, and no watts come
// of it that cannot be.
func FuzzTree(f *testing.F) {
	f.Add("1000", "2000", "package-0", "262143328850")
	f.Add("9223372036854775807", "-9223372036854775808", "dram", "-1")
	f.Add("", "\xff", "psys\n", "x")
	f.Fuzz(func(t *testing.T, before, after, name, most string) {
		tree := fstest.MapFS{}
		put := func(path, s string) { tree[path] = &fstest.MapFile{Data: []byte(s)} }
		put(pc+"intel-rapl:0/name", name)
		put(pc+"intel-rapl:0/max_energy_range_uj", most)
		put(monitors+"/hwmon0/name", "amdgpu")
		put(supplies+"/B/type", "Battery")
		put(supplies+"/B/status", "Discharging")
		put(supplies+"/B/voltage_now", most)
		put(thermalZones+"/thermal_zone0/type", name)
		put(thermalZones+"/thermal_zone0/trip_point_0_temp", most)
		put(thermalZones+"/thermal_zone0/trip_point_0_type", "passive")
		put(cpus+"/cpu0/cpufreq/cpuinfo_max_freq", most)
		var m *Meter
		for i, s := range []string{before, after} {
			put(pc+"intel-rapl:0/energy_uj", s)
			put(monitors+"/hwmon0/power1_input", s)
			put(supplies+"/B/current_now", s)
			put(thermalZones+"/thermal_zone0/temp", s)
			put(cpus+"/cpu0/cpufreq/scaling_cur_freq", s)
			if m == nil {
				m = Open(t.Context(), Options{Root: tree})
			}
			for p, w := range m.Sample(start.Add(time.Duration(i) * time.Second)).Watts {
				if !(w >= 0 && w <= 4*plausible) {
					t.Errorf("%s: %g W", p, w)
				}
			}
		}
	})
}
