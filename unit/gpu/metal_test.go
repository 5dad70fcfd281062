package gpu

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"testing"
	"unsafe"

	"github.com/tandemrun/tandem/program"
	"github.com/tandemrun/tandem/quant"
	"github.com/tandemrun/tandem/unit/gpu/compute"
	"github.com/tandemrun/tandem/unit/gpu/metal"
	"github.com/tandemrun/tandem/unit/gpu/shader"
)

// fakeMetal answers Metal's messages as Apple's documentation says, and runs
// what is committed on a Vulkan device, kernel for kernel. It is strict: a
// message that an object does not know, an argument of another type, or an
// object that is used after it was freed or never freed is an error of the test.
type fakeMetal struct {
	t       *testing.T
	dev     compute.Device
	unified bool
	objects map[metal.Object]*fakeObject
	last    metal.Object
	pools   [][]metal.Object
	code    int64 // of the error of the next command buffer; 0 for none
	sources map[string]string
	commits int
}

// fakeObject is an object of one of Metal's classes.
type fakeObject struct {
	class  string
	refs   int
	text   string // NSString: it; MTLLibrary, MTLFunction: the kernel
	flag   bool   // MTLCompileOptions: fast math; encoders and command buffers: ended
	values [5]uint32
	buffer compute.Binding // MTLBuffer
	hidden bool            // it is private
	// Command buffers and encoders.
	parent *fakeObject
	list   []compute.Dispatch
	now    compute.Dispatch // what is set
	work   []func() error
	code   int64
}

func newFakeMetal(t *testing.T, unified bool) *fakeMetal {
	f := &fakeMetal{t: t, dev: device(t), unified: unified, objects: map[metal.Object]*fakeObject{}, sources: map[string]string{}}
	for _, name := range shader.Names() {
		k, err := shader.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		f.sources[k.MSL] = name
	}
	for _, class := range []string{"NSString", "NSAutoreleasePool", "MTLCompileOptions", "MTLFunctionConstantValues"} {
		f.make("class " + class)
	}
	return f
}

// finish reports what was not freed.
func (f *fakeMetal) finish() {
	f.t.Helper()
	for id, o := range f.objects {
		if o.class[:min(6, len(o.class))] != "class " {
			f.t.Errorf("object %d of %s was never released (%d)", id, o.class, o.refs)
		}
	}
}

func (f *fakeMetal) make(class string) (metal.Object, *fakeObject) {
	f.last++
	o := &fakeObject{class: class, refs: 1}
	f.objects[f.last] = o
	return f.last, o
}

// temporary is an object that the pool frees.
func (f *fakeMetal) temporary(class string) (metal.Object, *fakeObject) {
	id, o := f.make(class)
	if len(f.pools) == 0 {
		f.t.Errorf("an object of %s is made without a pool", class)
		return id, o
	}
	f.pools[len(f.pools)-1] = append(f.pools[len(f.pools)-1], id)
	return id, o
}

func (f *fakeMetal) Devices() []metal.Object {
	id, _ := f.make("MTLDevice")
	other, _ := f.make("MTLDevice")
	return []metal.Object{other, id}
}

func (f *fakeMetal) Class(name string) metal.Object {
	for id, o := range f.objects {
		if o.class == "class "+name {
			return id
		}
	}
	f.t.Fatalf("there is no class %s", name)
	return 0
}

func (f *fakeMetal) Pool() func() {
	f.pools = append(f.pools, nil)
	return func() {
		for _, id := range f.pools[len(f.pools)-1] {
			f.release(id)
		}
		f.pools = f.pools[:len(f.pools)-1]
	}
}

func (f *fakeMetal) release(id metal.Object) {
	o := f.objects[id]
	if o == nil {
		f.t.Errorf("object %d is released too often", id)
		return
	}
	if o.refs--; o.refs > 0 {
		return
	}
	delete(f.objects, id)
	if o.class == "MTLBuffer" {
		if err := o.buffer.Buffer.Close(); err != nil {
			f.t.Error(err)
		}
	}
}

func (f *fakeMetal) Float(to metal.Object, selector string) float64 {
	if selector == "GPUEndTime" {
		return 0.5
	}
	return 0.25
}

func (f *fakeMetal) Text(to metal.Object, selector string) string {
	if o := f.objects[to]; o == nil || o.class != "NSString" || selector != "UTF8String" {
		f.t.Fatalf("%s to %+v", selector, o)
	}
	return f.objects[to].text
}

func (f *fakeMetal) Pointer(to metal.Object, selector string) unsafe.Pointer {
	o := f.objects[to]
	if o == nil || o.class != "MTLBuffer" || selector != "contents" || o.hidden {
		f.t.Fatalf("%s to %+v", selector, o)
	}
	return unsafe.Pointer(&o.buffer.Buffer.Bytes()[0])
}

