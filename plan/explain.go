package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// An Alternative is an obvious other plan and why it is not the best.
type Alternative struct {
	What string
	Plan Plan
	Loss float64 // how much worse it is for the goal, as 0.23; negative if it is better
	Why  string
}

// Alternatives predicts what is nearest to a plan: each chunk moved to each
// other unit, all of it on each unit, streams merged or kept apart, and fewer
// streams at once. They are in the order of their loss, those of 1 % and more;
// those that change nothing that matters are left out.
func (p Problem) Alternatives(best *Plan) ([]Alternative, error) {
	var out []Alternative
	seen := map[string]bool{fmt.Sprint(best.Placement, best.Streams, best.Merge): true}
	add := func(what string, s Schedule) error {
		key := fmt.Sprint(s.Placement, s.Streams, s.Merge)
		if seen[key] || best.Costs.placed(s.Placement) != nil {
			return nil
		}
		seen[key] = true
		x, err := p.plan(best, s)
		if err != nil {
			return err
		}
		loss := 1 - p.Goal.better(&x, best)
		if loss >= 0.01 {
			out = append(out, Alternative{what, x, loss, p.why(best, &x)})
		}
		return nil
	}
	c := best.Costs
	for _, u := range c.Units {
		for i, name := range best.Placement {
			if name == u.Name {
				continue
			}
			s := best.Schedule
			s.Placement = slices.Clone(s.Placement)
			s.Placement[i] = u.Name
			if c.apart(s.Placement, u) {
				continue
			}
			if err := add(fmt.Sprintf("moving %s to %s", c.Chunks[i].Name, u.Name), s); err != nil {
				return nil, err
			}
		}
		s := best.Schedule
		s.Placement = slices.Repeat([]string{u.Name}, len(s.Placement))
		if err := add("everything on "+u.Name, s); err != nil {
			return nil, err
		}
	}
	if best.Streams > 1 {
		s := best.Schedule
		what := "keeping streams apart"
		if s.Merge = 1; best.Merge == 1 {
			s.Merge, what = 0, "running streams that wait for a chunk as one task"
		}
		if err := add(what, s); err != nil {
			return nil, err
		}
		s = best.Schedule
		s.Streams = 1
		if err := add("one stream after the other", s); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(out, func(a, b Alternative) int { return cmp.Compare(a.Loss, b.Loss) })
	return out, nil
}

// plan predicts a schedule of the chunks of another plan.
func (p Problem) plan(like *Plan, s Schedule) (Plan, error) {
	decode, prompts := p.Work, p.Work
	decode.Prompt, prompts.Tokens = 1, 1
	x := Plan{Cuts: like.Cuts, Costs: like.Costs, Schedule: s}
	var err error
	if x.Decode, err = Predict(x.Costs, s, decode); err != nil {
		return x, err
	}
	if x.Prefill, err = Predict(x.Costs, s, prompts); err != nil {
		return x, err
	}
	x.Energy = energyOf(x.Costs, x.Decode, p.Work.Streams*p.Work.Tokens)
	return x, nil
}

// why compares a plan that loses with the best one.
func (p Problem) why(best, x *Plan) string {
	c := best.Costs
	var moved []string
	for i, name := range x.Placement {
		if was := best.Placement[i]; was != name && len(moved) < 3 {
			moved = append(moved, fmt.Sprintf("%s takes %s there instead of %s", c.Chunks[i].Name, msText(c.Chunks[i].On[name].one()), msText(c.Chunks[i].On[was].one())))
		}
	}
	there := ""
	if len(moved) > 0 && len(moved) < 3 {
		there = strings.Join(moved, ", ") + "; "
	}
	streams := min(x.Streams, p.Work.Streams)
	switch {
	case p.Goal == GoalEnergy:
		return there + fmt.Sprintf("%s instead of %s J a token", joules(x.Energy), joules(best.Energy))
	case p.Goal == GoalPrefill:
		return there + fmt.Sprintf("the first token comes after %s instead of %s", msText(x.Prefill.TTFT), msText(best.Prefill.TTFT))
	case streams == 1 && x.Decode.Step.Overlap == 0 && best.Streams == 1 && len(x.Units()) > 1:
		return there + fmt.Sprintf("%s, so units take turns and a step takes %s instead of %s", x.Decode.Step.Why, msText(x.Decode.Step.Time), msText(best.Decode.Step.Time))
	case streams == 1 && best.Streams > 1:
		return "units take turns: " + x.Decode.Step.Why
	case len(x.Units()) == 1 && len(best.Units()) > 1:
		return there + fmt.Sprintf("%s is busy all the time and nothing runs beside it", x.Units()[0])
	case x.Merge != best.Merge && x.Merge == 1:
		return "weights are read once for each stream instead of once for all that wait"
	case x.Merge != best.Merge:
		return "streams that are joined reach each unit together, and the other units idle meanwhile"
	}
	return there + fmt.Sprintf("a token takes %s of %s, the busiest, instead of %s of %s", msText(x.Decode.Step.Busy), x.Decode.Step.Busiest, msText(best.Decode.Step.Busy), best.Decode.Step.Busiest)
}

func joules(e Energy) string {
	if e.Joules == nil {
		return "unavailable"
	}
	return fmt.Sprintf("%.3g", *e.Joules)
}

// msText is a time for a person.
func msText(d time.Duration) string {
	x := d.Seconds() * 1e3
	switch {
	case x >= 100:
		return fmt.Sprintf("%.0f ms", x)
	case x >= 1:
		return fmt.Sprintf("%.1f ms", x)
	}
	return fmt.Sprintf("%.3f ms", x)
}

// and joins words: a, b and c.
func and(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}
