package gguf

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tandemrun/tandem/quant"
)

func TestWriterMakesWhatIsWrittenByHand(t *testing.T) {
	w := NewWriter()
	for _, kv := range []struct {
		key   string
		value any
	}{
		{"a.uint8", uint8(200)}, {"a.int8", int8(-1)}, {"a.uint16", uint16(513)}, {"a.int16", int16(-2)},
		{"a.uint32", uint32(7)}, {"a.int32", int32(-3)}, {"a.float32", float32(1.5)}, {"a.bool", true},
		{"a.string", "hé"}, {"a.uint64", uint64(1<<64 - 1)}, {"a.int64", int64(-9)}, {"a.float64", 1.5},
		{"a.strings", []string{"x", "", "yz"}}, {"a.bools", []bool{false, true}},
		{"a.nested", []any{[]int32{5}, []string{"in"}}},
	} {
		set(t, w, kv.key, kv.value)
	}
	if err := w.AddBytes("t.f32", quant.F32, []uint64{3, 2}, make([]byte, 24)); err != nil {
		t.Fatal(err)
	}
	if err := w.AddBytes("t.q8_0", quant.Q8_0, []uint64{32}, make([]byte, 34)); err != nil {
		t.Fatal(err)
	}
	for range 2 { // a Writer can write again, and writes the same
		var out bytes.Buffer
		if _, err := w.WriteTo(&out); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]byte(valid(3).pad(32)), out.Bytes()); diff != "" {
			t.Error(diff)
		}
	}
}

