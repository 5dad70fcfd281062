package vulkan

import (
	"fmt"
	"unsafe"

	"github.com/ebitengine/purego"
)

// proc is a function of the API.
type proc struct {
	name string
	fn   uintptr
}

// functions are those of the API that this package calls. Device functions are
// looked up once for the device they are called on.
type functions struct {
	fault func(call string) Result

	enumerateInstanceVersion, enumerateInstanceLayerProperties proc
	enumerateInstanceExtensionProperties, createInstance       proc

	destroyInstance, createDebugUtilsMessenger, destroyDebugUtilsMessenger proc
	enumeratePhysicalDevices, enumerateDeviceExtensionProperties           proc
	getPhysicalDeviceProperties2, getPhysicalDeviceFeatures2               proc
	getPhysicalDeviceMemoryProperties2, getPhysicalDeviceQueueFamilies     proc
	createDevice, getDeviceProcAddr                                        proc

	destroyDevice, getDeviceQueue, queueSubmit, deviceWaitIdle            proc
	createBuffer, destroyBuffer, getBufferMemoryRequirements              proc
	allocateMemory, freeMemory, mapMemory, bindBufferMemory               proc
	getMemoryHostPointerProperties                                        proc
	createShaderModule, destroyShaderModule                               proc
	createDescriptorSetLayout, destroyDescriptorSetLayout                 proc
	createPipelineLayout, destroyPipelineLayout                           proc
	createPipelineCache, destroyPipelineCache, getPipelineCacheData       proc
	createComputePipelines, destroyPipeline                               proc
	createDescriptorPool, destroyDescriptorPool, allocateDescriptorSets   proc
	updateDescriptorSets                                                  proc
	createCommandPool, destroyCommandPool                                 proc
	allocateCommandBuffers, freeCommandBuffers                            proc
	beginCommandBuffer, endCommandBuffer                                  proc
	cmdBindPipeline, cmdBindDescriptorSets, cmdPushConstants, cmdDispatch proc
	cmdPipelineBarrier, cmdCopyBuffer, cmdFillBuffer                      proc
	cmdResetQueryPool, cmdWriteTimestamp                                  proc
	createQueryPool, destroyQueryPool, getQueryPoolResults                proc
	createFence, destroyFence, resetFences, waitForFences                 proc
}

func (f *functions) global() map[string]*proc {
	return map[string]*proc{
		"vkEnumerateInstanceVersion":             &f.enumerateInstanceVersion,
		"vkEnumerateInstanceLayerProperties":     &f.enumerateInstanceLayerProperties,
		"vkEnumerateInstanceExtensionProperties": &f.enumerateInstanceExtensionProperties,
		"vkCreateInstance":                       &f.createInstance,
	}
}

func (f *functions) instance() map[string]*proc {
	return map[string]*proc{
		"vkDestroyInstance":                         &f.destroyInstance,
		"vkCreateDebugUtilsMessengerEXT":            &f.createDebugUtilsMessenger,
		"vkDestroyDebugUtilsMessengerEXT":           &f.destroyDebugUtilsMessenger,
		"vkEnumeratePhysicalDevices":                &f.enumeratePhysicalDevices,
		"vkEnumerateDeviceExtensionProperties":      &f.enumerateDeviceExtensionProperties,
		"vkGetPhysicalDeviceProperties2":            &f.getPhysicalDeviceProperties2,
		"vkGetPhysicalDeviceFeatures2":              &f.getPhysicalDeviceFeatures2,
		"vkGetPhysicalDeviceMemoryProperties2":      &f.getPhysicalDeviceMemoryProperties2,
		"vkGetPhysicalDeviceQueueFamilyProperties2": &f.getPhysicalDeviceQueueFamilies,
		"vkCreateDevice":                            &f.createDevice,
		"vkGetDeviceProcAddr":                       &f.getDeviceProcAddr,
	}
}