// shapes are the types of the arguments of the messages that have some.
var shapes = map[string][]any{
	"stringWithUTF8String:":                                        {""},
	"newBufferWithLength:options:":                                 {uint64(0), uint64(0)},
	"newBufferWithBytesNoCopy:length:options:deallocator:":         {uintptr(0), uint64(0), uint64(0), metal.Object(0)},
	"newLibraryWithSource:options:error:":                          {metal.Object(0), metal.Object(0), unsafe.Pointer(nil)},
	"newFunctionWithName:constantValues:error:":                    {metal.Object(0), metal.Object(0), unsafe.Pointer(nil)},
	"newComputePipelineStateWithFunction:error:":                   {metal.Object(0), unsafe.Pointer(nil)},
	"setFastMathEnabled:":                                          {false},
	"setConstantValue:type:atIndex:":                               {unsafe.Pointer(nil), uint64(0), uint64(0)},
	"computeCommandEncoderWithDispatchType:":                       {uint64(0)},
	"memoryBarrierWithScope:":                                      {uint64(0)},
	"setComputePipelineState:":                                     {metal.Object(0)},
	"setBuffer:offset:atIndex:":                                    {metal.Object(0), uint64(0), uint64(0)},
	"setBytes:length:atIndex:":                                     {unsafe.Pointer(nil), uint64(0), uint64(0)},
	"dispatchThreadgroups:threadsPerThreadgroup:":                  {metal.Size{}, metal.Size{}},
	"copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:": {metal.Object(0), uint64(0), metal.Object(0), uint64(0), uint64(0)},
	"fillBuffer:range:value:":                                      {metal.Object(0), metal.Range{}, uint8(0)},
}

func (f *fakeMetal) Send(to metal.Object, selector string, args ...any) metal.Object {
	f.t.Helper()
	o := f.objects[to]
	if o == nil {
		f.t.Fatalf("%s to object %d, which is not there", selector, to)
	}
	want := shapes[selector]
	if len(args) != len(want) {
		f.t.Fatalf("%s has %d arguments", selector, len(args))
	}
	for i, a := range args {
		if reflect.TypeOf(a) != reflect.TypeOf(want[i]) {
			f.t.Fatalf("%s: argument %d is a %T, not a %T", selector, i, a, want[i])
		}
	}
	switch selector {
	case "release":
		f.release(to)
		return 0
	case "retain":
		o.refs++
		return to
	}
	return f.answer(o, o.class+" "+selector, args)
}

func (f *fakeMetal) object(a any) *fakeObject {
	o := f.objects[a.(metal.Object)]
	if o == nil {
		f.t.Fatalf("an argument is object %d, which is not there", a)
	}
	return o
}

func (f *fakeMetal) answer(o *fakeObject, message string, args []any) metal.Object {
	f.t.Helper()
	switch message {
	case "class NSString stringWithUTF8String:":
		id, s := f.temporary("NSString")
		s.text = args[0].(string)
		return id
	case "class MTLCompileOptions new", "class MTLFunctionConstantValues new":
		id, x := f.make(message[len("class ") : len(message)-len(" new")])
		x.flag = true
		return id
	case "MTLCompileOptions setFastMathEnabled:":
		o.flag = args[0].(bool)
	case "MTLFunctionConstantValues setConstantValue:type:atIndex:":
		if args[1].(uint64) != 33 {
			f.t.Errorf("a constant of type %d, not unsigned", args[1])
		}
		o.values[args[2].(uint64)] = *(*uint32)(args[0].(unsafe.Pointer))
	case "MTLDevice name":
		id, s := f.temporary("NSString")
		s.text = "fake"
		return id
	case "MTLDevice hasUnifiedMemory":
		if f.unified {
			return 1
		}
		return 0
	case "MTLDevice maxBufferLength":
		return metal.Object(f.dev.Limits().Binding)
	case "MTLDevice recommendedMaxWorkingSetSize":
		return 1 << 30
	case "MTLDevice newCommandQueue":
		id, _ := f.make("MTLCommandQueue")
		return id
	case "MTLDevice newBufferWithLength:options:":
		b, err := f.dev.Alloc(int64(args[0].(uint64)), compute.Download)
		if err != nil {
			return 0
		}
		id, x := f.make("MTLBuffer")
		x.buffer, x.hidden = compute.Binding{Buffer: b, Size: b.Size()}, args[1].(uint64) == 32
		if x.hidden && f.unified {
			f.t.Error("a private buffer where memory is unified")
		}
		return id
	case "MTLDevice newBufferWithBytesNoCopy:length:options:deallocator:":
		at, n := args[0].(uintptr), int64(args[1].(uint64))
		if page := int64(os.Getpagesize()); int64(at)%page != 0 || n%page != 0 {
			f.t.Errorf("%d bytes at %#x are not whole pages", n, at)
		}
		b, err := f.dev.Import(*(**byte)(unsafe.Pointer(&at)), n)
		if err != nil {
			return 0
		}
		id, x := f.make("MTLBuffer")
		x.buffer = b
		return id
	case "MTLDevice newLibraryWithSource:options:error:":
		name, ok := f.sources[f.object(args[0]).text]
		if !ok {
			f.t.Error("a source that is no kernel's")
		}
		if f.object(args[1]).flag {
			f.t.Error("fast math is on")
		}
		id, x := f.make("MTLLibrary")
		x.text = name
		return id
	case "MTLLibrary newFunctionWithName:constantValues:error:":
		if name := f.object(args[0]).text; name != "main0" {
			f.t.Errorf("the function %q", name)
		}
		id, x := f.make("MTLFunction")
		x.text, x.values = o.text, f.object(args[1]).values
		return id
	case "MTLDevice newComputePipelineStateWithFunction:error:":
		id, x := f.make("MTLComputePipelineState")
		x.text, x.values = f.object(args[0]).text, f.object(args[0]).values
		return id
	case "MTLComputePipelineState maxTotalThreadsPerThreadgroup":
		return 1024
	case "MTLCommandQueue commandBuffer":
		id, x := f.temporary("MTLCommandBuffer")
		x.code, f.code = f.code, 0
		return id
	default:
		return f.command(o, message, args)
	}
	return 0
}

