package gguf

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/tandemrun/tandem/quant"
)

// part is one parsed file: a whole model or a part of a split one.
type part struct {
	name      string
	version   uint32
	alignment uint64
	entries   []entry
	index     map[string]int
	tensors   []*Tensor
	byName    map[string]*Tensor
}

// parser walks over the bytes of a file. at never exceeds len(data).
type parser struct {
	name string
	data []byte
	at   int
}

// fail returns an error for the field that begins at offset.
func (p *parser) fail(offset int, field, format string, args ...any) error {
	return &Error{File: p.name, Offset: int64(offset), Field: field, Msg: fmt.Sprintf(format, args...)}
}

// left returns the number of bytes not read yet.
func (p *parser) left() int { return len(p.data) - p.at }

// take returns the next n bytes.
func (p *parser) take(n int, field string) ([]byte, error) {
	if n > p.left() {
		return nil, p.fail(p.at, field, "the file ends here: %d more bytes are needed, %d are left", n, p.left())
	}
	b := p.data[p.at : p.at+n : p.at+n]
	p.at += n
	return b, nil
}

func (p *parser) uint32(field string) (uint32, error) {
	b, err := p.take(4, field)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint32(b), nil
}

func (p *parser) uint64(field string) (uint64, error) {
	b, err := p.take(8, field)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b), nil
}

// count reads a number of things that take at least size bytes each, and refuses one that the rest of the file cannot
// hold. Everything that is allocated later is bounded by such a check.
func (p *parser) count(field string, size int) (int, error) {
	start := p.at
	n, err := p.uint64(field)
	if err != nil {
		return 0, err
	}
	if n > uint64(p.left()/size) {
		return 0, p.fail(start, field, "%d do not fit into the %d bytes left of the file", n, p.left())
	}
	return int(n), nil
}

// bytes reads a length and that many bytes.
func (p *parser) bytes(field string) ([]byte, error) {
	n, err := p.count(field, 1)
	if err != nil {
		return nil, err
	}
	return p.take(n, field)
}

// identifier reads a key or a tensor name.
func (p *parser) identifier(field string) (string, error) {
	start := p.at
	b, err := p.bytes(field)
	if err != nil {
		return "", err
	}
	if len(b) == 0 || len(b) > maxNameBytes {
		return "", p.fail(start, field, "is %d bytes long; 1 to %d are possible", len(b), maxNameBytes)
	}
	return string(b), nil
}

// parse reads and checks a whole file.
func parse(name string, data []byte) (*part, error) {
	p := &parser{name: name, data: data}
	f := &part{name: name, index: map[string]int{}, byName: map[string]*Tensor{}}
	version, err := p.header()
	if err != nil {
		return nil, err
	}
	f.version = version
	tensors, err := p.count("tensor count", 8+1+4+8+4+8) // name, one dimension, type, offset
	if err != nil {
		return nil, err
	}
	keys, err := p.count("key count", 8+1+4+1) // key, type, smallest value
	if err != nil {
		return nil, err
	}
	for i := range keys {
		if err := p.entry(f, i); err != nil {
			return nil, err
		}
	}
	if err := p.alignment(f); err != nil {
		return nil, err
	}
	return f, p.tensors(f, tensors)
}

// header checks magic and version.
func (p *parser) header() (uint32, error) {
	m, err := p.uint32("magic")
	if err != nil {
		return 0, err
	}
	if m != magic {
		return 0, p.fail(0, "magic", "is %q, not \"GGUF\": this is no GGUF file", p.data[:4])
	}
	v, err := p.uint32("version")
	switch {
	case err != nil:
		return 0, err
	case v == 2 || v == 3:
		return v, nil
	case v != 0 && v&0xffff == 0:
		return 0, p.fail(4, "version", "the file is big-endian (version %d); only little-endian files are read: convert it", bits.ReverseBytes32(v))
	}
	return 0, p.fail(4, "version", "is %d; versions 2 and 3 are read: convert the model anew", v)
}

