package vulkan

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
)

const (
	validationLayer      = "VK_LAYER_KHRONOS_validation"
	debugUtils           = "VK_EXT_debug_utils"
	portabilityDiscovery = "VK_KHR_portability_enumeration"
	portabilitySubset    = "VK_KHR_portability_subset"
	hostImport           = "VK_EXT_external_memory_host"
	integerDot           = "VK_KHR_shader_integer_dot_product"
	sizeControl          = "VK_EXT_subgroup_size_control"
	memoryBudget         = "VK_EXT_memory_budget"
)

// Instance is an opened loader with the devices it found.
type Instance struct {
	cfg       Config
	fn        functions
	handle    uintptr
	messenger uint64
	devices   []Info

	mu       sync.Mutex
	messages []string // of the validation layer; it may speak from any thread
}

// Open loads the library and finds the devices. Without a library the error is
// [ErrNoLoader], without a driver [ErrNoDriver].
func Open(cfg Config) (*Instance, error) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		return nil, errors.New("the Vulkan unit needs a 64-bit build")
	}
	v := &Instance{cfg: cfg}
	v.fn.fault = cfg.Fault
	if cfg.SoftwareThreads > 0 {
		if err := setenv("LP_NUM_THREADS", strconv.Itoa(cfg.SoftwareThreads)); err != nil {
			return nil, err
		}
	}
	get, err := findLoader(cfg.Library)
	if err != nil {
		return nil, err
	}
	if err := load(v.fn.global(), get, 0); err != nil {
		return nil, err
	}
	version := MakeVersion(1, 0, 0)
	if v.fn.enumerateInstanceVersion.fn != 0 {
		if err := v.fn.call(v.fn.enumerateInstanceVersion, uintptr(unsafe.Pointer(&version))); err != nil {
			return nil, err
		}
	}
	if version < Required {
		return nil, fmt.Errorf("the Vulkan loader is of version %s; %s is needed: update it", version, Required)
	}
	if err := v.create(); err != nil {
		return nil, err
	}
	if err := load(v.fn.instance(), get, v.handle); err != nil {
		return nil, err
	}
	if err := v.listen(); err != nil {
		return nil, errors.Join(err, v.Close())
	}
	if err := v.find(); err != nil {
		return nil, errors.Join(err, v.Close())
	}
	return v, nil
}

// findLoader returns the address of vkGetInstanceProcAddr.
func findLoader(file string) (uintptr, error) {
	names := libraries()
	if file != "" {
		names = []string{file}
	}
	var why []string
	for _, name := range names {
		fn, err := openLibrary(name, "vkGetInstanceProcAddr")
		if err == nil {
			return fn, nil
		}
		why = append(why, strings.TrimSpace(err.Error()))
	}
	return 0, fmt.Errorf("%w (%s); install the driver of the GPU", ErrNoLoader, strings.Join(why, "; "))
}

func (v *Instance) create() error {
	var layers, extensions []string
	have, err := v.extensions()
	if err != nil {
		return err
	}
	if v.cfg.Validate {
		ok, err := v.hasLayer(validationLayer)
		if err != nil {
			return err
		}
		if !ok {
			return fmt.Errorf("the layer %s is not installed; it is a part of the Vulkan SDK, in Debian of vulkan-validationlayers", validationLayer)
		}
		layers, extensions = append(layers, validationLayer), append(extensions, debugUtils)
	}
	var flags uint32
	if slices.Contains(have, portabilityDiscovery) {
		extensions = append(extensions, portabilityDiscovery)
		const enumeratePortability = 1
		flags = enumeratePortability
	}
	info := instanceCreateInfo{
		next: next{sType: typeInstanceCreateInfo}, flags: flags,
		application: &applicationInfo{
			next: next{sType: typeApplicationInfo}, applicationName: cstring("tandem"), engineName: cstring("tandem"), apiVersion: Required,
		},
		layerCount: uint32(len(layers)), layers: cstrings(layers),
		extensionCount: uint32(len(extensions)), extensionsNames: cstrings(extensions),
	}
	err = v.fn.call(v.fn.createInstance, uintptr(unsafe.Pointer(&info)), 0, uintptr(unsafe.Pointer(&v.handle)))
	if errors.Is(err, NoDriver) {
		return fmt.Errorf("%w: %w", ErrNoDriver, err)
	}
	return err
}

// list calls a function that fills a list of unknown length.
func list[T any](each func(count *uint32, first *T) Result, name string) ([]T, error) {
	for {
		var n uint32
		if r := each(&n, nil); r < 0 {
			return nil, &Error{name, r}
		}
		if n == 0 {
			return nil, nil
		}
		out := make([]T, n)
		switch r := each(&n, &out[0]); {
		case r < 0:
			return nil, &Error{name, r}
		case r == incomplete: // it grew
			continue
		}
		return out[:n], nil
	}
}

func (v *Instance) extensions() ([]string, error) {
	p := v.fn.enumerateInstanceExtensionProperties
	all, err := list(func(n *uint32, first *extensionProperties) Result {
		return v.fn.result(p, 0, uintptr(unsafe.Pointer(n)), uintptr(unsafe.Pointer(first)))
	}, p.name)
	return extensionNames(all), err
}

func extensionNames(all []extensionProperties) []string {
	var out []string
	for i := range all {
		out = append(out, text(all[i].name[:]))
	}
	return out
}

func (v *Instance) hasLayer(name string) (bool, error) {
	p := v.fn.enumerateInstanceLayerProperties
	all, err := list(func(n *uint32, first *layerProperties) Result {
		return v.fn.result(p, uintptr(unsafe.Pointer(n)), uintptr(unsafe.Pointer(first)))
	}, p.name)
	return slices.ContainsFunc(all, func(l layerProperties) bool { return text(l.name[:]) == name }), err
}

// listen has the validation layer tell its warnings and errors.
func (v *Instance) listen() error {
	if !v.cfg.Validate {
		return nil
	}
	const warning, failure, general, validation, performance = 0x100, 0x1000, 1, 2, 4
	info := debugUtilsMessengerCreateInfo{
		next: next{sType: typeDebugUtilsMessengerCreateInfo}, severity: warning | failure, kinds: general | validation | performance,
		// A callback is never freed and a process can have 2000: validated
		// instances are for tests.
		callback: purego.NewCallback(func(severity, kinds uintptr, data *debugUtilsMessengerCallbackData, user uintptr) uintptr {
			v.mu.Lock()
			defer v.mu.Unlock()
			v.messages = append(v.messages, textAt(data.message))
			return 0
		}),
	}
	return v.fn.call(v.fn.createDebugUtilsMessenger, v.handle, uintptr(unsafe.Pointer(&info)), 0, uintptr(unsafe.Pointer(&v.messenger)))
}

// Messages are the warnings and errors of the validation layer so far.
func (v *Instance) Messages() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.messages)
}

// Devices lists the devices in the loader's order. Those whose Lacks is not
// empty cannot be opened.
func (v *Instance) Devices() []Info { return slices.Clone(v.devices) }

// Close frees the instance; its devices have been closed.
func (v *Instance) Close() error {
	if v.messenger != 0 {
		v.fn.do(v.fn.destroyDebugUtilsMessenger, v.handle, uintptr(v.messenger), 0)
		v.messenger = 0
	}
	if v.handle != 0 {
		v.fn.do(v.fn.destroyInstance, v.handle, 0)
		v.handle = 0
	}
	return nil
}
