package gguf

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tandemrun/tandem/quant"
)

// writePart writes part no (from 0) of a split model. keys replaces split keys, or leaves one out if nil.
func writePart(t *testing.T, dir string, no, count, tensors int, keys map[string]any, names ...string) string {
	t.Helper()
	w := NewWriter()
	if no == 0 {
		set(t, w, "general.architecture", "test")
	}
	all := map[string]any{keySplitNo: uint16(no), keySplitCount: uint16(count), keySplitTensors: int32(tensors)}
	for k, v := range keys {
		all[k] = v
	}
	for _, k := range []string{keySplitNo, keySplitCount, keySplitTensors} {
		if all[k] != nil {
			set(t, w, k, all[k])
		}
	}
	for i, name := range names {
		if err := w.AddFloats(name, quant.F32, []uint64{2}, []float32{float32(no), float32(i)}); err != nil {
			t.Fatal(err)
		}
	}
	path := partName(filepath.Join(dir, "m"), no+1, count)
	if err := w.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	return path
}

func set(t *testing.T, w *Writer, key string, value any) {
	t.Helper()
	if err := w.Set(key, value); err != nil {
		t.Fatal(err)
	}
}

func TestOpenFindsAllPartsFromAnyOfThem(t *testing.T) {
	dir := t.TempDir()
	var paths []string
	paths = append(paths, writePart(t, dir, 0, 3, 4, nil, "a", "b"))
	paths = append(paths, writePart(t, dir, 1, 3, 4, nil, "c"))
	paths = append(paths, writePart(t, dir, 2, 3, 4, nil, "d"))
	var size int64
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	for _, path := range paths {
		f := open(t, path)
		if f.Name() != paths[0] || f.Size() != size || len(f.Tensors()) != 4 {
			t.Errorf("%s: name %s, %d bytes of %d, %d tensors", path, f.Name(), f.Size(), size, len(f.Tensors()))
		}
		if arch, err := f.String("general.architecture"); arch != "test" || err != nil {
			t.Errorf("%s: architecture %q: %v", path, arch, err)
		}
		want := []struct {
			name  string
			part  int
			index float32
		}{{"a", 0, 0}, {"b", 0, 1}, {"c", 1, 0}, {"d", 2, 0}}
		for i, tensor := range f.Tensors() {
			var x [2]float32
			if err := tensor.Type.Dequantize(x[:], tensor.Data); err != nil {
				t.Fatal(err)
			}
			if w := want[i]; tensor.Name != w.name || tensor.Part != w.part || x != [2]float32{float32(w.part), w.index} {
				t.Errorf("%s: tensor %d is %s of part %d with %v, want %v", path, i, tensor.Name, tensor.Part, x, w)
			}
		}
	}
}

func TestPartsThatDoNotFitTogetherAreErrors(t *testing.T) {
	keys := func(k string, v any) map[string]any { return map[string]any{k: v} }
	cases := []struct {
		name      string
		write     func(t *testing.T, dir string) string
		file, msg string
	}{
		{"missing part", func(t *testing.T, dir string) string {
			writePart(t, dir, 2, 3, 3, nil, "c")
			return writePart(t, dir, 0, 3, 3, nil, "a")
		}, "m-00002-of-00003.gguf", "this part of the split file is missing"},
		{"missing first part", func(t *testing.T, dir string) string {
			return writePart(t, dir, 1, 2, 2, nil, "b")
		}, "m-00001-of-00002.gguf", "beside m-00002-of-00002.gguf"},
		{"other count in a part", func(t *testing.T, dir string) string {
			writePart(t, dir, 1, 2, 2, keys(keySplitCount, uint16(3)), "b")
			return writePart(t, dir, 0, 2, 2, nil, "a")
		}, "m-00002-of-00002.gguf", "split.count: is 3, but 2 in the first part"},
		{"count differs from the name", func(t *testing.T, dir string) string {
			return writePart(t, dir, 0, 2, 2, keys(keySplitCount, uint16(5)), "a")
		}, "m-00001-of-00002.gguf", "split.count: is 5"},
		{"count missing", func(t *testing.T, dir string) string {
			return writePart(t, dir, 0, 2, 2, keys(keySplitCount, nil), "a")
		}, "m-00001-of-00002.gguf", "says 2 parts"},
		{"wrong number", func(t *testing.T, dir string) string {
			writePart(t, dir, 1, 2, 2, keys(keySplitNo, uint16(0)), "b")
			return writePart(t, dir, 0, 2, 2, nil, "a")
		}, "m-00002-of-00002.gguf", "split.no: is 0"},
		{"number of another type", func(t *testing.T, dir string) string {
			return writePart(t, dir, 0, 2, 2, keys(keySplitNo, "0"), "a")
		}, "m-00001-of-00002.gguf", "split.no: is \"0\""},
		{"wrong total", func(t *testing.T, dir string) string {
			writePart(t, dir, 1, 2, 3, nil, "b")
			return writePart(t, dir, 0, 2, 3, nil, "a")
		}, "m-00001-of-00002.gguf", "split.tensors.count: is 3, but the 2 parts hold 2"},
		{"tensor in two parts", func(t *testing.T, dir string) string {
			writePart(t, dir, 1, 2, 2, nil, "a")
			return writePart(t, dir, 0, 2, 2, nil, "a")
		}, "m-00002-of-00002.gguf", `tensor "a": is in part 1 as well`},
		{"renamed part", func(t *testing.T, dir string) string {
			path := filepath.Join(dir, "model.gguf")
			if err := os.Rename(writePart(t, dir, 0, 2, 2, nil, "a"), path); err != nil {
				t.Fatal(err)
			}
			return path
		}, "model.gguf", "rename the parts"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			path := c.write(t, t.TempDir())
			_, err := Open(path)
			e, ok := err.(*Error)
			if !ok {
				t.Fatalf("%T: %v", err, err)
			}
			if filepath.Base(e.File) != c.file || !strings.Contains(err.Error(), c.msg) {
				t.Errorf("got %v\nwant file %s and %q", err, c.file, c.msg)
			}
		})
	}
}

func TestFilesThatCannotBeMappedAreErrors(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty.gguf")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, msg := range map[string]string{
		empty:                           "too few",
		dir:                             "no regular file",
		filepath.Join(dir, "none.gguf"): "cannot open",
	} {
		_, err := Open(path)
		e, ok := err.(*Error)
		if !ok || e.File != path || !strings.Contains(e.Msg, msg) {
			t.Errorf("Open(%s): %v, want %q", path, err, msg)
		}
	}
	if _, err := Open(filepath.Join(dir, "none.gguf")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v is no fs.ErrNotExist", err)
	}
}

func TestPathsAreTakenApart(t *testing.T) {
	for path, want := range map[string]string{
		"a/m-00002-of-00003.gguf": "a/m 2 3",
		"-00001-of-00001.gguf":    " 1 1",
		"m-00004-of-00003.gguf":   "",
		"m-00000-of-00003.gguf":   "",
		"m-+0001-of-00003.gguf":   "",
		"m-0001-of-00003.gguf":    "",
		"m.gguf":                  "",
	} {
		prefix, no, count, ok := splitName(path)
		if ok != (want != "") {
			t.Errorf("splitName(%q) = %q %d %d %v, want %q", path, prefix, no, count, ok, want)
		} else if ok && partName(prefix, no, count) != path {
			t.Errorf("%q becomes %q", path, partName(prefix, no, count))
		}
	}
}
