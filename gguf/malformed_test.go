package gguf

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/tandemrun/tandem/quant"
)

var update = flag.Bool("update", false, "rewrite the seed corpus of FuzzRead")

// raw builds files by hand, right or wrong.
type raw []byte

func (r raw) u32(v uint32) raw { return binary.LittleEndian.AppendUint32(r, v) }
func (r raw) u64(v uint64) raw { return binary.LittleEndian.AppendUint64(r, v) }
func (r raw) str(s string) raw { return append(r.u64(uint64(len(s))), s...) }
func (r raw) pad(n int) raw {
	for len(r)%n != 0 {
		r = append(r, 0)
	}
	return r
}
func (r raw) zeros(n int) raw { return append(r, make([]byte, n)...) }

func header(version uint32, tensors, keys uint64) raw {
	return raw(nil).u32(magic).u32(version).u64(tensors).u64(keys)
}

// key appends a key and the type of its value.
func (r raw) key(name string, t ValueType) raw { return r.str(name).u32(uint32(t)) }

// tensor appends a description.
func (r raw) tensor(name string, t quant.Type, offset uint64, dims ...uint64) raw {
	r = r.str(name).u32(uint32(len(dims)))
	for _, d := range dims {
		r = r.u64(d)
	}
	return r.u32(uint32(t)).u64(offset)
}

// valid is a whole small file with values of every type and two tensors.
func valid(version uint32) raw {
	r := header(version, 2, 15)
	r = append(r.key("a.uint8", Uint8), 200)
	r = append(r.key("a.int8", Int8), 0xff)
	r = append(r.key("a.uint16", Uint16), 1, 2)
	r = append(r.key("a.int16", Int16), 0xfe, 0xff)
	r = r.key("a.uint32", Uint32).u32(7)
	r = r.key("a.int32", Int32).u32(1<<32 - 3)
	r = r.key("a.float32", Float32).u32(0x3fc00000)
	r = append(r.key("a.bool", Bool), 1)
	r = r.key("a.string", String).str("hé")
	r = r.key("a.uint64", Uint64).u64(1<<64 - 1)
	r = r.key("a.int64", Int64).u64(1<<64 - 9)
	r = r.key("a.float64", Float64).u64(0x3ff8000000000000)
	r = r.key("a.strings", Array).u32(uint32(String)).u64(3).str("x").str("").str("yz")
	r = append(r.key("a.bools", Array).u32(uint32(Bool)).u64(2), 0, 1)
	r = r.key("a.nested", Array).u32(uint32(Array)).u64(2)
	r = r.u32(uint32(Int32)).u64(1).u32(5)
	r = r.u32(uint32(String)).u64(1).str("in")
	r = r.tensor("t.f32", quant.F32, 0, 3, 2)
	r = r.tensor("t.q8_0", quant.Q8_0, 32, 32)
	return r.pad(32).zeros(24).pad(32).zeros(34)
}

type malformed struct {
	name   string
	data   raw
	field  string // exactly the error's field
	offset int64
	msg    string // part of the error's message
}

