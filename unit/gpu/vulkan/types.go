package vulkan

import "unsafe"

// The structures of the API, with the layout of 64-bit platforms, where the
// rules of Go and C agree. Fields that are not used are blank. Their sizes and
// offsets are those of the headers of version 1.3.239; the tests hold them.

const (
	typeApplicationInfo                = 0
	typeInstanceCreateInfo             = 1
	typeDeviceQueueCreateInfo          = 2
	typeDeviceCreateInfo               = 3
	typeSubmitInfo                     = 4
	typeMemoryAllocateInfo             = 5
	typeFenceCreateInfo                = 8
	typeQueryPoolCreateInfo            = 11
	typeBufferCreateInfo               = 12
	typeShaderModuleCreateInfo         = 16
	typePipelineCacheCreateInfo        = 17
	typePipelineShaderStageCreateInfo  = 18
	typeComputePipelineCreateInfo      = 29
	typePipelineLayoutCreateInfo       = 30
	typeDescriptorSetLayoutCreateInfo  = 32
	typeDescriptorPoolCreateInfo       = 33
	typeDescriptorSetAllocateInfo      = 34
	typeWriteDescriptorSet             = 35
	typeCommandPoolCreateInfo          = 39
	typeCommandBufferAllocateInfo      = 40
	typeCommandBufferBeginInfo         = 42
	typeMemoryBarrier                  = 46
	typeVulkan11Features               = 49
	typeVulkan11Properties             = 50
	typeVulkan12Features               = 51
	typeVulkan12Properties             = 52
	typeFeatures2                      = 1000059000
	typeProperties2                    = 1000059001
	typeQueueFamilyProperties2         = 1000059005
	typeMemoryProperties2              = 1000059006
	typeExternalMemoryBufferCreateInfo = 1000072000
	typeDebugUtilsMessengerCreateInfo  = 1000128004
	typeImportMemoryHostPointerInfo    = 1000178000
	typeMemoryHostPointerProperties    = 1000178001
	typeExternalMemoryHostProperties   = 1000178002
	typeSubgroupSizeControlProperties  = 1000225000
	typeMemoryBudgetProperties         = 1000237000
	typeIntegerDotProductFeatures      = 1000280000
)

// next begins every structure that can be extended.
type next struct {
	sType uint32
	pNext unsafe.Pointer
}

type applicationInfo struct {
	next
	applicationName *byte
	_               uint32
	engineName      *byte
	_               uint32
	apiVersion      Version
}

type instanceCreateInfo struct {
	next
	flags           uint32
	application     *applicationInfo
	layerCount      uint32
	layers          **byte
	extensionCount  uint32
	extensionsNames **byte
}

type debugUtilsMessengerCreateInfo struct {
	next
	flags, severity, kinds uint32
	callback               uintptr
	userData               uintptr
}

type debugUtilsMessengerCallbackData struct {
	_       [2]uint64 // type and extensions
	_       uint64    // flags
	_       *byte
	_       int32
	message *byte
	_       [6]uint64 // labels and objects
}

type extensionProperties struct {
	name [256]byte
	_    uint32
}

type layerProperties struct {
	name [256]byte
	_    [2]uint32
	_    [256]byte
}

type limits struct {
	_                               [7]uint32
	maxStorageBufferRange           uint32
	maxPushConstantsSize            uint32
	maxMemoryAllocationCount        uint32
	_                               uint32
	_                               [2]uint64
	_                               [3]uint32
	maxStorageBuffersPerStage       uint32
	_                               [3]uint32
	maxResourcesPerStage            uint32
	_                               [3]uint32
	maxStorageBuffersPerSet         uint32
	_                               [26]uint32
	maxComputeSharedMemorySize      uint32
	maxComputeWorkGroupCount        [3]uint32
	maxComputeWorkGroupInvocations  uint32
	maxComputeWorkGroupSize         [3]uint32
	_                               [13]uint32
	minMemoryMapAlignment           uint64
	_                               [2]uint64
	minStorageBufferOffsetAlignment uint64
	_                               [21]uint32
	timestampComputeAndGraphics     uint32
	timestampPeriod                 float32
	_                               [12]uint32
	_                               [2]uint64
	nonCoherentAtomSize             uint64
}

type properties2 struct {
	next
	apiVersion        Version
	driverVersion     uint32
	vendorID          uint32
	deviceID          uint32
	deviceType        uint32
	deviceName        [256]byte
	pipelineCacheUUID [16]byte
	limits            limits
	_                 [5]uint32
}

type vulkan11Properties struct {
	next
	_                           [40]byte
	_                           [2]uint32
	subgroupSize                uint32
	subgroupSupportedStages     uint32
	subgroupSupportedOperations uint32
	_                           [6]uint32
	maxMemoryAllocationSize     uint64
}

type vulkan12Properties struct {
	next
	driverID   uint32
	driverName [256]byte
	driverInfo [256]byte
	_          [4]byte
	_          [46]uint32
	_          uint64
	_          uint32
}

