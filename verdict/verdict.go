// Package verdict remembers whether compute units computed a model rightly, so
// that who plans for a machine need not measure it again.
//
// A [Store] is a folder with one small JSON file for each [Key]: machine, model,
// unit and version of tandem. What was found for another version, model or
// machine is not found under this one's key. A file that is damaged is an error
// that names it, not a missing verdict.
//
// Files appear whole or not at all, and the last one written counts, so
// processes may share a folder without a lock. The package measures nothing.
package verdict

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// A Key is what a verdict is of.
type Key struct {
	Machine string `json:"machine"` // the processor and system
	Model   string `json:"model"`   // fingerprint of the file
	Unit    string `json:"unit"`    // its name
	Device  string `json:"device"`  // what the name stood for: kind, device, driver
	Version string `json:"version"` // of tandem
}

// A Verdict is what was found.
type Verdict struct {
	Key     Key       `json:"key"`
	Passed  bool      `json:"passed"`
	Against string    `json:"against"` // the unit it was compared with
	Summary string    `json:"summary"` // one line with the figures
	Time    time.Time `json:"time"`    // when; never the zero time
}

// A Store is a folder of verdicts. The zero value is not usable.
type Store struct{ dir string }

// In is the store in a folder, which need not be there yet.
func In(dir string) Store { return Store{dir} }

// UserCache is the store in the user's cache folder: tandem/verdicts there.
func UserCache() (Store, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return Store{}, fmt.Errorf("finding the folder for verdicts of units: %w", err)
	}
	return In(filepath.Join(dir, "tandem", "verdicts")), nil
}

// Path is the file of a key.
func (s Store) Path(k Key) string {
	h := sha256.New()
	for _, part := range []string{k.Machine, k.Model, k.Unit, k.Device, k.Version} {
		fmt.Fprintf(h, "%q\n", part)
	}
	return filepath.Join(s.dir, fmt.Sprintf("%x.json", h.Sum(nil)[:16]))
}

// Put remembers a verdict in place of an older one of its key. One that Get would
// call damaged, without a unit, a summary or a time, is refused.
func (s Store) Put(v Verdict) (err error) {
	if err := v.check(); err != nil {
		return fmt.Errorf("a verdict of unit %q: %w", v.Key.Unit, err)
	}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return err
	}
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(s.dir, ".verdict-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(append(data, '\n'))
	if err = errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), s.Path(v.Key))
}

// Get finds the verdict of a key; false if there is none.
func (s Store) Get(k Key) (Verdict, bool, error) {
	path := s.Path(k)
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return Verdict{}, false, nil
	}
	if err != nil {
		return Verdict{}, false, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err != nil {
		return Verdict{}, false, fmt.Errorf("%s: %w", path, err)
	}
	v, err := parse(data)
	if err == nil && v.Key != k {
		err = fmt.Errorf("key is of unit %q on %q, not of %q on %q", v.Key.Unit, v.Key.Machine, k.Unit, k.Machine)
	}
	if err != nil {
		return Verdict{}, false, fmt.Errorf("%s: a damaged verdict; remove it or verify the unit again: %w", path, err)
	}
	return v, true, nil
}

// maxSize is how large a verdict may be.
const maxSize = 1 << 20

func parse(data []byte) (Verdict, error) {
	var v Verdict
	if len(data) > maxSize {
		return v, fmt.Errorf("larger than %d bytes", maxSize)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		return Verdict{}, err
	}
	if _, err := d.Token(); err != io.EOF {
		return Verdict{}, errors.New("something follows the object")
	}
	return v, v.check()
}

// check returns the first thing that a verdict lacks.
func (v Verdict) check() error {
	switch {
	case v.Key.Unit == "":
		return errors.New("key.unit is missing")
	case v.Summary == "":
		return errors.New("summary is missing")
	case v.Time.IsZero():
		return errors.New("time is missing")
	}
	return nil
}