func (f *functions) device() map[string]*proc {
	return map[string]*proc{
		"vkDestroyDevice":                     &f.destroyDevice,
		"vkGetDeviceQueue":                    &f.getDeviceQueue,
		"vkQueueSubmit":                       &f.queueSubmit,
		"vkDeviceWaitIdle":                    &f.deviceWaitIdle,
		"vkCreateBuffer":                      &f.createBuffer,
		"vkDestroyBuffer":                     &f.destroyBuffer,
		"vkGetBufferMemoryRequirements":       &f.getBufferMemoryRequirements,
		"vkAllocateMemory":                    &f.allocateMemory,
		"vkFreeMemory":                        &f.freeMemory,
		"vkMapMemory":                         &f.mapMemory,
		"vkBindBufferMemory":                  &f.bindBufferMemory,
		"vkGetMemoryHostPointerPropertiesEXT": &f.getMemoryHostPointerProperties,
		"vkCreateShaderModule":                &f.createShaderModule,
		"vkDestroyShaderModule":               &f.destroyShaderModule,
		"vkCreateDescriptorSetLayout":         &f.createDescriptorSetLayout,
		"vkDestroyDescriptorSetLayout":        &f.destroyDescriptorSetLayout,
		"vkCreatePipelineLayout":              &f.createPipelineLayout,
		"vkDestroyPipelineLayout":             &f.destroyPipelineLayout,
		"vkCreatePipelineCache":               &f.createPipelineCache,
		"vkDestroyPipelineCache":              &f.destroyPipelineCache,
		"vkGetPipelineCacheData":              &f.getPipelineCacheData,
		"vkCreateComputePipelines":            &f.createComputePipelines,
		"vkDestroyPipeline":                   &f.destroyPipeline,
		"vkCreateDescriptorPool":              &f.createDescriptorPool,
		"vkDestroyDescriptorPool":             &f.destroyDescriptorPool,
		"vkAllocateDescriptorSets":            &f.allocateDescriptorSets,
		"vkUpdateDescriptorSets":              &f.updateDescriptorSets,
		"vkCreateCommandPool":                 &f.createCommandPool,
		"vkDestroyCommandPool":                &f.destroyCommandPool,
		"vkAllocateCommandBuffers":            &f.allocateCommandBuffers,
		"vkFreeCommandBuffers":                &f.freeCommandBuffers,
		"vkBeginCommandBuffer":                &f.beginCommandBuffer,
		"vkEndCommandBuffer":                  &f.endCommandBuffer,
		"vkCmdBindPipeline":                   &f.cmdBindPipeline,
		"vkCmdBindDescriptorSets":             &f.cmdBindDescriptorSets,
		"vkCmdPushConstants":                  &f.cmdPushConstants,
		"vkCmdDispatch":                       &f.cmdDispatch,
		"vkCmdPipelineBarrier":                &f.cmdPipelineBarrier,
		"vkCmdCopyBuffer":                     &f.cmdCopyBuffer,
		"vkCmdFillBuffer":                     &f.cmdFillBuffer,
		"vkCmdResetQueryPool":                 &f.cmdResetQueryPool,
		"vkCmdWriteTimestamp":                 &f.cmdWriteTimestamp,
		"vkCreateQueryPool":                   &f.createQueryPool,
		"vkDestroyQueryPool":                  &f.destroyQueryPool,
		"vkGetQueryPoolResults":               &f.getQueryPoolResults,
		"vkCreateFence":                       &f.createFence,
		"vkDestroyFence":                      &f.destroyFence,
		"vkResetFences":                       &f.resetFences,
		"vkWaitForFences":                     &f.waitForFences,
	}
}

// optional functions belong to extensions that may be missing; they are called
// only where the extension was enabled.
var optional = map[string]bool{
	"vkEnumerateInstanceVersion":          true, // of 1.1
	"vkCreateDebugUtilsMessengerEXT":      true,
	"vkDestroyDebugUtilsMessengerEXT":     true,
	"vkGetMemoryHostPointerPropertiesEXT": true,
}

// load looks procs up with vkGetInstanceProcAddr or vkGetDeviceProcAddr.
func load(procs map[string]*proc, get, parent uintptr) error {
	for name, p := range procs {
		fn, _, _ := purego.SyscallN(get, parent, uintptr(unsafe.Pointer(cstring(name))))
		if fn == 0 && !optional[name] {
			return fmt.Errorf("the Vulkan library has no function %s", name)
		}
		*p = proc{name, fn}
	}
	return nil
}

// call makes a call that can fail.
//
//go:uintptrescapes
func (f *functions) call(p proc, args ...uintptr) error {
	if r := f.result(p, args...); r < 0 {
		return &Error{p.name, r}
	}
	return nil
}

// result makes a call that answers with a result.
//
//go:uintptrescapes
func (f *functions) result(p proc, args ...uintptr) Result {
	if f.fault != nil {
		if r := f.fault(p.name); r != Success {
			return r
		}
	}
	r, _, _ := purego.SyscallN(p.fn, args...)
	return Result(int32(uint32(r)))
}

// do makes a call without an answer.
//
//go:uintptrescapes
func (f *functions) do(p proc, args ...uintptr) {
	purego.SyscallN(p.fn, args...)
}

// cstring is a string that C code can read.
func cstring(s string) *byte { return &append([]byte(s), 0)[0] }

// cstrings is a list of them; nil if it is empty.
func cstrings(list []string) **byte {
	if len(list) == 0 {
		return nil
	}
	out := make([]*byte, len(list))
	for i, s := range list {
		out[i] = cstring(s)
	}
	return &out[0]
}

// text is the characters before the first zero byte.
func text(b []byte) string {
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}

// textAt is a string of C code.
func textAt(p *byte) string {
	if p == nil {
		return ""
	}
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(p), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(p, n))
}
