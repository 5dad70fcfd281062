package tandem

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tandemrun/tandem/machine"
	"github.com/tandemrun/tandem/unit"
	"github.com/tandemrun/tandem/unit/conformance"
	"github.com/tandemrun/tandem/unit/cpu/kernel"
	"github.com/tandemrun/tandem/verdict"
)

// What a unit must reach at least, over the fixed set of prompts, unless a
// UnitTest says otherwise.
const (
	DefaultTop    = 0.99 // share of positions with the reference's most likely token
	DefaultMeanKL = 0.01 // at most, in nats
)

// A UnitTest says which unit to verify, against which.
type UnitTest struct {
	Unit, Against string
	// Options lay the model out on each of the two; Place is not used.
	Options   Options
	Positions int // as in AgreementTest
	// Top and MeanKL are the thresholds: the least share of positions with the
	// same most likely token, and the largest mean KL.
	Top, MeanKL float64
	// Forget leaves the verdict out of what UnitVerdict finds.
	Forget bool
	// Checked, if not nil, is called after each check of the conformance suite,
	// and Progress after each prompt.
	Checked  func(unit, check string, err error)
	Progress func(done, total int)

	hooks unitHooks // for tests
}

// unitHooks replace the suite and how units are opened, so that a test can
// verify one that is wrong.
type unitHooks struct {
	suite  []conformance.Check
	unit   func(name string) (unit.Unit, error)
	engine func(ctx context.Context, o Options) (*Engine, error)
}

// A UnitReport is what a verification found.
type UnitReport struct {
	Unit        string            `json:"unit"`
	Kind        string            `json:"kind"`
	Against     string            `json:"against"`
	AgainstKind string            `json:"against_kind"`
	Passed      bool              `json:"passed"`
	Reasons     []string          `json:"reasons"` // why it failed
	Conformance ConformanceReport `json:"conformance"`
	Agreement   *Agreement        `json:"agreement"` // null: the unit was lost before
	Top         float64           `json:"threshold_top1"`
	MeanKL      float64           `json:"threshold_mean_kl"`
	Summary     string            `json:"summary"`
	// Remembered is the file of the verdict, "" if it was not kept.
	Remembered string `json:"remembered"`
	Note       string `json:"note,omitempty"`
}

// A ConformanceReport is what a unit made of the suite of package
// unit/conformance.
type ConformanceReport struct {
	Checks   int            `json:"checks"`
	Failures []CheckFailure `json:"failures"`
}

// A CheckFailure is a check that a unit failed.
type CheckFailure struct {
	Check string `json:"check"`
	Error string `json:"error"`
}

// VerifyUnit runs the conformance suite on two units and then the model on
// both, on the fixed set of prompts. That the unit fails is no error; that there
// is no such unit, or that the reference itself fails the suite, is.
//
// The verdict is remembered in the user's cache folder for this machine, model,
// unit and version, if the reference is a CPU unit; see Model.UnitVerdict.
func (m *Model) VerifyUnit(ctx context.Context, t UnitTest) (UnitReport, error) {
	r := UnitReport{Unit: t.Unit, Against: t.Against, Top: t.Top, MeanKL: t.MeanKL, Reasons: []string{}}
	switch {
	case t.Unit == "" || t.Against == "":
		return r, errors.New("verifying a unit needs two: the unit and the one it is compared with")
	case t.Unit == t.Against:
		return r, fmt.Errorf("unit %s cannot be verified against itself", t.Unit)
	case !(t.Top >= 0 && t.Top <= 1) || !(t.MeanKL >= 0):
		return r, fmt.Errorf("thresholds of %g for top-1 agreement and %g for the mean KL: the first must be from 0 to 1, the second at least 0", t.Top, t.MeanKL)
	}
	if t.hooks.unit == nil {
		t.hooks = unitHooks{conformance.Checks(), openNamed, m.Open}
	}
	// Both exist and the layout makes sense before anything takes time.
	for _, x := range []struct {
		name string
		kind *string
	}{{t.Against, &r.AgainstKind}, {t.Unit, &r.Kind}} {
		o := t.Options
		o.Place = x.name
		if _, err := m.layout(o); err != nil {
			return r, err
		}
		u, err := t.hooks.unit(x.name)
		if err != nil {
			return r, err
		}
		*x.kind = u.Kind()
		if err := u.Close(); err != nil {
			return r, fmt.Errorf("closing unit %s: %w", x.name, err)
		}
	}
	if r.Kind != r.AgainstKind {
		// Units of one kind have the same kernels; the suite runs once then.
		reference, _, err := conform(ctx, t, t.Against)
		if err != nil {
			return r, err
		}
		if len(reference.Failures) > 0 {
			f := reference.Failures[0]
			return r, fmt.Errorf("the reference, unit %s, fails %d of %d checks of the conformance suite itself; %s: %s",
				t.Against, len(reference.Failures), reference.Checks, f.Check, f.Error)
		}
	}
	var lost, err error
	if r.Conformance, lost, err = conform(ctx, t, t.Unit); err != nil {
		return r, err
	}
	if lost == nil {
		a, err := m.unitAgreement(ctx, t)
		var gone *unit.LostError
		switch {
		case errors.As(err, &gone):
			lost = err
		case err != nil:
			return r, err
		default:
			r.Agreement = &a
		}
	}
	r.judge(lost)
	m.remember(t, &r)
	return r, nil
}

// openNamed opens a unit by its name.
func openNamed(name string) (unit.Unit, error) {
	units, workers, err := openUnits([]string{name}, 0, machine.QoS(""))
	if err != nil {
		return nil, err
	}
	leaveRoom(workers)
	return units[0], nil
}

