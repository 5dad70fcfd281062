package verdict

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func sample() Verdict {
	return Verdict{
		Key:    Key{"Some CPU linux/amd64", "abc", "gpu", "vulkan/llvmpipe", "tandem v1"},
		Passed: true, Against: "cpu", Summary: "passed", Time: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC),
	}
}

func TestStore(t *testing.T) {
	s := In(filepath.Join(t.TempDir(), "not", "there", "yet"))
	v := sample()
	if _, ok, err := s.Get(v.Key); ok || err != nil {
		t.Errorf("an empty store has a verdict, or %v", err)
	}
	if err := s.Put(v); err != nil {
		t.Fatal(err)
	}
	v.Passed = false
	if err := s.Put(v); err != nil {
		t.Fatal(err)
	}
	got, ok, err := s.Get(v.Key)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	if d := cmp.Diff(v, got); d != "" {
		t.Error(d)
	}
	// Whatever part of the key is another, there is no verdict.
	for i := range 5 {
		k := v.Key
		*[]*string{&k.Machine, &k.Model, &k.Unit, &k.Device, &k.Version}[i] += "x"
		if _, ok, err := s.Get(k); ok || err != nil {
			t.Errorf("found for %+v (%v)", k, err)
		}
	}
}

// What Get would call damaged cannot be put, and leaves what was there.
func TestIncomplete(t *testing.T) {
	s := In(t.TempDir())
	whole := sample()
	if err := s.Put(whole); err != nil {
		t.Fatal(err)
	}
	for field, lacks := range map[string]func(*Verdict){
		"key.unit": func(v *Verdict) { v.Key.Unit = "" },
		"summary":  func(v *Verdict) { v.Summary = "" },
		"time":     func(v *Verdict) { v.Time = time.Time{} },
	} {
		v := whole
		lacks(&v)
		if err := s.Put(v); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("without %s: %v", field, err)
		}
	}
	if got, ok, err := s.Get(whole.Key); !ok || err != nil || !cmp.Equal(got, whole) {
		t.Errorf("%+v, %v, %v", got, ok, err)
	}
}

func TestDamaged(t *testing.T) {
	s := In(t.TempDir())
	v := sample()
	whole, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"", "{", "null", "[]", `{"passed":true}`, string(whole[:len(whole)-1]), string(whole) + "{}",
		strings.Replace(string(whole), `"passed"`, `"fine"`, 1),
		strings.Replace(string(whole), `"unit":"gpu"`, `"unit":"cpu"`, 1),
		string(whole) + strings.Repeat(" ", maxSize),
	} {
		if err := os.WriteFile(s.Path(v.Key), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, ok, err := s.Get(v.Key); ok || err == nil || !strings.Contains(err.Error(), s.Path(v.Key)) {
			t.Errorf("%.40q: %v, %v", text, ok, err)
		}
	}
	if err := s.Put(v); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := s.Get(v.Key); !ok || err != nil {
		t.Errorf("written again: %v, %v", ok, err)
	}
}

// Writers and readers at once see whole verdicts.
func TestConcurrent(t *testing.T) {
	s := In(t.TempDir())
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			v := sample()
			v.Passed = i%2 == 0
			for range 20 {
				if err := s.Put(v); err != nil {
					t.Error(err)
				}
				if _, ok, err := s.Get(v.Key); !ok || err != nil {
					t.Error(ok, err)
				}
			}
		})
	}
	wg.Wait()
}

func FuzzParse(f *testing.F) {
	whole, err := json.Marshal(sample())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add([]byte(`{"key":{"unit":"x"},"summary":"s","time":"2026-01-02T03:04:05Z"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := parse(data)
		if err != nil {
			return
		}
		again, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if w, err := parse(again); err != nil || !w.Time.Equal(v.Time) || w.Key != v.Key || w.Summary != v.Summary {
			t.Errorf("%+v is read again as %+v (%v)", v, w, err)
		}
	})
}
