package gguf

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

const tinyFile = "../model/tiny/tiny-q8_0.gguf"

func open(t *testing.T, path string) *File {
	t.Helper()
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func TestOpensEveryFileOfTheTestData(t *testing.T) {
	paths, err := filepath.Glob("../testdata/*/*.gguf")
	if err != nil || len(paths) < 5 {
		t.Fatalf("found %d files in the test data: %v", len(paths), err)
	}
	for _, path := range append(paths, tinyFile) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			f := open(t, path)
			arch, err := f.String("general.architecture")
			if err != nil || arch == "" {
				t.Fatalf("architecture %q: %v", arch, err)
			}
			for _, tensor := range f.Tensors() {
				if got, ok := f.Tensor(tensor.Name); !ok || got != tensor {
					t.Errorf("Tensor(%q) is not the listed one", tensor.Name)
				}
				want, err := tensor.Type.RowBytes(int(tensor.Elements()))
				if err != nil || want != int64(len(tensor.Data)) {
					t.Errorf("%s has %d bytes, want %d (%v)", tensor.Name, len(tensor.Data), want, err)
				}
				row := make([]float32, tensor.Dims[0])
				n, _ := tensor.Type.RowBytes(len(row))
				if err := tensor.Type.Dequantize(row, tensor.Data[:n]); err != nil {
					t.Errorf("%s: %v", tensor.Name, err)
				}
			}
		})
	}
}

func TestAccessorsNameFileAndKey(t *testing.T) {
	f := open(t, tinyFile)
	_, err := f.Uint("no.such.key")
	if !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), tinyFile) || !strings.Contains(err.Error(), "no.such.key") {
		t.Errorf("missing key: %v", err)
	}
	_, err = f.Uint("general.architecture")
	if !errors.Is(err, ErrType) || !strings.Contains(err.Error(), tinyFile) || !strings.Contains(err.Error(), "general.architecture") {
		t.Errorf("wrong type: %v", err)
	}
}
