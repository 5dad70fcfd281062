package gguf

import (
	"bytes"
	"errors"
	"testing"
)

// FuzzRead reads arbitrary bytes. Whatever they are, the result is an *Error within the file or a file whose every
// value and tensor can be used, and that a Writer reproduces.
func FuzzRead(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Read("fuzz.gguf", data)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.File != "fuzz.gguf" || e.Field == "" || e.Msg == "" || e.Offset < 0 || e.Offset > int64(len(data)) {
				t.Fatalf("%#v", err)
			}
			return
		}
		use(t, file)
		again := rewrite(t, file)
		if len(again.Keys()) != len(file.Keys()) || len(again.Tensors()) != len(file.Tensors()) {
			t.Fatalf("rewritten: %d keys and %d tensors of %d and %d", len(again.Keys()), len(again.Tensors()), len(file.Keys()), len(file.Tensors()))
		}
		for i, key := range file.Keys() {
			a, _ := file.Value(key)
			b, _ := again.Value(key)
			if again.Keys()[i] != key || a.typ != b.typ || a.elem != b.elem || a.count != b.count || !bytes.Equal(a.raw, b.raw) {
				t.Fatalf("rewritten: key %q is %v, was %v", key, b, a)
			}
		}
		for i, a := range file.Tensors() {
			b := again.Tensors()[i]
			if a.Name != b.Name || a.Type != b.Type || a.Elements() != b.Elements() || !bytes.Equal(a.Data, b.Data) {
				t.Fatalf("rewritten: tensor %+v was %+v", b, a)
			}
		}
	})
}

// use calls every accessor on every key and touches every byte of every tensor.
func use(t *testing.T, f *File) {
	for _, key := range f.Keys() {
		if !f.Has(key) {
			t.Fatalf("Has(%q) is false for a listed key", key)
		}
		v, ok := f.Value(key)
		if !ok || v.String() == "" || v.Any() == nil || v.Len() < 0 {
			t.Fatalf("key %q: %v %v", key, v, ok)
		}
		if _, err := f.String(key); (err == nil) != (v.Type() == String) {
			t.Fatalf("String(%q) of a %v: %v", key, v.Type(), err)
		}
		if s, err := f.Strings(key); err == nil && len(s) != v.Len() {
			t.Fatalf("Strings(%q) has %d of %d", key, len(s), v.Len())
		}
		u, uintErr := f.Uint(key)
		i, intErr := f.Int(key)
		if uintErr == nil && intErr == nil && u != uint64(i) {
			t.Fatalf("Uint(%q) is %d, Int %d", key, u, i)
		}
		us, uintsErr := f.Uints(key)
		is, intsErr := f.Ints(key)
		if uintsErr == nil && intsErr == nil && len(us) != len(is) {
			t.Fatalf("Uints(%q) has %d elements, Ints %d", key, len(us), len(is))
		}
		_, floatErr := f.Float(key)
		_, floatsErr := f.Floats(key)
		_, boolErr := f.Bool(key)
		_, boolsErr := f.Bools(key)
		if floatErr == nil && boolErr == nil || floatsErr == nil && boolsErr == nil {
			t.Fatalf("key %q is both float and bool", key)
		}
	}
	for _, tensor := range f.Tensors() {
		var sum byte
		for _, b := range tensor.Data {
			sum ^= b
		}
		if got, ok := f.Tensor(tensor.Name); !ok || got != tensor || len(tensor.Data) == 0 {
			t.Fatalf("tensor %q: %v %d", tensor.Name, ok, sum)
		}
	}
}

// rewrite returns the file that a Writer makes of f.
func rewrite(t *testing.T, f *File) *File {
	w := NewWriter()
	for _, key := range f.Keys() {
		v, _ := f.Value(key)
		if key == keyAlignment && (v.typ != Uint32 || f.alignment > 4096) {
			t.Skip("the Writer takes the alignment as uint32 only, and a large one makes a large file")
		}
		if err := w.Set(key, v.Any()); err != nil {
			t.Fatal(err)
		}
	}
	for _, tensor := range f.Tensors() {
		if err := w.AddBytes(tensor.Name, tensor.Type, tensor.Dims, tensor.Data); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	if n, err := w.WriteTo(&out); err != nil || n != int64(out.Len()) {
		t.Fatalf("wrote %d of %d bytes: %v", n, out.Len(), err)
	}
	again, err := Read("again.gguf", out.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return again
}
