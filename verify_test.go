package tandem

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tandemrun/tandem/engine"
	"github.com/tandemrun/tandem/unit"
	"github.com/tandemrun/tandem/unit/conformance"
)

// faultyHooks open a unit named "faulty" whose logits are changed, on one core,
// and every other unit as it is.
func faultyHooks(m *Model, change func([]float32) error) unitHooks {
	named := func(name string) (unit.Unit, error) {
		if name != "faulty" {
			return openNamed(name)
		}
		u, err := openNamed("cpu:0")
		return &faulty{u, change}, err
	}
	// A part of the suite is enough here.
	suite := slices.DeleteFunc(conformance.Checks(), func(c conformance.Check) bool {
		return !slices.Contains([]string{"operations/F32", "errors/bad-task", "errors/cancelled"}, c.Name)
	})
	return unitHooks{suite, named, func(ctx context.Context, o Options) (*Engine, error) {
		if o.Place != "faulty" {
			return m.Open(ctx, o)
		}
		o.Place = ""
		l, err := m.layout(o)
		if err != nil {
			return nil, err
		}
		u, err := named("faulty")
		if err != nil {
			return nil, err
		}
		cfg := engine.Config{Ranges: l.ranges, Slots: 1, Context: l.o.Context, Block: l.o.Block}
		for range l.ranges {
			cfg.Units = append(cfg.Units, u)
		}
		e, err := engine.New(ctx, m.model, cfg)
		return &Engine{m: m, e: e}, err
	}}
}

func TestVerifyUnit(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	m, err := Embedded()
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	calls := 0
	for _, c := range []struct {
		name   string
		change func([]float32) error
		passed bool
		want   []string // parts of the summary
	}{
		{"right", func([]float32) error { return nil }, true, []string{"faulty against cpu:0: passed", "conformance 3 of 3", "top-1 100.00 %", "mean KL 0"}},
		// A constant on all logits changes no probability: the model is right, but
		// the suite sees it.
		{"shifted", func(x []float32) error {
			for i := range x {
				x[i] += 2
			}
			return nil
		}, false, []string{"FAILED", "1 of 3 conformance checks failed, first operations/F32", "top-1 100.00 %", "difference 2"}},
		// The suite has smaller rows, which this fault leaves alone.
		{"one logit", func(x []float32) error {
			if calls++; calls%3 == 0 && len(x) >= 2048 {
				x[40] += 50
			}
			return nil
		}, false, []string{"FAILED", "top-1 agreement 6", "is below 99.00 %", "mean KL", "above 0.01", "conformance 3 of 3"}},
		{"lost", func(x []float32) error { return &unit.LostError{Unit: "faulty", Cause: errors.New("unplugged")} }, false,
			[]string{"FAILED", "the unit was lost", "unplugged", "not compared on the prompts"}},
		{"lost later", func(x []float32) error {
			if len(x) >= 2048 {
				return &unit.LostError{Unit: "faulty", Cause: errors.New("unplugged")}
			}
			return nil
		}, false, []string{"FAILED", "the unit was lost", "conformance 3 of 3", "unplugged"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := m.VerifyUnit(t.Context(), UnitTest{
				Unit: "faulty", Against: "cpu:0", Options: Options{Context: 512}, Positions: 12, Top: DefaultTop, MeanKL: DefaultMeanKL,
				hooks: faultyHooks(m, c.change),
			})
			if err != nil {
				t.Fatal(err)
			}
			if r.Passed != c.passed || r.Passed != (len(r.Reasons) == 0) {
				t.Errorf("passed %v: %+v", r.Passed, r)
			}
			for _, part := range c.want {
				if !strings.Contains(r.Summary, part) {
					t.Errorf("%q does not say %q", r.Summary, part)
				}
			}
			// It is remembered for this unit, and another unit knows nothing of it.
			v, ok, err := m.UnitVerdict("faulty")
			if err != nil || !ok || v.Passed != c.passed || v.Summary != r.Summary || r.Remembered == "" {
				t.Errorf("remembered %+v, %v, %v", v, ok, err)
			}
			if _, ok, err := m.UnitVerdict("cpu:0"); ok || err != nil {
				t.Errorf("the reference has a verdict (%v)", err)
			}
		})
	}
}

func TestVerifyUnitCannot(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	m, err := Embedded()
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	wrong := faultyHooks(m, func(x []float32) error { x[0] = 99; return nil })
	for _, c := range []struct {
		t    UnitTest
		want string
	}{
		{UnitTest{Unit: "npu", Against: "cpu"}, `"npu"`},
		{UnitTest{Unit: "cpu", Against: "npu"}, `"npu"`},
		{UnitTest{Unit: "cpu", Against: "cpu"}, "itself"},
		{UnitTest{Unit: "cpu"}, "needs two"},
		{UnitTest{Unit: "cpu", Against: "cpu:0", Top: 1.5}, "1.5"},
		{UnitTest{Unit: "cpu:0", Against: "faulty", hooks: wrong}, "the reference, unit faulty, fails"},
		{UnitTest{Unit: "faulty", Against: "cpu:0", Options: Options{Context: 99999}, hooks: wrong}, "99999"},
	} {
		if r, err := m.VerifyUnit(t.Context(), c.t); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s against %s: %+v, %v", c.t.Unit, c.t.Against, r, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	checked := 0
	_, err = m.VerifyUnit(ctx, UnitTest{Unit: "cpu", Against: "cpu:0", Top: 1, Checked: func(string, string, error) {
		if checked++; checked == 3 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) || checked != 3 {
		t.Errorf("cancelled: %v after %d checks", err, checked)
	}
	if v, ok, err := m.UnitVerdict("cpu"); ok || err != nil {
		t.Errorf("a verification that could not be done is remembered: %+v, %v", v, err)
	}
}
