package tandem

import (
	"fmt"
	"strings"
)

// planUnits are the units that plans for the model may use: those that are
// asked for, or else PlanUnits and each other unit of this machine that passed
// VerifyUnit. A unit that failed it is an error if it is asked for and is left
// out otherwise; the notes say which, and why.
func (m *Model) planUnits(asked []string) (units, notes []string, err error) {
	candidates := asked
	if asked == nil {
		if candidates, err = PlanUnits(); err != nil {
			return nil, nil, err
		}
		host, err := Units()
		if err != nil {
			return nil, nil, err
		}
		for _, u := range host.Units {
			if u.Usable && !strings.HasPrefix(u.Name, defaultUnit) {
				candidates = append(candidates, u.Name)
			}
		}
	}
	for _, name := range candidates {
		v, known, err := m.UnitVerdict(name)
		test := fmt.Sprintf("`tandem verify-unit --unit %s --against %s`", name, defaultUnit)
		switch {
		case err != nil:
			return nil, nil, fmt.Errorf("whether unit %s computes the model rightly: %w", name, err)
		case known && !v.Passed && asked != nil:
			return nil, nil, fmt.Errorf("unit %s may not be used: %s; %s tests it again", name, v.Summary, test)
		case known && !v.Passed:
			notes = append(notes, fmt.Sprintf("unit %s is left out: %s", name, v.Summary))
		case !known && asked == nil && !strings.HasPrefix(name, defaultUnit):
			notes = append(notes, fmt.Sprintf("unit %s is left out until %s has passed", name, test))
		default:
			units = append(units, name)
		}
	}
	if len(units) == 0 {
		return nil, nil, fmt.Errorf("no unit is left to plan for: %s", strings.Join(notes, "; "))
	}
	return units, notes, nil
}