type subgroupSizeControlProperties struct {
	next
	minSubgroupSize, maxSubgroupSize uint32
	_                                [2]uint32
}

type externalMemoryHostProperties struct {
	next
	minImportedHostPointerAlignment uint64
}

type features2 struct {
	next
	_           [40]uint32
	shaderInt64 uint32
	shaderInt16 uint32
	_           [13]uint32
}

type vulkan11Features struct {
	next
	storageBuffer16BitAccess uint32
	_                        [11]uint32
}

type vulkan12Features struct {
	next
	_                       [2]uint32
	storageBuffer8BitAccess uint32
	_                       [4]uint32
	shaderFloat16           uint32
	shaderInt8              uint32
	_                       [38]uint32
}

type integerDotProductFeatures struct {
	next
	shaderIntegerDotProduct uint32
}

type memoryType struct {
	flags, heap uint32
}

type memoryHeap struct {
	size  uint64
	flags uint32
}

type memoryProperties2 struct {
	next
	typeCount uint32
	types     [32]memoryType
	heapCount uint32
	heaps     [16]memoryHeap
}

type memoryBudgetProperties struct {
	next
	budget, usage [16]uint64
}

type queueFamilyProperties2 struct {
	next
	flags, count, timestampValidBits uint32
	_                                [3]uint32
}

type deviceQueueCreateInfo struct {
	next
	_, family, count uint32
	priorities       *float32
}

type deviceCreateInfo struct {
	next
	_, queueCount  uint32
	queues         *deviceQueueCreateInfo
	_              uint32
	_              uintptr
	extensionCount uint32
	extensions     **byte
	_              uintptr
}

type bufferCreateInfo struct {
	next
	flags       uint32
	size        uint64
	usage       uint32
	sharingMode uint32
	_           uint32
	_           uintptr
}

type externalMemoryBufferCreateInfo struct {
	next
	handleTypes uint32
}

type memoryRequirements struct {
	size, alignment uint64
	types           uint32
}

type memoryAllocateInfo struct {
	next
	size      uint64
	typeIndex uint32
}

type importMemoryHostPointerInfo struct {
	next
	handleType  uint32
	hostPointer uintptr
}

type memoryHostPointerProperties struct {
	next
	types uint32
}

type shaderModuleCreateInfo struct {
	next
	flags    uint32
	codeSize uintptr
	code     *byte
}

type descriptorSetLayoutBinding struct {
	binding, kind, count, stages uint32
	_                            uintptr
}

type descriptorSetLayoutCreateInfo struct {
	next
	flags, bindingCount uint32
	bindings            *descriptorSetLayoutBinding
}

type pushConstantRange struct {
	stages, offset, size uint32
}

type pipelineLayoutCreateInfo struct {
	next
	flags, setLayoutCount  uint32
	setLayouts             *uint64
	pushConstantRangeCount uint32
	pushConstantRanges     *pushConstantRange
}

type specializationMapEntry struct {
	id, offset uint32
	size       uintptr
}

type specializationInfo struct {
	entryCount uint32
	entries    *specializationMapEntry
	dataSize   uintptr
	data       *uint32
}

type pipelineShaderStageCreateInfo struct {
	next
	flags, stage   uint32
	module         uint64
	name           *byte
	specialization *specializationInfo
}

type computePipelineCreateInfo struct {
	next
	flags  uint32
	stage  pipelineShaderStageCreateInfo
	layout uint64
	_      uint64
	_      int32
}

type pipelineCacheCreateInfo struct {
	next
	flags           uint32
	initialDataSize uintptr
	initialData     *byte
}

type descriptorPoolSize struct {
	kind, count uint32
}

type descriptorPoolCreateInfo struct {
	next
	flags, maxSets, sizeCount uint32
	sizes                     *descriptorPoolSize
}

type descriptorSetAllocateInfo struct {
	next
	pool    uint64
	count   uint32
	layouts *uint64
}

type descriptorBufferInfo struct {
	buffer         uint64
	offset, range_ uint64
}

type writeDescriptorSet struct {
	next
	set                           uint64
	binding, element, count, kind uint32
	_                             uintptr
	buffers                       *descriptorBufferInfo
	_                             uintptr
}

type commandPoolCreateInfo struct {
	next
	flags, family uint32
}

type commandBufferAllocateInfo struct {
	next
	pool         uint64
	level, count uint32
}

type commandBufferBeginInfo struct {
	next
	flags uint32
	_     uintptr
}

type memoryBarrier struct {
	next
	src, dst uint32
}

type bufferCopy struct {
	src, dst, size uint64
}

type submitInfo struct {
	next
	_              uint32
	_, _           uintptr
	commandCount   uint32
	commandBuffers *uintptr
	_              uint32
	_              uintptr
}

type fenceCreateInfo struct {
	next
	flags uint32
}

type queryPoolCreateInfo struct {
	next
	flags, kind, count, _ uint32
}