// command answers messages to command buffers and encoders.
func (f *fakeMetal) command(o *fakeObject, message string, args []any) metal.Object {
	f.t.Helper()
	if o.flag && o.class != "MTLCommandBuffer" {
		f.t.Fatalf("%s after its end", message)
	}
	switch message {
	case "MTLCommandBuffer computeCommandEncoderWithDispatchType:", "MTLCommandBuffer blitCommandEncoder":
		class := "MTLBlitCommandEncoder"
		if len(args) > 0 {
			class = "MTLComputeCommandEncoder"
		}
		id, x := f.temporary(class)
		x.parent = o
		return id
	case "MTLCommandBuffer commit":
		f.commits++
		o.flag = true
		if o.code == 0 {
			for _, w := range o.work {
				if err := w(); err != nil {
					f.t.Error(err)
				}
			}
		}
	case "MTLCommandBuffer waitUntilCompleted":
		if !o.flag {
			f.t.Fatal("waiting for what was not committed")
		}
	case "MTLCommandBuffer status":
		if o.code != 0 {
			return 5
		}
		return 4
	case "MTLCommandBuffer error":
		id, x := f.temporary("NSError")
		x.code = o.code
		return id
	case "NSError code":
		return metal.Object(o.code)
	case "NSError localizedDescription":
		id, x := f.temporary("NSString")
		x.text = fmt.Sprintf("reason %d", o.code)
		return id
	case "MTLComputeCommandEncoder setComputePipelineState:":
		p := f.object(args[0])
		o.now.Variant = compute.Variant{Kernel: p.text, Constants: p.values}
	case "MTLComputeCommandEncoder setBuffer:offset:atIndex:":
		b, i := f.object(args[0]).buffer, int(args[2].(uint64))
		k, _ := shader.Lookup(o.now.Kernel)
		for len(o.now.Bind) < k.Bindings {
			o.now.Bind = append(o.now.Bind, compute.Binding{})
		}
		b.Offset += int64(args[1].(uint64))
		b.Size = min(b.Buffer.Size()-b.Offset, f.dev.Limits().Binding)
		o.now.Bind = slices.Clone(o.now.Bind[:k.Bindings])
		o.now.Bind[i] = b
	case "MTLComputeCommandEncoder setBytes:length:atIndex:":
		if args[2].(uint64) != shader.PushIndex {
			f.t.Errorf("push constants are buffer %d", args[2])
		}
		data := unsafe.Slice((*byte)(args[0].(unsafe.Pointer)), args[1].(uint64))
		o.now.Push = nil
		for i := 0; i < len(data); i += 4 {
			o.now.Push = append(o.now.Push, binary.NativeEndian.Uint32(data[i:]))
		}
	case "MTLComputeCommandEncoder memoryBarrierWithScope:":
		if args[0].(uint64) != 1 {
			f.t.Errorf("a barrier of scope %d", args[0])
		}
		o.now.Barrier = true
	case "MTLComputeCommandEncoder dispatchThreadgroups:threadsPerThreadgroup:":
		g, n := args[0].(metal.Size), args[1].(metal.Size)
		if n != (metal.Size{Width: 64, Height: 1, Depth: 1}) {
			f.t.Errorf("workgroups of %v", n)
		}
		o.now.Groups = [3]int{int(g.Width), int(g.Height), int(g.Depth)}
		o.list = append(o.list, o.now)
		o.now.Barrier = false
	case "MTLBlitCommandEncoder copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:":
		from, to := f.object(args[0]).buffer.Buffer.Bytes(), f.object(args[2]).buffer.Buffer.Bytes()
		a, b, n := args[1].(uint64), args[3].(uint64), args[4].(uint64)
		o.parent.work = append(o.parent.work, func() error {
			copy(to[b:b+n], from[a:a+n])
			return nil
		})
	case "MTLBlitCommandEncoder fillBuffer:range:value:":
		to, r := f.object(args[0]).buffer.Buffer.Bytes(), args[1].(metal.Range)
		o.parent.work = append(o.parent.work, func() error {
			clear(to[r.Location : r.Location+r.Length])
			return nil
		})
	case "MTLBlitCommandEncoder endEncoding":
		o.flag = true
	case "MTLComputeCommandEncoder endEncoding":
		o.flag = true
		list := o.list
		o.parent.work = append(o.parent.work, func() error {
			c, err := f.dev.Record(list, false)
			if err != nil {
				return err
			}
			return errors.Join(f.dev.Run(context.Background(), c), c.Close())
		})
	default:
		f.t.Fatalf("nothing answers %s", message)
	}
	return 0
}

