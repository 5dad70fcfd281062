package gguf

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"unsafe"
)

// mapping is a file's bytes in memory.
type mapping struct {
	data  []byte
	unmap func() error // nil if there is nothing to undo
	// drop takes bytes [lo, hi), whole pages, out of the resident set; nil if
	// the system has no such advice or the bytes are not a file's.
	drop func(lo, hi int)
}

// Release says that data, a view of a tensor or a part of one, is not needed
// for now: the pages that lie wholly inside it leave the resident set and are
// read from the file again when they are touched. It may be called from any
// goroutine, before Close.
func (f *File) Release(data []byte) {
	if len(data) == 0 {
		return
	}
	begin := uintptr(unsafe.Pointer(&data[0]))
	for _, m := range f.mappings {
		if m.drop == nil || len(m.data) == 0 {
			continue
		}
		base := uintptr(unsafe.Pointer(&m.data[0]))
		if begin < base || begin-base+uintptr(len(data)) > uintptr(len(m.data)) {
			continue
		}
		page := os.Getpagesize()
		lo, hi := int(begin-base), int(begin-base)+len(data)
		lo, hi = (lo+page-1)/page*page, hi/page*page
		if hi < lo {
			return
		}
		m.drop(lo, hi)
		return
	}
}

func (m *mapping) close() error {
	if m.unmap == nil {
		return nil
	}
	unmap := m.unmap
	m.unmap, m.data = nil, nil
	return unmap()
}

// openMapping maps the file at path.
func openMapping(path string) (*mapping, error) {
	fail := func(msg string, err error) error {
		return &Error{File: path, Offset: -1, Msg: msg, Err: err}
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fail("cannot open: "+reason(err), err)
	}
	defer file.Close() // the mapping keeps the content
	info, err := file.Stat()
	if err != nil {
		return nil, fail("cannot read its size: "+reason(err), err)
	}
	switch size := info.Size(); {
	case !info.Mode().IsRegular():
		return nil, fail("is no regular file", nil)
	case size < headerBytes:
		return nil, fail(fmt.Sprintf("has %d bytes, too few for a GGUF file", size), nil)
	case size > math.MaxInt:
		return nil, fail(fmt.Sprintf("has %d bytes, more than this system can map", size), nil)
	default:
		m, err := mapFile(file, int(size))
		if err != nil {
			return nil, fail("cannot map into memory: "+reason(err), err)
		}
		return m, nil
	}
}

