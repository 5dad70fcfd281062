package machine

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// A file that was just read is in the page cache. Whether it leaves when asked
// to is up to the file system, but never does more of it come in.
func TestFileCache(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	data := bytes.Repeat([]byte("tandem "), 100_000)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	before, err := FileCached(path)
	if err != nil || before != int64(len(data)) {
		t.Fatalf("%d of %d bytes are cached (%v)", before, len(data), err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil { // pages that are not written yet stay
		t.Fatal(err)
	}
	f.Close()
	if err := DropFileCache(path); err != nil {
		t.Fatal(err)
	}
	if after, err := FileCached(path); err != nil || after > before {
		t.Errorf("%d bytes are cached after the drop (%v)", after, err)
	} else {
		t.Logf("%d of %d bytes are cached after the drop", after, len(data))
	}
	for _, f := range []func(string) error{DropFileCache, func(p string) error { _, err := FileCached(p); return err }} {
		if err := f(path + ".missing"); err == nil {
			t.Error("a missing file was no error")
		}
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if n, err := FileCached(path); n != 0 || err != nil {
		t.Errorf("an empty file: %d bytes, %v", n, err)
	}
}