// metalDevice opens the second device of a fake.
func metalDevice(t *testing.T, unified bool) (*fakeMetal, *metal.Device) {
	f := newFakeMetal(t, unified)
	t.Cleanup(f.finish)
	d, err := metal.Open(f, 1, os.Getpagesize())
	if err != nil {
		t.Fatal(err)
	}
	return f, d
}

// The suite passes through Metal's messages with memory that is the machine's, and
// its checks of memory with memory that is not. What is missing to Metal is Metal.
func TestConformanceOverMetal(t *testing.T) {
	for unified, checks := range map[bool]func(string) bool{true: all, false: memory} {
		t.Run(fmt.Sprintf("unified %t", unified), func(t *testing.T) {
			_, d := metalDevice(t, unified)
			u := &Unit{cfg: Config{Name: "gpu"}, dev: d}
			defer u.Close()
			suite(t, u, checks)
		})
	}
}

// Errors of command buffers say what Metal says, and a device that is removed is
// lost.
func TestMetalErrors(t *testing.T) {
	f, d := metalDevice(t, true)
	defer d.Close()
	var s single
	x := s.buffer(64)
	s.Ops = []program.Op{program.MatMul{W: weight(t, quant.Q8_0, 64, 64, 1), In: x, Out: s.buffer(64)}, program.Scale{X: x, Factor: 2}}
	b := newBench(t, d, &s.Program, options(4))
	defer b.close()
	list := b.x.list(shape{rows: 3})
	for _, timed := range []bool{false, true} {
		c, err := d.Record(list, timed)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		before := f.commits
		if err := d.Run(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if n := f.commits - before; timed && n != len(list) || !timed && n != 1 {
			t.Errorf("%d command buffers for %d dispatches, timed: %t", n, len(list), timed)
		}
		times, err := c.Times()
		if err != nil || timed && len(times) != len(list) || !timed && times != nil {
			t.Errorf("%d times, %v", len(times), err)
		}
		f.code = 3
		if err := d.Run(t.Context(), c); err == nil || errors.Is(err, compute.ErrLost) || errors.Is(err, compute.ErrMemory) {
			t.Errorf("a page fault is %v", err)
		}
		f.code = 8
		if err := d.Run(t.Context(), c); !errors.Is(err, compute.ErrMemory) {
			t.Errorf("no memory is %v", err)
		}
	}
	c, err := d.Record(list, false)
	if err != nil {
		t.Fatal(err)
	}
	f.code = 11
	for range 2 {
		if err := d.Run(t.Context(), c); !errors.Is(err, compute.ErrLost) {
			t.Errorf("a removed device is %v", err)
		}
	}
	if _, err := d.Alloc(64, compute.Local); !errors.Is(err, compute.ErrLost) {
		t.Errorf("a buffer of a removed device is %v", err)
	}
}

func TestMetalDevices(t *testing.T) {
	f := newFakeMetal(t, true)
	defer f.finish()
	list := metal.Devices(f)
	if len(list) != 2 || list[1].Name != "fake" || !list[1].Unified || list[1].Index != 1 {
		t.Errorf("%+v", list)
	}
	if _, err := metal.Open(f, 2, 4096); err == nil {
		t.Error("a device that is not there was opened")
	}
}