// reason is err without the path, which our errors name already.
func reason(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

// Open maps the file at path and checks it. If path is any part of a split file, named like model-00001-of-00003.gguf,
// all parts are opened: they must be in the same folder. The file must not be truncated while it is open: the system
// answers access past the end of a mapped file with a fatal signal.
func Open(path string) (*File, error) {
	f := &File{}
	if err := f.open(path); err != nil {
		f.Close() // that the file is refused matters more than a failure to unmap it
		return nil, err
	}
	return f, nil
}

// Read is Open over bytes in memory. Tensors are views into data, which must not change. A part of a split file is
// refused, since the others cannot be found.
func Read(name string, data []byte) (*File, error) {
	p, err := parse(name, data)
	if err != nil {
		return nil, err
	}
	count, err := p.splitKey(keySplitCount, 1)
	if err != nil {
		return nil, err
	}
	if count > 1 {
		return nil, p.fail(keySplitCount, "this is one of %d parts of a split file: open it by its path", count)
	}
	f := &File{}
	f.add(p, len(data))
	return f, nil
}

// splitName takes the name of a part of a split file apart, such as model-00002-of-00003.gguf.
func splitName(path string) (prefix string, no, count int, ok bool) {
	const suffix = "-00000-of-00000.gguf"
	if len(path) < len(suffix) {
		return "", 0, 0, false
	}
	prefix, s := path[:len(path)-len(suffix)], path[len(path)-len(suffix):]
	if s[0] != '-' || s[6:10] != "-of-" || s[15:] != ".gguf" {
		return "", 0, 0, false
	}
	a, err1 := strconv.ParseUint(s[1:6], 10, 32)
	b, err2 := strconv.ParseUint(s[10:15], 10, 32)
	return prefix, int(a), int(b), err1 == nil && err2 == nil && a >= 1 && a <= b
}

// partName is the path of part no (from 1) of count.
func partName(prefix string, no, count int) string {
	return fmt.Sprintf("%s-%05d-of-%05d.gguf", prefix, no, count)
}

func (f *File) open(path string) error {
	prefix, _, named, split := splitName(path)
	first := path
	if split {
		first = partName(prefix, 1, named)
	}
	p, err := f.openPart(first, path)
	if err != nil {
		return err
	}
	count, err := p.splitKey(keySplitCount, 1)
	count = max(count, 1)
	switch {
	case err != nil:
		return err
	case count > 1 && !split:
		return p.fail(keySplitCount, "this is one of %d parts of a split file, but its name does not end in -00001-of-%05d.gguf: rename the parts", count, count)
	case split && count != named:
		return p.fail(keySplitCount, "is %d, but the file's name says %d parts", count, named)
	}
	for i := range count {
		if i > 0 {
			if p, err = f.openPart(partName(prefix, i+1, count), path); err != nil {
				return err
			}
		}
		if err := f.addPart(p, i, count); err != nil {
			return err
		}
	}
	if count == 1 {
		return nil
	}
	total, err := f.Uint(keySplitTensors)
	if err != nil {
		return err
	}
	if total != uint64(len(f.tensors)) {
		return &Error{File: f.name, Offset: f.entries[f.index[keySplitTensors]].offset, Field: keySplitTensors,
			Msg: fmt.Sprintf("is %d, but the %d parts hold %d tensors", total, count, len(f.tensors))}
	}
	return nil
}

// openPart maps and parses one file; opened is the path that the caller gave.
func (f *File) openPart(path, opened string) (*part, error) {
	m, err := openMapping(path)
	if err != nil {
		var e *Error
		if path != opened && errors.Is(err, fs.ErrNotExist) && errors.As(err, &e) {
			e.Msg = fmt.Sprintf("this part of the split file is missing; put it beside %s", filepath.Base(opened))
		}
		return nil, err
	}
	f.mappings, f.paths = append(f.mappings, m), append(f.paths, path)
	return parse(path, m.data)
}

// addPart checks the split.* keys of part no (from 0) and adds it.
func (f *File) addPart(p *part, no, count int) error {
	if count > 1 {
		n, err := p.splitKey(keySplitCount, 0)
		if err != nil {
			return err
		}
		if n != count {
			return p.fail(keySplitCount, "is %d, but %d in the first part: the parts do not belong together", n, count)
		}
		if n, err = p.splitKey(keySplitNo, -1); err != nil {
			return err
		}
		if n != no {
			return p.fail(keySplitNo, "is %d, but the file's name makes it %d (from 0)", n, no)
		}
	}
	for _, t := range p.tensors {
		if other, ok := f.byName[t.Name]; ok {
			return &Error{File: p.name, Offset: t.Offset, Field: tensorField(t.Name), Msg: fmt.Sprintf("is in part %d as well", other.Part+1)}
		}
		t.Part = no
	}
	f.add(p, len(f.mappings[no].data))
	return nil
}

// add appends a checked part of size bytes.
func (f *File) add(p *part, size int) {
	if f.byName == nil {
		f.name, f.version, f.alignment = p.name, p.version, p.alignment
		f.entries, f.index = p.entries, p.index
		f.tensors, f.byName, f.size = p.tensors, p.byName, int64(size)
		return
	}
	f.size += int64(size)
	f.tensors = append(f.tensors, p.tensors...)
	maps.Copy(f.byName, p.byName)
}

// splitKey returns an integer of the part's metadata, or missing if the key is not there.
func (p *part) splitKey(key string, missing int) (int, error) {
	i, ok := p.index[key]
	if !ok {
		return missing, nil
	}
	n, ok := p.entries[i].value.int64()
	if !ok || n < 0 || n > math.MaxUint16 {
		return 0, p.fail(key, "is %v, want an integer from 0 to %d", p.entries[i].value, math.MaxUint16)
	}
	return int(n), nil
}

// fail returns an error about a key.
func (p *part) fail(key, format string, args ...any) error {
	e := &Error{File: p.name, Offset: -1, Field: key, Msg: fmt.Sprintf(format, args...)}
	if i, ok := p.index[key]; ok {
		e.Offset = p.entries[i].offset
	}
	return e
}
