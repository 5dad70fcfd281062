package tandem

import (
	"fmt"
	"slices"

	"github.com/tandemrun/tandem/plan"
)

// settled is by how much a plan must have been found better than the one that is
// predicted best to come before it, and settleTrials in how many trials at least.
const (
	settled      = 0.03
	settleTrials = 3
)

// settle puts the plan first that was found best, where that is not the one that
// is predicted best: what was found counts more. So the first plan is not slower
// than the best single unit, whatever a prediction missed.
func (p *Plans) settle() {
	first := p.Plans[0]
	best, at := first, 0
	for i, x := range append(slices.Clone(p.Plans), p.Baseline) {
		if x.Trials >= settleTrials && first.Trials >= settleTrials && p.found(&x) > (1+settled)*p.found(&first) && p.found(&x) > p.found(&best) {
			best, at = x, i
		}
	}
	if at == 0 {
		return
	}
	n := len(p.Plans)
	if at < n {
		p.Plans = slices.Delete(p.Plans, at, at+1)
	}
	p.Plans = slices.Insert(p.Plans, 0, best)[:n]
	p.Notes = append(p.Notes, fmt.Sprintf("%s was found better than %s, which is predicted best and which the reasons are about", &best, &first))
}

// found is how good a verified plan was found for the goal: larger is better; 0
// where that is not known, as of energy.
func (p *Plans) found(x *Plan) float64 {
	if x.MeasuredTokS == nil || x.MeasuredTTFT == nil || *x.MeasuredTokS <= 0 || *x.MeasuredTTFT <= 0 {
		return 0
	}
	ttft := *x.MeasuredTTFT / 1e3
	switch plan.Goal(p.Work.Goal) {
	case plan.GoalDecode:
		return *x.MeasuredTokS
	case plan.GoalPrefill:
		return 1 / ttft
	case plan.GoalMixed:
		return 1 / (ttft + float64(p.Work.Streams*p.Work.Tokens) / *x.MeasuredTokS)
	}
	return 0
}
