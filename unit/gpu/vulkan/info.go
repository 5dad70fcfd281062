package vulkan

import (
	"fmt"
	"slices"
	"unsafe"
)

// DeviceType is what kind of device it is.
type DeviceType uint32

// The types of devices.
const (
	Other DeviceType = iota
	Integrated
	Discrete
	Virtual
	CPU // a software driver
)

func (t DeviceType) String() string {
	switch t {
	case Integrated:
		return "integrated GPU"
	case Discrete:
		return "discrete GPU"
	case Virtual:
		return "virtual GPU"
	case CPU:
		return "software driver"
	}
	return "other device"
}

// Info is what a device says of itself.
type Info struct {
	Index    int // among the instance's devices
	Name     string
	Type     DeviceType
	API      Version
	Driver   string // name and version, as the driver tells them
	Limits   Limits
	Features Features
	Heaps    []Heap
	Lacks    string // what makes it unusable; "" if nothing does

	handle     uintptr
	extensions []string
	types      []memoryType
	family     uint32
	cacheUUID  [16]byte
	vendor, id uint32
}

// Limits are what the device can do at most. Sizes are in bytes.
type Limits struct {
	StorageRange   int64   // of a storage buffer as a shader sees it
	StorageAlign   int64   // of where one begins
	Allocation     int64   // of one piece of memory
	Allocations    int     // pieces of memory at once
	Bindings       int     // storage buffers of a shader
	Push           int     // push constants of a shader
	Shared         int     // memory of a workgroup
	Groups         [3]int  // workgroups of a dispatch
	GroupSize      [3]int  // invocations of a workgroup, in each direction
	Invocations    int     // invocations of a workgroup
	Subgroup       int     // invocations of a subgroup, as the driver chooses
	SubgroupRange  [2]int  // least and most, where it can choose
	ImportAlign    int64   // of memory that is imported; 0 if none can be
	TimestampNanos float64 // duration of a tick; 0 if there are no timestamps
	timestampMask  uint64
}

// Features are what shaders may need and devices may lack. All that the device
// has are enabled.
type Features struct {
	Storage8, Storage16 bool // 8-bit and 16-bit values in storage buffers
	Int8, Int16, Int64  bool // arithmetic
	Float16             bool
	IntegerDot          bool // products of packed 8-bit values
	SubgroupArithmetic  bool // sums over a subgroup
	SubgroupBallot      bool // values of one lane for all
	SubgroupShuffle     bool
	HostImport          bool // buffers in memory of the process
	Budget              bool // heaps tell what is free
}

// A Heap is memory of the device or of the host that the device can use.
type Heap struct {
	Size   int64
	Free   int64 // what this process may still take; -1 if the driver does not tell
	Device bool  // of the device
}

// find lists the physical devices.
func (v *Instance) find() error {
	p := v.fn.enumeratePhysicalDevices
	handles, err := list(func(n *uint32, first *uintptr) Result {
		return v.fn.result(p, v.handle, uintptr(unsafe.Pointer(n)), uintptr(unsafe.Pointer(first)))
	}, p.name)
	if err != nil {
		return err
	}
	for i, h := range handles {
		info, err := v.info(i, h)
		if err != nil {
			return err
		}
		v.devices = append(v.devices, info)
	}
	return nil
}

func (v *Instance) info(index int, h uintptr) (Info, error) {
	d := Info{Index: index, handle: h}
	p := v.fn.enumerateDeviceExtensionProperties
	all, err := list(func(n *uint32, first *extensionProperties) Result {
		return v.fn.result(p, h, 0, uintptr(unsafe.Pointer(n)), uintptr(unsafe.Pointer(first)))
	}, p.name)
	if err != nil {
		return d, err
	}
	d.extensions = extensionNames(all)
	v.properties(&d)
	if d.API < Required {
		d.Lacks = fmt.Sprintf("its driver has version %s of Vulkan; %s is needed: update the driver", d.API, Required)
	} else {
		v.features(&d)
	}
	v.memory(&d)
	v.queue(&d)
	if v.cfg.Alter != nil {
		v.cfg.Alter(&d)
		if d.API < Required {
			d.Lacks = fmt.Sprintf("its driver has version %s of Vulkan; %s is needed: update the driver", d.API, Required)
		}
	}
	return d, nil
}

func (d *Info) has(extension string) bool { return slices.Contains(d.extensions, extension) }