// malformedFiles lists a file for each way to be wrong.
func malformedFiles() []malformed {
	var list []malformed
	add := func(name string, data raw, field string, offset int, msg string) {
		list = append(list, malformed{name, data, field, int64(offset), msg})
	}
	const first = headerBytes // offset of the first key or tensor
	one := header(3, 0, 1)

	add("empty", nil, "magic", 0, "ends here")
	add("wrong-magic", append(raw("GGML"), valid(3)[4:]...), "magic", 0, "no GGUF file")
	add("version-1", header(1, 0, 0), "version", 4, "is 1")
	add("version-4", header(4, 0, 0), "version", 4, "is 4")
	add("version-0", header(0, 0, 0), "version", 4, "is 0")
	add("big-endian", header(0x03000000, 0, 0), "version", 4, "big-endian (version 3)")
	add("cut-version", valid(3)[:6], "version", 4, "ends here")
	add("cut-tensor-count", valid(3)[:12], "tensor count", 8, "ends here")
	add("cut-key-count", one[:20], "key count", 16, "ends here")

	add("tensor-count-too-large", header(3, 1<<60, 0).zeros(64), "tensor count", 8, "do not fit")
	add("tensor-count-all-ones", header(3, 1<<64-1, 0).zeros(64), "tensor count", 8, "do not fit")
	add("key-count-too-large", header(3, 0, 1<<40).zeros(64), "key count", 16, "do not fit")
	add("key-count-one-too-many", header(3, 0, 2).key("key.of.some.length", Uint32).u32(1), "key 1", first+34, "ends here")

	add("key-length-too-large", one.u64(1<<63).zeros(32), "key 0", first, "do not fit")
	add("key-too-long", one.str(strings.Repeat("k", 65536)).u32(0).zeros(1), "key 0", first, "65536 bytes long")
	add("key-empty", one.str("").u32(0).zeros(4), "key 0", first, "0 bytes long")
	add("key-twice", header(3, 0, 2).key("twice", Uint32).u32(1).key("twice", Uint32).u32(1), "twice", first+21, "first at byte 24")
	add("cut-in-key", one.u64(20).zeros(12), "key 0", first, "do not fit")
	add("value-type-unknown", one.key("k", 13).u64(0), "k", first+9, "value type 13")
	add("cut-scalar", one.key("long.key", Uint64).u32(0), "long.key", first+20, "ends here")
	add("cut-string", one.key("k", String).u64(10).zeros(9), "k", first+13, "do not fit")
	add("string-length-all-ones", one.key("k", String).u64(1<<64-1).zeros(9), "k", first+13, "do not fit")
	add("bool-2", append(one.key("k", Bool), 2), "k", first+13, "0 or 1")
	add("bools-2", append(one.key("k", Array).u32(uint32(Bool)).u64(3), 0, 1, 2), "k", first+27, "0 or 1")

	add("array-element-type-unknown", one.key("k", Array).u32(99).u64(0), "k", first+13, "value type 99")
	add("array-count-too-large", one.key("k", Array).u32(uint32(Uint8)).u64(17).zeros(16), "k", first+17, "do not fit")
	add("array-product-overflows", one.key("k", Array).u32(uint32(Uint64)).u64(1<<61+1).zeros(16), "k", first+17, "do not fit")
	add("array-of-2^40-empty-strings", one.key("k", Array).u32(uint32(String)).u64(1<<40).zeros(800), "k", first+17, "do not fit")
	add("array-string-cut", one.key("k", Array).u32(uint32(String)).u64(2).str("ab").u64(5).zeros(4), "k", first+35, "do not fit")
	add("array-of-2^40-arrays", one.key("k", Array).u32(uint32(Array)).u64(1<<40).zeros(800), "k", first+17, "do not fit")
	deep := one.key("k", Array)
	for range 1000 {
		deep = deep.u32(uint32(Array)).u64(1)
	}
	add("arrays-nested-too-deep", deep, "k", first+13+4*12, "nested more than 4")
	add("type-confused-string-as-array", one.key("k", Array).str("not an array"), "k", first+17, "do not fit")

	add("alignment-no-power-of-two", one.key(keyAlignment, Uint32).u32(48), keyAlignment, first, "power of two")
	add("alignment-0", one.key(keyAlignment, Uint32).u32(0), keyAlignment, first, "power of two")
	add("alignment-negative", one.key(keyAlignment, Int64).u64(1<<63), keyAlignment, first, "power of two")
	add("alignment-a-string", one.key(keyAlignment, String).str("32"), keyAlignment, first, "power of two")

	file := func(tensors uint64, r raw, data int) raw {
		return append(header(3, tensors, 0), r...).pad(32).zeros(data)
	}
	none := raw(nil)
	add("tensor-name-too-large", file(1, none.u64(1<<62).zeros(40), 64), "name of tensor 0", first, "do not fit")
	add("tensor-name-too-long", file(1, none.tensor(strings.Repeat("n", 65536), quant.F32, 0, 4), 64), "name of tensor 0", first, "65536 bytes long")
	add("tensor-name-empty", file(1, none.tensor("", quant.F32, 0, 4), 64), "name of tensor 0", first, "0 bytes long")
	add("tensor-twice", file(2, none.tensor("t", quant.F32, 0, 4).tensor("t", quant.F32, 32, 4), 64), `tensor "t"`, first+33, "first at byte 24")
	add("tensor-0-dims", file(1, none.tensor("t", quant.F32, 0), 64), `tensor "t"`, first+9, "has 0 dimensions")
	add("tensor-5-dims", file(1, none.tensor("t", quant.F32, 0, 1, 1, 1, 1, 1), 64), `tensor "t"`, first+9, "has 5 dimensions")
	add("tensor-2^32-1-dims", file(1, none.str("t").u32(1<<32-1).zeros(64), 64), `tensor "t"`, first+9, "dimensions")
	add("tensor-dim-0", file(1, none.tensor("t", quant.F32, 0, 4, 0), 64), `tensor "t"`, first+13, "dimension 1 is 0")
	add("tensor-product-overflows", file(1, none.tensor("t", quant.F32, 0, 1<<32, 1<<32), 64), `tensor "t"`, first+13, "product below 2^63")
	add("tensor-product-wraps-to-small", file(1, none.tensor("t", quant.F32, 0, 1<<32+1, 1<<32), 64), `tensor "t"`, first+13, "product below 2^63")
	add("tensor-bytes-overflow", file(1, none.tensor("t", quant.F64, 0, 1<<62), 64), `tensor "t"`, first+13, "more than 2^63 bytes")
	add("tensor-type-unknown", file(1, none.tensor("t", 77, 0, 4), 64), `tensor "t"`, first+21, "type(77)")
	add("tensor-type-withdrawn", file(1, none.tensor("t", 31, 0, 4), 64), `tensor "t"`, first+21, "Q4_0_4_4")
	add("tensor-row-no-multiple", file(1, none.tensor("t", quant.Q4_0, 0, 48), 64), `tensor "t"`, first+13, "block of 32")
	add("tensor-unaligned", file(1, none.tensor("t", quant.F32, 16, 4), 64), `tensor "t"`, first, "alignment 32")
	add("tensor-past-end", file(1, none.tensor("t", quant.F32, 64, 4), 64), `tensor "t"`, first, "past the file's end")
	add("tensor-one-byte-short", file(1, none.tensor("t", quant.F32, 0, 16), 63), `tensor "t"`, first, "past the file's end")
	add("tensor-offset-wraps", file(1, none.tensor("t", quant.F32, 1<<64-32, 16), 64), `tensor "t"`, first, "past the file's end")
	add("tensor-huge", file(1, none.tensor("t", quant.F32, 0, 1<<60), 64), `tensor "t"`, first, "past the file's end")
	add("tensor-overlap", file(2, none.tensor("t", quant.F32, 0, 16).tensor("u", quant.F32, 32, 4), 64), `tensor "u"`, first+33, `overlaps that of tensor "t"`)
	add("tensor-cut", append(header(3, 1, 0), none.tensor("name", quant.F32, 0, 4)[:34]...), `tensor "name"`, first+28, "ends here")
	add("no-data-section", append(header(3, 1, 0), none.tensor("t", quant.F32, 0, 4)...), `tensor "t"`, first, "past the file's end")
	aligned := header(3, 1, 1).key(keyAlignment, Uint64).u64(1 << 62)
	add("alignment-larger-than-file", append(aligned, none.tensor("t", quant.F32, 0, 4)...).zeros(64), `tensor "t"`, len(aligned), "past the file's end")
	add("split-part-alone", append(one.key(keySplitCount, Uint16), 3, 0), keySplitCount, first, "one of 3 parts")
	return list
}

