package vulkan

import (
	"context"
	_ "embed"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"
)

//go:embed testdata/axpy.spv
var axpy []byte

// open opens an instance with the validation layer, and closes it and fails if
// the layer had something to say. Without a loader or driver the test is
// skipped, or fails if TANDEM_REQUIRE_GPU says that there must be one.
func open(t *testing.T, cfg Config) *Instance {
	t.Helper()
	cfg.Validate = true
	v, err := Open(cfg)
	if err == nil && len(v.Devices()) == 0 {
		err = ErrNoDriver
	}
	if err != nil {
		if os.Getenv("TANDEM_REQUIRE_GPU") != "" {
			t.Fatal(err)
		}
		t.Skip("there is no Vulkan here: ", err)
	}
	t.Cleanup(func() {
		if err := v.Close(); err != nil {
			t.Error(err)
		}
		for _, m := range v.Messages() {
			t.Error("the validation layer says: ", m)
		}
	})
	return v
}

func openDevice(t *testing.T, cfg Config) *Device {
	t.Helper()
	d, err := open(t, cfg).Device(0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func must[T any](t *testing.T) func(T, error) T {
	return func(x T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
}

func floats(b []byte) []float32 { return unsafe.Slice((*float32)(unsafe.Pointer(&b[0])), len(b)/4) }

// Commands recorded once compute what they should each time they are submitted,
// whatever kind of memory the buffers are in.
func TestCompute(t *testing.T) {
	d := openDevice(t, Config{})
	d.CacheIn(t.TempDir())
	const n = 1000
	p := must[*Pipeline](t)(d.Pipeline(axpy, 2, 8, map[uint32]uint32{0: 64, 1: 2}))
	defer p.Close()
	for _, kind := range []Kind{Local, Upload, Readback} {
		x, y := must[*Buffer](t)(d.Buffer(4*n, kind)), must[*Buffer](t)(d.Buffer(4*n+256, kind))
		data := make([]float32, n)
		for i := range data {
			data[i] = float32(i)
		}
		raw := unsafe.Slice((*byte)(unsafe.Pointer(&data[0])), 4*n)
		if err := d.Transfer(Move{Range: x.All(), Data: raw}); err != nil {
			t.Fatal(err)
		}
		push := binary.LittleEndian.AppendUint32(nil, math.Float32bits(0.5))
		push = binary.LittleEndian.AppendUint32(push, n)
		clear := must[*Recorded](t)(d.Record(func(c *Commands) { c.Fill(y.All(), 0) }))
		r := must[*Recorded](t)(d.Record(func(c *Commands) {
			c.Timestamp()
			c.Bind(p, x.All(), y.Range(256, 4*n))
			c.Push(push)
			c.Dispatch((n+63)/64, 1, 1)
			c.Barrier()
			c.Dispatch((n+63)/64, 1, 1)
			c.Timestamp()
		}))
		if err := d.Submit(context.Background(), clear); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if err := d.Submit(context.Background(), r); err != nil {
				t.Fatal(err)
			}
		}
		got := make([]byte, 4*n)
		if err := d.Transfer(Move{y.Range(256, 4*n), got, true}); err != nil {
			t.Fatal(err)
		}
		for i, x := range floats(got) {
			if x != float32(6*i) {
				t.Fatalf("%s: value %d is %g", kind, i, x)
			}
		}
		times, err := r.Times()
		if err != nil || d.Info().Limits.TimestampNanos > 0 && (len(times) != 2 || times[0] != 0 || times[1] <= 0) {
			t.Errorf("timestamps %v, %v", times, err)
		}
		for _, x := range []interface{ Close() error }{r, clear, x, y} {
			if err := x.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// The device reads imported memory where it is.
func TestImport(t *testing.T) {
	d := openDevice(t, Config{})
	if !d.Info().Features.HostImport {
		t.Skip("the driver cannot import memory")
	}
	align := int(d.Info().Limits.ImportAlign)
	block := make([]byte, 4*align)
	at := align - int(uintptr(unsafe.Pointer(&block[0])))%align
	data := block[at+256 : at+align+512]
	x := must[Range](t)(d.Import(&data[0], int64(len(data))))
	defer x.Buffer.Close()
	data[0] = 42 // after the import: there is no copy
	out := must[*Buffer](t)(d.Buffer(x.Size, Readback))
	defer out.Close()
	r := must[*Recorded](t)(d.Record(func(c *Commands) { c.Copy(out.All(), x) }))
	defer r.Close()
	if err := d.Submit(context.Background(), r); err != nil || out.Bytes()[0] != 42 {
		t.Fatal(out.Bytes()[0], err)
	}
}

func TestPipelineCache(t *testing.T) {
	dir := t.TempDir()
	v := open(t, Config{})
	build := func() {
		d := must[*Device](t)(v.Device(0))
		d.CacheIn(dir)
		p := must[*Pipeline](t)(d.Pipeline(axpy, 2, 8, map[uint32]uint32{0: 64}))
		if err := errors.Join(p.Close(), d.Close()); err != nil {
			t.Fatal(err)
		}
	}
	build()
	files := must[[]string](t)(filepath.Glob(filepath.Join(dir, "*.pipelines")))
	if len(files) != 1 {
		t.Fatal(files)
	}
	build()
	if err := os.WriteFile(files[0], []byte("what is this"), 0o644); err != nil {
		t.Fatal(err)
	}
	build()
	if data := must[[]byte](t)(os.ReadFile(files[0])); strings.HasPrefix(string(data), "what") {
		t.Error("a file that is no cache was not replaced")
	}
}

func TestNoLibrary(t *testing.T) {
	_, err := Open(Config{Library: filepath.Join(t.TempDir(), "libnothing.so.1")})
	if !errors.Is(err, ErrNoLoader) || !strings.Contains(err.Error(), "libnothing.so.1") {
		t.Error(err)
	}
}

func TestOldDriver(t *testing.T) {
	v := open(t, Config{Alter: func(i *Info) { i.API = MakeVersion(1, 1, 42) }})
	_, err := v.Device(0)
	if err == nil || !strings.Contains(err.Error(), "1.1.42") || !strings.Contains(err.Error(), "1.2.0 is needed") {
		t.Error(err)
	}
}

func TestNoDriver(t *testing.T) {
	open(t, Config{}) // skips where there is no library
	_, err := Open(Config{Fault: func(call string) Result {
		if call == "vkCreateInstance" {
			return NoDriver
		}
		return Success
	}})
	if !errors.Is(err, ErrNoDriver) {
		t.Error(err)
	}
}

// Every call that can fail is made to fail: the error names it, nothing panics,
// and the validation layer sees no object left behind.
func TestFaults(t *testing.T) {
	calls := map[string]bool{}
	var failing string
	result := OutOfMemory
	cfg := Config{Fault: func(call string) Result {
		calls[call] = true
		if call == failing {
			return result
		}
		return Success
	}}
	v := open(t, cfg)
	work := func() (err error) {
		d, err := v.Device(0)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, d.Close()) }()
		d.CacheIn(t.TempDir())
		p, err := d.Pipeline(axpy, 2, 8, map[uint32]uint32{0: 64})
		if err != nil {
			return err
		}
		defer p.Close()
		b, err := d.Buffer(1024, Local)
		if err != nil {
			return err
		}
		defer b.Close()
		if err := d.stage([]Move{{b.Range(0, 512), make([]byte, 512), true}}); err != nil {
			return err
		}
		r, err := d.Record(func(c *Commands) {
			c.Timestamp()
			c.Bind(p, b.Range(0, 512), b.Range(512, 512))
			c.Push(make([]byte, 8))
			c.Dispatch(1, 1, 1)
		})
		if err != nil {
			return err
		}
		defer r.Close()
		if err := d.Submit(context.Background(), r); err != nil {
			return err
		}
		_, err = r.Times()
		return err
	}
	if err := work(); err != nil {
		t.Fatal(err)
	}
	if len(calls) < 20 {
		t.Errorf("only %d calls were seen", len(calls))
	}
	for call := range calls {
		for _, r := range []Result{OutOfMemory, DeviceLost} {
			failing, result = call, r
			if strings.HasPrefix(call, "vkEnumerate") || strings.HasPrefix(call, "vkCreateInstance") || strings.HasPrefix(call, "vkCreateDebug") {
				continue // made when the instance was opened
			}
			err := work()
			if !errors.Is(err, r) || !strings.Contains(err.Error(), call) {
				t.Errorf("%s with %v: %v", call, r, err)
			}
		}
	}
	failing = ""
	if err := work(); err != nil {
		t.Error(err)
	}
}

func TestBadCommands(t *testing.T) {
	d := openDevice(t, Config{})
	p := must[*Pipeline](t)(d.Pipeline(axpy, 2, 8, nil))
	defer p.Close()
	b := must[*Buffer](t)(d.Buffer(1024, Local))
	defer b.Close()
	for name, f := range map[string]func(c *Commands){
		"too few buffers":   func(c *Commands) { c.Bind(p, b.All()) },
		"past the end":      func(c *Commands) { c.Bind(p, b.All(), b.Range(1000, 100)) },
		"no pipeline":       func(c *Commands) { c.Dispatch(1, 1, 1) },
		"no groups":         func(c *Commands) { c.Bind(p, b.All(), b.All()); c.Dispatch(0, 1, 1) },
		"too many groups":   func(c *Commands) { c.Bind(p, b.All(), b.All()); c.Dispatch(1, 1, 1<<30) },
		"too few constants": func(c *Commands) { c.Bind(p, b.All(), b.All()); c.Push(make([]byte, 4)) },
		"sizes differ":      func(c *Commands) { c.Copy(b.Range(0, 4), b.Range(8, 8)) },
		"half a word":       func(c *Commands) { c.Fill(b.Range(0, 6), 0) },
	} {
		if r, err := d.Record(f); err == nil {
			r.Close()
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := d.Pipeline([]byte("not a shader at all."), 1, 0, nil); err == nil {
		t.Error("text was taken for a shader")
	}
}
