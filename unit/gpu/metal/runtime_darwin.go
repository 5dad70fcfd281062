package metal

import (
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/ebitengine/purego/objc"
)

// system is the Objective-C runtime of macOS.
type system struct {
	copyAllDevices func() uintptr
	mu             sync.Mutex
	selectors      map[string]objc.SEL
}

// System opens the system's runtime and Metal.
func System() (Runtime, error) {
	for _, name := range []string{"/System/Library/Frameworks/Foundation.framework/Foundation", "/System/Library/Frameworks/CoreGraphics.framework/CoreGraphics"} {
		// MTLCopyAllDevices answers nothing in a process without CoreGraphics.
		if _, err := purego.Dlopen(name, purego.RTLD_LAZY|purego.RTLD_GLOBAL); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNoMetal, err)
		}
	}
	lib, err := purego.Dlopen("/System/Library/Frameworks/Metal.framework/Metal", purego.RTLD_LAZY|purego.RTLD_GLOBAL)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoMetal, err)
	}
	at, err := purego.Dlsym(lib, "MTLCopyAllDevices")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoMetal, err)
	}
	s := &system{selectors: map[string]objc.SEL{}}
	purego.RegisterFunc(&s.copyAllDevices, at)
	return s, nil
}

func (s *system) selector(name string) objc.SEL {
	s.mu.Lock()
	defer s.mu.Unlock()
	sel, ok := s.selectors[name]
	if !ok {
		sel = objc.RegisterName(name)
		s.selectors[name] = sel
	}
	return sel
}

func (s *system) Devices() []Object {
	array := Object(s.copyAllDevices())
	if array == 0 {
		return nil
	}
	defer s.Send(array, "release")
	var out []Object
	for i := range uint64(s.Send(array, "count")) {
		out = append(out, s.Send(s.Send(array, "objectAtIndex:", i), "retain"))
	}
	return out
}

func (s *system) Class(name string) Object { return Object(objc.GetClass(name)) }

func (s *system) Send(to Object, selector string, args ...any) Object {
	return Object(objc.ID(to).Send(s.selector(selector), args...))
}

func (s *system) Float(to Object, selector string) float64 {
	return objc.Send[float64](objc.ID(to), s.selector(selector))
}

func (s *system) Text(to Object, selector string) string {
	return objc.Send[string](objc.ID(to), s.selector(selector))
}

func (s *system) Pointer(to Object, selector string) unsafe.Pointer {
	return objc.Send[unsafe.Pointer](objc.ID(to), s.selector(selector))
}

func (s *system) Pool() func() {
	runtime.LockOSThread()
	pool := s.Send(s.Class("NSAutoreleasePool"), "new")
	return func() {
		s.Send(pool, "drain")
		runtime.UnlockOSThread()
	}
}