// entry reads the i-th key and its value.
func (p *parser) entry(f *part, i int) error {
	start := p.at
	key, err := p.identifier(fmt.Sprintf("key %d", i))
	if err != nil {
		return err
	}
	if first, ok := f.index[key]; ok {
		return p.fail(start, key, "the key stands twice in the file, first at byte %d", f.entries[first].offset)
	}
	typ, err := p.valueType(key)
	if err != nil {
		return err
	}
	v := Value{typ: typ}
	if typ == Array {
		v, err = p.array(key, 1)
	} else {
		v.raw, err = p.element(key, typ)
	}
	if err != nil {
		return err
	}
	f.index[key] = len(f.entries)
	f.entries = append(double(f.entries), entry{key, int64(start), v})
	return nil
}

// double makes room for at least one more element by doubling, so that all growth together allocates no more than
// twice what is kept; append alone would slow down to a quarter at a time.
func double[T any](s []T) []T {
	if len(s) == cap(s) {
		s = slices.Grow(s, max(len(s), 16))
	}
	return s
}

// valueType reads a value type.
func (p *parser) valueType(field string) (ValueType, error) {
	start := p.at
	t, err := p.uint32(field)
	if err != nil {
		return 0, err
	}
	if !ValueType(t).known() {
		return 0, p.fail(start, field, "value type %d is unknown", t)
	}
	return ValueType(t), nil
}

// element reads a value that is no array and returns its bytes, of a string without the length.
func (p *parser) element(field string, t ValueType) ([]byte, error) {
	if t == String {
		return p.bytes(field)
	}
	start := p.at
	b, err := p.take(t.size(), field)
	if err == nil && t == Bool && b[0] > 1 {
		return nil, p.fail(start, field, "a bool is 0 or 1, not %d", b[0])
	}
	return b, err
}

// array reads the element type, count and elements of an array that stands in depth-1 others.
func (p *parser) array(field string, depth int) (Value, error) {
	start := p.at
	if depth > maxArrayDepth {
		return Value{}, p.fail(start, field, "arrays are nested more than %d deep", maxArrayDepth)
	}
	elem, err := p.valueType(field)
	if err != nil {
		return Value{}, err
	}
	n, err := p.count(field, elem.minSize())
	if err != nil {
		return Value{}, err
	}
	v := Value{typ: Array, elem: elem, count: n}
	start = p.at
	switch elem {
	case String, Array:
		for range n {
			if elem == Array {
				_, err = p.array(field, depth+1)
			} else {
				_, err = p.bytes(field)
			}
			if err != nil {
				return Value{}, err
			}
		}
	default: // cannot overflow: count has checked that it fits
		b, err := p.take(n*elem.size(), field)
		if err != nil {
			return Value{}, err
		}
		if elem != Bool {
			break
		}
		if i := slices.IndexFunc(b, func(c byte) bool { return c > 1 }); i >= 0 {
			return Value{}, p.fail(start+i, field, "a bool is 0 or 1, not %d", b[i])
		}
	}
	v.raw = p.data[start:p.at:p.at]
	return v, nil
}

// alignment takes the alignment from the metadata.
func (p *parser) alignment(f *part) error {
	f.alignment = defaultAlignment
	i, ok := f.index[keyAlignment]
	if !ok {
		return nil
	}
	e := f.entries[i]
	n, ok := e.value.int64()
	if !ok || n <= 0 || n&(n-1) != 0 {
		return p.fail(int(e.offset), keyAlignment, "is %v; it must be an integer and a power of two", e.value)
	}
	f.alignment = uint64(n)
	return nil
}

// described is where a tensor's description says that its data lies.
type described struct {
	start  int    // of the description in the file
	offset uint64 // of the data in the data section
	bytes  uint64
}

// tensors reads n tensor descriptions and places their data.
func (p *parser) tensors(f *part, n int) error {
	var places []described
	for i := range n {
		start := p.at
		t, offset, size, err := p.tensor(fmt.Sprintf("name of tensor %d", i))
		if err != nil {
			return err
		}
		if first, ok := f.byName[t.Name]; ok {
			return p.fail(start, tensorField(t.Name), "the name stands twice in the file, first at byte %d", places[slices.Index(f.tensors, first)].start)
		}
		f.byName[t.Name] = t
		places = append(double(places), described{start, offset, size})
		f.tensors = append(double(f.tensors), t)
	}
	return p.place(f, places)
}