func TestMalformedFilesAreErrorsWithFieldAndOffset(t *testing.T) {
	for _, m := range malformedFiles() {
		t.Run(m.name, func(t *testing.T) {
			f, err := Read("bad.gguf", m.data)
			if err == nil {
				t.Fatalf("accepted: %v", f.Keys())
			}
			e, ok := err.(*Error)
			if !ok {
				t.Fatalf("%T is no *Error: %v", err, err)
			}
			if e.File != "bad.gguf" || e.Field != m.field || e.Offset != m.offset || !strings.Contains(e.Msg, m.msg) {
				t.Errorf("got %v\nwant field %q, byte %d, message with %q", err, m.field, m.offset, m.msg)
			}
		})
	}
}

// TestEveryTruncationIsAnError cuts a whole file at each byte before its last data byte.
func TestEveryTruncationIsAnError(t *testing.T) {
	whole := valid(3)
	for n := range whole {
		if _, err := Read("cut.gguf", whole[:n:n]); err == nil {
			t.Errorf("cut to %d of %d bytes: accepted", n, len(whole))
		}
	}
}

// seeds are the files of FuzzRead's corpus.
func seeds() map[string]raw {
	all := map[string]raw{
		"valid-v2":    valid(2),
		"valid-v3":    valid(3),
		"valid-empty": header(3, 0, 0),
		"valid-many-keys": func() raw {
			r := header(3, 0, 400)
			for i := range 400 {
				r = append(r.key(strconv.Itoa(i), Uint8), 1)
			}
			return r
		}(),
		"valid-many-tensors": func() raw {
			r := header(3, 400, 1).key(keyAlignment, Uint32).u32(1)
			for i := range 400 {
				r = r.tensor(strconv.Itoa(i), quant.I8, uint64(i), 1)
			}
			return r.zeros(400)
		}(),
		"valid-many-empty-strings": header(3, 0, 1).key("k", Array).u32(uint32(String)).u64(1000).zeros(8000),
		"valid-many-empty-arrays":  header(3, 0, 1).key("k", Array).u32(uint32(Array)).u64(1000).zeros(12000),
	}
	for _, n := range []int{10, 23, 24, 40, 100, 200, 300, 400, 500} {
		all[fmt.Sprintf("cut-%d", n)] = valid(3)[:n]
	}
	for _, m := range malformedFiles() {
		if len(m.data) < 16<<10 { // long ones only slow the fuzzer down
			all[m.name] = m.data
		}
	}
	return all
}