func (v *Instance) properties(d *Info) {
	v11 := vulkan11Properties{next: next{sType: typeVulkan11Properties}}
	v12 := vulkan12Properties{next: next{typeVulkan12Properties, unsafe.Pointer(&v11)}}
	sizes := subgroupSizeControlProperties{next: next{sType: typeSubgroupSizeControlProperties}}
	host := externalMemoryHostProperties{next: next{sType: typeExternalMemoryHostProperties}}
	p := properties2{next: next{sType: typeProperties2}}
	// The core properties first: only they tell what the others may be asked of.
	v.fn.do(v.fn.getPhysicalDeviceProperties2, d.handle, uintptr(unsafe.Pointer(&p)))
	if p.apiVersion >= Required {
		last := &v11.next
		p.pNext = unsafe.Pointer(&v12)
		if d.has(sizeControl) {
			last.pNext, last = unsafe.Pointer(&sizes), &sizes.next
		}
		if d.has(hostImport) {
			last.pNext = unsafe.Pointer(&host)
		}
		v.fn.do(v.fn.getPhysicalDeviceProperties2, d.handle, uintptr(unsafe.Pointer(&p)))
	}
	d.Name, d.Type, d.API = text(p.deviceName[:]), DeviceType(p.deviceType), p.apiVersion
	d.Driver = text(v12.driverName[:]) + " " + text(v12.driverInfo[:])
	d.vendor, d.id, d.cacheUUID = p.vendorID, p.deviceID, p.pipelineCacheUUID
	l := &p.limits
	three := func(x [3]uint32) [3]int { return [3]int{int(x[0]), int(x[1]), int(x[2])} }
	d.Limits = Limits{
		StorageRange: int64(l.maxStorageBufferRange), StorageAlign: int64(max(l.minStorageBufferOffsetAlignment, 4)),
		Allocation: int64(min(v11.maxMemoryAllocationSize, 1<<62)), Allocations: int(l.maxMemoryAllocationCount),
		Bindings: int(min(l.maxStorageBuffersPerStage, l.maxStorageBuffersPerSet, l.maxResourcesPerStage)),
		Push:     int(l.maxPushConstantsSize), Shared: int(l.maxComputeSharedMemorySize),
		Groups: three(l.maxComputeWorkGroupCount), GroupSize: three(l.maxComputeWorkGroupSize), Invocations: int(l.maxComputeWorkGroupInvocations),
		Subgroup: int(v11.subgroupSize), SubgroupRange: [2]int{int(v11.subgroupSize), int(v11.subgroupSize)},
		ImportAlign: int64(host.minImportedHostPointerAlignment), TimestampNanos: float64(l.timestampPeriod),
	}
	if sizes.minSubgroupSize > 0 {
		d.Limits.SubgroupRange = [2]int{int(sizes.minSubgroupSize), int(sizes.maxSubgroupSize)}
	}
	const compute, arithmetic, ballot, shuffle = 0x20, 4, 8, 0x10
	in := func(op uint32) bool {
		return v11.subgroupSupportedStages&compute != 0 && v11.subgroupSupportedOperations&op != 0
	}
	d.Features.SubgroupArithmetic, d.Features.SubgroupBallot, d.Features.SubgroupShuffle = in(arithmetic), in(ballot), in(shuffle)
}

func (v *Instance) features(d *Info) {
	dot := integerDotProductFeatures{next: next{sType: typeIntegerDotProductFeatures}}
	v11 := vulkan11Features{next: next{sType: typeVulkan11Features}}
	v12 := vulkan12Features{next: next{typeVulkan12Features, unsafe.Pointer(&v11)}}
	if d.has(integerDot) {
		v11.pNext = unsafe.Pointer(&dot)
	}
	f := features2{next: next{typeFeatures2, unsafe.Pointer(&v12)}}
	v.fn.do(v.fn.getPhysicalDeviceFeatures2, d.handle, uintptr(unsafe.Pointer(&f)))
	x := &d.Features
	x.Storage8, x.Storage16 = v12.storageBuffer8BitAccess != 0, v11.storageBuffer16BitAccess != 0
	x.Int8, x.Int16, x.Int64, x.Float16 = v12.shaderInt8 != 0, f.shaderInt16 != 0, f.shaderInt64 != 0, v12.shaderFloat16 != 0
	x.IntegerDot = dot.shaderIntegerDotProduct != 0
	x.HostImport = d.has(hostImport) && d.Limits.ImportAlign > 0
	x.Budget = d.has(memoryBudget)
}

func (v *Instance) memory(d *Info) {
	budget := memoryBudgetProperties{next: next{sType: typeMemoryBudgetProperties}}
	m := memoryProperties2{next: next{sType: typeMemoryProperties2}}
	if d.Features.Budget {
		m.pNext = unsafe.Pointer(&budget)
	}
	v.fn.do(v.fn.getPhysicalDeviceMemoryProperties2, d.handle, uintptr(unsafe.Pointer(&m)))
	d.types = slices.Clone(m.types[:m.typeCount])
	d.Heaps = nil
	for i, h := range m.heaps[:m.heapCount] {
		const local = 1
		heap := Heap{int64(h.size), -1, h.flags&local != 0}
		if d.Features.Budget {
			heap.Free = max(0, int64(budget.budget[i])-int64(budget.usage[i]))
		}
		d.Heaps = append(d.Heaps, heap)
	}
}

// queue chooses the family of queues: one that computes and does no graphics,
// if there is one, because it is not held up by the desktop.
func (v *Instance) queue(d *Info) {
	const graphics, compute = 1, 2
	var n uint32
	v.fn.do(v.fn.getPhysicalDeviceQueueFamilies, d.handle, uintptr(unsafe.Pointer(&n)), 0)
	all := make([]queueFamilyProperties2, n)
	for i := range all {
		all[i].sType = typeQueueFamilyProperties2
	}
	if n > 0 {
		v.fn.do(v.fn.getPhysicalDeviceQueueFamilies, d.handle, uintptr(unsafe.Pointer(&n)), uintptr(unsafe.Pointer(&all[0])))
	}
	best := -1
	for i, q := range all {
		if q.flags&compute != 0 && q.count > 0 && (best < 0 || all[best].flags&graphics != 0 && q.flags&graphics == 0) {
			best = i
		}
	}
	if best < 0 {
		if d.Lacks == "" {
			d.Lacks = "it has no queue that computes"
		}
		return
	}
	d.family = uint32(best)
	if bits := all[best].timestampValidBits; bits == 0 {
		d.Limits.TimestampNanos = 0
	} else {
		d.Limits.timestampMask = 1<<bits - 1 // all ones for 64
	}
}