// place gives the tensors their data: inside the file, aligned, no byte belonging to two of them.
func (p *parser) place(f *part, places []described) error {
	section := uint64(p.at)
	section += padding(section, f.alignment) // no overflow: both are below 2^63
	for i, t := range f.tensors {
		d := places[i]
		if d.offset%f.alignment != 0 {
			return p.fail(d.start, tensorField(t.Name), "offset %d is no multiple of the alignment %d", d.offset, f.alignment)
		}
		end, carry := bits.Add64(d.offset, d.bytes, 0)
		if carry != 0 || section > uint64(len(p.data)) || end > uint64(len(p.data))-section {
			return p.fail(d.start, tensorField(t.Name), "its data, %d bytes at %d of the data section (byte %d of the file), reaches past the file's end at byte %d: the file is truncated or damaged",
				d.bytes, d.offset, section, len(p.data))
		}
		at := section + d.offset
		t.Offset = int64(at)
		t.Data = p.data[at : at+d.bytes : at+d.bytes]
	}

	order := make([]int, len(places))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(places[a].offset, places[b].offset) })
	for k := 1; k < len(order); k++ {
		a, b := places[order[k-1]], places[order[k]]
		if a.offset+a.bytes > b.offset {
			return p.fail(b.start, tensorField(f.tensors[order[k]].Name), "its data overlaps that of tensor %q", f.tensors[order[k-1]].Name)
		}
	}
	return nil
}

// tensorField is how errors name a tensor.
func tensorField(name string) string { return fmt.Sprintf("tensor %q", name) }

// tensor reads one description: the tensor without its place, its offset within the data section and its bytes.
func (p *parser) tensor(field string) (t *Tensor, offset, size uint64, err error) {
	t = &Tensor{}
	if t.Name, err = p.identifier(field); err != nil {
		return nil, 0, 0, err
	}
	field = tensorField(t.Name)
	start := p.at
	n, err := p.uint32(field)
	if err != nil {
		return nil, 0, 0, err
	}
	if n < 1 || n > maxDims {
		return nil, 0, 0, p.fail(start, field, "has %d dimensions; 1 to %d are possible", n, maxDims)
	}
	start = p.at
	t.Dims = make([]uint64, n)
	for i := range t.Dims {
		if t.Dims[i], err = p.uint64(field); err != nil {
			return nil, 0, 0, err
		}
	}
	typeStart := p.at
	id, err := p.uint32(field)
	if err != nil {
		return nil, 0, 0, err
	}
	t.Type = quant.Type(id)
	if t.Type.BlockSize() == 0 {
		return nil, 0, 0, p.fail(typeStart, field, "its type %v has no known layout, so its data cannot be found", t.Type)
	}
	if size, err = tensorBytes(t.Type, t.Dims); err != nil {
		return nil, 0, 0, p.fail(start, field, "%v", err)
	}
	offset, err = p.uint64(field)
	return t, offset, size, err
}

// tensorBytes returns the bytes of a tensor, which are below 2^63.
func tensorBytes(t quant.Type, dims []uint64) (uint64, error) {
	if len(dims) < 1 || len(dims) > maxDims {
		return 0, fmt.Errorf("has %d dimensions; 1 to %d are possible", len(dims), maxDims)
	}
	elements := uint64(1)
	for i, d := range dims {
		high, low := bits.Mul64(elements, d)
		if d == 0 || high != 0 || low > math.MaxInt64 {
			return 0, fmt.Errorf("dimension %d is %d: a dimension is at least 1, and their product below 2^63", i, d)
		}
		elements = low
	}
	block := uint64(t.BlockSize())
	if block == 0 {
		return 0, fmt.Errorf("its type %v has no known layout, so its data cannot be found", t)
	}
	if dims[0]%block != 0 {
		return 0, fmt.Errorf("rows of %d elements are no multiple of %v's block of %d", dims[0], t, block)
	}
	high, size := bits.Mul64(elements/block, uint64(t.BlockBytes()))
	if high != 0 || size > math.MaxInt64 {
		return 0, fmt.Errorf("its data would take more than 2^63 bytes")
	}
	return size, nil
}