func TestValuesOfEveryType(t *testing.T) {
	f, err := Read("valid.gguf", valid(2))
	if err != nil {
		t.Fatal(err)
	}
	if f.Version() != 2 || f.Alignment() != 32 || f.Size() != int64(len(valid(2))) || f.Name() != "valid.gguf" {
		t.Errorf("version %d, alignment %d, %d bytes, name %s", f.Version(), f.Alignment(), f.Size(), f.Name())
	}
	got := map[string]string{}
	for _, key := range f.Keys() {
		v, _ := f.Value(key)
		got[key] = v.String()
	}
	want := map[string]string{
		"a.uint8": "200", "a.int8": "-1", "a.uint16": "513", "a.int16": "-2", "a.uint32": "7", "a.int32": "-3",
		"a.float32": "1.5", "a.bool": "true", "a.string": `"hé"`, "a.uint64": "18446744073709551615", "a.int64": "-9",
		"a.float64": "1.5", "a.strings": `[3]string{"x", "", "yz"}`, "a.bools": "[2]bool{false, true}",
		"a.nested": "[2]array{…}",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if v, err := f.Uint("a.uint64"); v != 1<<64-1 || err != nil {
		t.Errorf("Uint(a.uint64) = %d, %v", v, err)
	}
	if v, err := f.Int("a.int32"); v != -3 || err != nil {
		t.Errorf("Int(a.int32) = %d, %v", v, err)
	}
	if _, err := f.Uint("a.int8"); !errors.Is(err, ErrType) {
		t.Errorf("Uint(a.int8) of -1: %v", err)
	}
	if _, err := f.Int("a.uint64"); !errors.Is(err, ErrType) {
		t.Errorf("Int(a.uint64) of 2^64-1: %v", err)
	}
	if v, err := f.Float("a.float32"); v != 1.5 || err != nil {
		t.Errorf("Float(a.float32) = %v, %v", v, err)
	}
	if v, err := f.Bool("a.bool"); !v || err != nil {
		t.Errorf("Bool(a.bool) = %v, %v", v, err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if _, err := f.String("a.string"); !errors.Is(err, ErrClosed) {
		t.Errorf("String after Close: %v", err)
	}
}

func TestArraysConvertByRange(t *testing.T) {
	w := NewWriter()
	set(t, w, "ints", []int16{1, -2})
	set(t, w, "uints", []uint8{1, 2})
	set(t, w, "large", []uint64{1 << 63})
	set(t, w, "floats", []float32{0.5, -1})
	set(t, w, "doubles", []float64{0.25})
	set(t, w, "none", []int32{})
	f := readBack(t, w)
	ints, err := f.Ints("ints")
	if diff := cmp.Diff([]int64{1, -2}, ints); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if _, err := f.Uints("ints"); !errors.Is(err, ErrType) {
		t.Errorf("Uints of a negative element: %v", err)
	}
	uints, err := f.Uints("uints")
	if diff := cmp.Diff([]uint64{1, 2}, uints); diff != "" || err != nil {
		t.Error(diff, err)
	}
	uints, err = f.Uints("large")
	if diff := cmp.Diff([]uint64{1 << 63}, uints); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if _, err := f.Ints("large"); !errors.Is(err, ErrType) {
		t.Errorf("Ints of 2^63: %v", err)
	}
	floats, err := f.Floats("floats")
	if diff := cmp.Diff([]float32{0.5, -1}, floats); diff != "" || err != nil {
		t.Error(diff, err)
	}
	floats, err = f.Floats("doubles")
	if diff := cmp.Diff([]float32{0.25}, floats); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if none, err := f.Ints("none"); len(none) != 0 || err != nil {
		t.Error(none, err)
	}
	if _, err := f.Ints("floats"); !errors.Is(err, ErrType) {
		t.Errorf("Ints of floats: %v", err)
	}
}

func readBack(t *testing.T, w *Writer) *File {
	t.Helper()
	var out bytes.Buffer
	if _, err := w.WriteTo(&out); err != nil {
		t.Fatal(err)
	}
	f, err := Read("back.gguf", out.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestAlignmentMovesTensors(t *testing.T) {
	w := NewWriter()
	set(t, w, keyAlignment, uint32(128))
	for _, name := range []string{"a", "b"} {
		if err := w.AddFloats(name, quant.F32, []uint64{3}, []float32{1, 2, 3}); err != nil {
			t.Fatal(err)
		}
	}
	f := readBack(t, w)
	if f.Alignment() != 128 || f.Size()%128 != 0 {
		t.Errorf("alignment %d, %d bytes", f.Alignment(), f.Size())
	}
	for _, tensor := range f.Tensors() {
		if tensor.Offset%128 != 0 {
			t.Errorf("tensor %s is at %d", tensor.Name, tensor.Offset)
		}
	}
}

func TestWriterRefusesWhatTheReaderWould(t *testing.T) {
	w := NewWriter()
	set(t, w, "twice", uint8(1))
	for want, err := range map[string]error{
		"set already":          w.Set("twice", uint8(1)),
		"Go type int ":         w.Set("int", 1),
		"Go type []int ":       w.Set("ints", []int{1}),
		"65536 bytes":          w.Set(strings.Repeat("k", 65536), uint8(1)),
		"array of arrays":      w.Set("mixed", []any{uint8(1)}),
		"nested more than 4":   w.Set("deep", []any{[]any{[]any{[]any{[]int8{1}}}}}),
		"power of two":         w.Set(keyAlignment, uint32(48)),
		"uint32 that":          w.Set(keyAlignment, uint64(32)),
		"0 dimensions":         w.AddBytes("t", quant.F32, nil, nil),
		"5 dimensions":         w.AddBytes("t", quant.F32, []uint64{1, 1, 1, 1, 1}, make([]byte, 4)),
		"dimension 0 is 0":     w.AddBytes("t", quant.F32, []uint64{0}, nil),
		"block of 32":          w.AddBytes("t", quant.Q8_0, []uint64{16, 2}, make([]byte, 34)),
		"takes 8 bytes, got 7": w.AddBytes("t", quant.F32, []uint64{2}, make([]byte, 7)),
		"no known layout":      w.AddBytes("t", 99, []uint64{1}, nil),
		"conversion to IQ4_XS": w.AddFloats("t", quant.IQ4_XS, []uint64{256}, make([]float32, 256)),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestWriterChecksWhatATensorWrites(t *testing.T) {
	broken := errors.New("disk on fire")
	for want, write := range map[string]func(io.Writer) error{
		"7 bytes were written for it, it has 8": func(w io.Writer) error { _, err := w.Write(make([]byte, 7)); return err },
		"more than its 8 bytes":                 func(w io.Writer) error { _, err := w.Write(make([]byte, 9)); return err },
		"disk on fire":                          func(io.Writer) error { return broken },
	} {
		w := NewWriter()
		if err := w.AddTensor("name.of.it", quant.F32, []uint64{2}, write); err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		err := w.WriteFile(filepath.Join(dir, "m.gguf"))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "name.of.it") {
			t.Errorf("got %v, want %q", err, want)
		}
		if left, _ := os.ReadDir(dir); len(left) != 0 {
			t.Errorf("a failed WriteFile leaves %v", left)
		}
	}
}

// TestTensorsAreStreamed writes a tensor of which only a small piece is in memory at a time.
func TestTensorsAreStreamed(t *testing.T) {
	const rows = 1 << 14
	w := NewWriter()
	err := w.AddTensor("t", quant.F32, []uint64{256, rows}, func(out io.Writer) error {
		row := make([]byte, 1024)
		for i := range rows {
			row[0] = byte(i)
			if _, err := out.Write(row); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "m.gguf")
	if err := w.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	tensor := open(t, path).Tensors()[0]
	for i := range rows {
		if tensor.Data[1024*i] != byte(i) {
			t.Fatalf("row %d begins with %d", i, tensor.Data[1024*i])
		}
	}
}

func BenchmarkOpenTiny(b *testing.B) {
	for b.Loop() {
		f, err := Open(tinyFile)
		if err != nil {
			b.Fatal(err)
		}
		f.Close()
	}
}

// BenchmarkTokens opens a file with a vocabulary of Gemma's size and gets its strings.
func BenchmarkTokens(b *testing.B) {
	tokens := make([]string, 262144)
	for i := range tokens {
		tokens[i] = strings.Repeat("x", i%13+1)
	}
	w := NewWriter()
	if err := w.Set("tokens", tokens); err != nil {
		b.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := w.WriteTo(&out); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		f, err := Read("tokens.gguf", out.Bytes())
		if err != nil {
			b.Fatal(err)
		}
		if got, err := f.Strings("tokens"); err != nil || len(got) != len(tokens) {
			b.Fatal(err)
		}
	}
}
