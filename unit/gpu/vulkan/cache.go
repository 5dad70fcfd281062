package vulkan

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"unsafe"
)

// CacheIn has compiled pipelines kept in a file of a folder, one for each device
// and version of its driver, so that the next process compiles them faster. It
// is called before the first pipeline is made. A file that cannot be used is
// replaced when the device is closed.
func (d *Device) CacheIn(folder string) {
	x := binary.LittleEndian.AppendUint32(nil, d.info.vendor)
	x = binary.LittleEndian.AppendUint32(x, d.info.id)
	d.cacheFile = filepath.Join(folder, hex.EncodeToString(append(x, d.info.cacheUUID[:]...))+".pipelines")
}

// openCache makes the device's pipeline cache from its file, if it has one.
func (d *Device) openCache() error {
	if d.cache != 0 {
		return nil
	}
	info := pipelineCacheCreateInfo{next: next{sType: typePipelineCacheCreateInfo}}
	if d.cacheFile != "" {
		// A cache that cannot be read is as good as none.
		if data, err := os.ReadFile(d.cacheFile); err == nil && d.fits(data) {
			info.initialDataSize, info.initialData = uintptr(len(data)), &data[0]
		}
	}
	return d.create(d.fn.createPipelineCache, unsafe.Pointer(&info), &d.cache)
}

// fits reports whether data is a cache of this device and driver. Drivers must
// check it themselves; not all do.
func (d *Device) fits(data []byte) bool {
	const header = 32
	return len(data) > header &&
		binary.LittleEndian.Uint32(data) >= header && binary.LittleEndian.Uint32(data[4:]) == 1 &&
		binary.LittleEndian.Uint32(data[8:]) == d.info.vendor && binary.LittleEndian.Uint32(data[12:]) == d.info.id &&
		bytes.Equal(data[16:header], d.info.cacheUUID[:])
}

// saveCache writes the cache to its file, if it has grown. The file is replaced
// as a whole, so that processes that end at once do not spoil it.
func (d *Device) saveCache() error {
	if d.cacheFile == "" || d.cache == 0 || d.made == 0 || d.lost != nil {
		return nil
	}
	var n uintptr
	if err := d.fn.call(d.fn.getPipelineCacheData, d.handle, uintptr(d.cache), uintptr(unsafe.Pointer(&n)), 0); err != nil {
		return err
	}
	if n == 0 {
		return nil
	}
	data := make([]byte, n)
	if err := d.fn.call(d.fn.getPipelineCacheData, d.handle, uintptr(d.cache), uintptr(unsafe.Pointer(&n)), uintptr(unsafe.Pointer(&data[0]))); err != nil {
		return err
	}
	if old, err := os.ReadFile(d.cacheFile); err == nil && bytes.Equal(old, data[:n]) {
		return nil
	}
	return replace(d.cacheFile, data[:n])
}

func replace(file string, data []byte) error {
	wrap := func(err error) error { return fmt.Errorf("keeping compiled pipelines: %w", err) }
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return wrap(err)
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".pipelines-*")
	if err != nil {
		return wrap(err)
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		return wrap(errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}