// TestSeedCorpusIsCurrent compares the checked-in corpus with seeds; go test -update rewrites it.
func TestSeedCorpusIsCurrent(t *testing.T) {
	for name, data := range seeds() {
		path := filepath.Join("testdata", "fuzz", "FuzzRead", name)
		want := fmt.Sprintf("go test fuzz v1\n[]byte(%q)\n", []byte(data))
		if *update {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s is not what seeds() holds (%v): run go test ./gguf -run SeedCorpus -update", path, err)
		}
	}
}

// TestAllocationIsBoundedByTheFile measures every byte allocated, also what is garbage at once, in reading each seed and
// converting all of its metadata.
func TestAllocationIsBoundedByTheFile(t *testing.T) {
	const perByte, constant = 32, 4096
	for name, data := range seeds() {
		if got, limit := allocated(name, data), uint64(perByte*len(data)+constant); got > limit {
			t.Errorf("%s: %d bytes were allocated for %d in the file, at most %d are allowed", name, got, len(data), limit)
		}
	}
}

// allocated returns the bytes allocated in reading data: the least of a few runs, since the runtime allocates as well.
func allocated(name string, data raw) uint64 {
	least := uint64(math.MaxUint64)
	for range 5 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if f, err := Read(name, data); err == nil {
			for _, key := range f.Keys() {
				v, _ := f.Value(key)
				v.Any()
			}
		}
		runtime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
	}
	return least
}