// conform runs the suite on a unit. A unit that is lost ends it.
func conform(ctx context.Context, t UnitTest, name string) (r ConformanceReport, lost, err error) {
	r.Failures = []CheckFailure{}
	u, err := t.hooks.unit(name)
	if err != nil {
		return r, nil, err
	}
	defer func() {
		if e := u.Close(); e != nil && lost == nil {
			err = errors.Join(err, fmt.Errorf("closing unit %s: %w", name, e))
		}
	}()
	for _, c := range t.hooks.suite {
		failure := c.Run(ctx, u)
		if ctx.Err() != nil {
			return r, nil, context.Cause(ctx)
		}
		r.Checks++
		if t.Checked != nil {
			t.Checked(name, c.Name, failure)
		}
		if failure == nil {
			continue
		}
		r.Failures = append(r.Failures, CheckFailure{c.Name, failure.Error()})
		var gone *unit.LostError
		if errors.As(failure, &gone) {
			return r, failure, nil
		}
	}
	return r, nil, nil
}

func (m *Model) unitAgreement(ctx context.Context, t UnitTest) (a Agreement, err error) {
	var open [2]*Engine
	for i, name := range []string{t.Against, t.Unit} {
		o := t.Options
		o.Place, o.Streams = name, 1
		if open[i], err = t.hooks.engine(ctx, o); err != nil {
			return a, err
		}
		defer func() { err = errors.Join(err, open[i].Close()) }()
	}
	return m.agreement(ctx, open[0], open[1], t.Positions, t.Progress)
}

// judge decides by the thresholds.
func (r *UnitReport) judge(lost error) {
	fail := func(format string, v ...any) { r.Reasons = append(r.Reasons, fmt.Sprintf(format, v...)) }
	if n := len(r.Conformance.Failures); n > 0 {
		fail("%d of %d conformance checks failed, first %s", n, r.Conformance.Checks, r.Conformance.Failures[0].Check)
	}
	if lost != nil {
		fail("the unit was lost: %v", lost)
	}
	figures := "not compared on the prompts"
	if r.Agreement != nil {
		f := r.Agreement.All
		if f.Top < r.Top {
			fail("top-1 agreement %s is below %s", percent(f.Top), percent(r.Top))
		}
		switch {
		case f.NotFinite > 0:
			fail("%d of %d positions have a logit that is no finite number", f.NotFinite, f.Positions)
		case *f.MeanKL > r.MeanKL:
			fail("mean KL %.3g is above %.3g", *f.MeanKL, r.MeanKL)
		}
		figures = f.line()
	}
	r.Passed = len(r.Reasons) == 0
	word := "passed"
	if !r.Passed {
		word = "FAILED (" + strings.Join(r.Reasons, "; ") + ")"
	}
	r.Summary = fmt.Sprintf("verify-unit %s against %s: %s: conformance %d of %d, %s", r.Unit, r.Against, word,
		r.Conformance.Checks-len(r.Conformance.Failures), r.Conformance.Checks, figures)
}

// line is the figures in words.
func (f AgreementFigures) line() string {
	s := fmt.Sprintf("top-1 %s of %d positions, ", percent(f.Top), f.Positions)
	if f.MeanKL == nil {
		return s + fmt.Sprintf("%d of them not finite", f.NotFinite)
	}
	return s + fmt.Sprintf("mean KL %.2g, max KL %.2g, largest logit difference %.2g", *f.MeanKL, *f.MaxKL, *f.Difference)
}

func percent(share float64) string { return fmt.Sprintf("%.2f %%", 100*share) }

// A UnitVerdict is what an earlier VerifyUnit found.
type UnitVerdict = verdict.Verdict

// UnitVerdict is the last verdict on a unit with this model, machine and
// version; false if there is none. A plan does not use a unit that failed.
func (m *Model) UnitVerdict(unit string) (UnitVerdict, bool, error) {
	s, k, err := m.verdicts(unit)
	if err != nil {
		return UnitVerdict{}, false, err
	}
	return s.Get(k)
}

// remember keeps a verdict, unless it says more about the reference than about
// the unit. That it cannot be kept does not change it.
func (m *Model) remember(t UnitTest, r *UnitReport) {
	if t.Forget || !strings.HasPrefix(r.AgainstKind, "cpu/") {
		return
	}
	s, k, err := m.verdicts(t.Unit)
	if err == nil {
		err = s.Put(verdict.Verdict{Key: k, Passed: r.Passed, Against: t.Against, Summary: r.Summary, Time: time.Now().UTC()})
	}
	if err != nil {
		r.Note = fmt.Sprintf("the verdict cannot be remembered, so plans will not know it: %v", err)
		return
	}
	r.Remembered = s.Path(k)
}

// verdicts is the store and a unit's key in it.
func (m *Model) verdicts(name string) (verdict.Store, verdict.Key, error) {
	s, err := verdict.UserCache()
	if err != nil {
		return s, verdict.Key{}, err
	}
	host, err := Units()
	if err != nil {
		return s, verdict.Key{}, err
	}
	k := verdict.Key{
		Machine: fmt.Sprintf("%s %s/%s %s", host.Model, host.OS, host.Arch, kernel.Best()),
		Model:   fmt.Sprintf("%x", m.fingerprint()), Unit: name, Version: Version(),
	}
	if i := slices.IndexFunc(host.Units, func(u UnitInfo) bool { return u.Name == name }); i >= 0 {
		k.Device = strings.TrimSpace(host.Units[i].Kind + " " + host.Units[i].Detail)
	}
	if strings.Contains(k.Version, "(devel)") {
		// Builds of a source tree have no version of their own.
		hash, err := executable()
		if err != nil {
			return s, k, fmt.Errorf("telling this build from others: %w", err)
		}
		k.Version += " " + hash
	}
	return s, k, nil
}

// executable is a hash of the running program.
func executable() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", err
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}
