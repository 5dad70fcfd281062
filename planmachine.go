package tandem

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/tandemrun/tandem/engine"
	"github.com/tandemrun/tandem/machine"
	"github.com/tandemrun/tandem/measure"
	"github.com/tandemrun/tandem/model"
	"github.com/tandemrun/tandem/plan"
	"github.com/tandemrun/tandem/unit/cpu"
)

// planGain is by how much a plan on several units must be predicted better than
// the best single unit to come before it: about what predictions err.
const planGain = 0.05

// memoryMargin is the share of a unit's memory that plans leave free.
const memoryMargin = 0.1

// PlanUnits are the units that plans use where nothing else is said: all cores,
// two halves of them, and the kinds of cores where the system tells them.
func PlanUnits() ([]string, error) {
	host, err := machine.Detect()
	if err != nil {
		return nil, fmt.Errorf("finding the cores of this machine: %w", err)
	}
	out := []string{defaultUnit}
	span := func(from, to int) string {
		if from == to {
			return fmt.Sprintf("cpu:%d", from)
		}
		return fmt.Sprintf("cpu:%d-%d", from, to)
	}
	if n := len(host.Usable()); n > 1 {
		out = append(out, span(0, n/2-1), span(n/2, n-1))
	}
	for _, k := range host.Kinds() {
		out = append(out, "cpu:"+string(k))
	}
	return out, nil
}

// never lists, for each unit, those that share cores with it.
func never(units []string, host *machine.Machine) (map[string][]string, error) {
	out := map[string][]string{}
	for _, a := range units {
		for _, b := range units {
			if a == b || !strings.HasPrefix(a, "cpu") || !strings.HasPrefix(b, "cpu") {
				continue
			}
			x, err := cpu.Cores(a, host)
			if err != nil {
				return nil, err
			}
			y, err := cpu.Cores(b, host)
			if err != nil {
				return nil, err
			}
			if slices.ContainsFunc(x, func(c int) bool { return slices.Contains(y, c) }) {
				out[a] = append(out[a], b)
			}
		}
	}
	return out, nil
}

// Plan finds plans for the model on this machine. What the layers take on the
// units is measured first, or read from a file if it was measured before with
// this version.
func (m *Model) Plan(ctx context.Context, o Planning) (Plans, error) {
	l, err := m.layout(o.Layout)
	if err != nil {
		return Plans{}, err
	}
	if o, err = o.prepare(l.o.Context); err != nil {
		return Plans{}, err
	}
	var notes []string
	if o.Units, notes, err = m.planUnits(o.Units); err != nil {
		return Plans{}, err
	}
	costs, file, err := m.costs(ctx, o, l)
	if err != nil {
		return Plans{}, err
	}
	host, err := machine.Detect()
	if err != nil {
		return Plans{}, fmt.Errorf("finding the memory of this machine: %w", err)
	}
	ranges := measure.Ranges(m.model)
	work := o.work()
	work.Stagger = stagger
	problem := plan.Problem{
		Costs: costs, Join: true, Most: o.Chunks, Work: work, Goal: plan.Goal(o.Goal), Top: o.Top,
		Blocks: measure.BlockSizes(min(o.Prompt, l.o.Block)), Gain: planGain,
		Fits: func(p *plan.Plan) (bool, error) { return m.planFits(p, o, ranges, host.Memory.Available) },
	}
	out, err := search(ctx, problem)
	if err != nil {
		return Plans{}, fmt.Errorf("%s: planning: %w", m.Name(), err)
	}
	out.Name, out.Work, out.Cache, out.Notes = m.describe(), o, file, append(out.Notes, notes...)
	for _, p := range append(pointers(out.Plans), &out.Baseline) {
		for i, piece := range p.Boundaries {
			p.Boundaries[i] = ranges[piece].First
		}
	}
	if !o.Verify {
		return out, nil
	}
	out.Verified = "this machine"
	verified := pointers(out.Plans[:min(len(out.Plans), 2)])
	same := slices.IndexFunc(verified, func(p *Plan) bool { return p.String() == out.Baseline.String() })
	if same < 0 && out.Baseline.p != nil {
		verified = append(verified, &out.Baseline)
	}
	if out.Drift, err = m.verify(ctx, verified, o, costs); err != nil {
		return Plans{}, fmt.Errorf("%s: verifying: %w", m.Name(), err)
	}
	if same >= 0 {
		out.Baseline = *verified[same]
	}
	out.settle()
	return out, nil
}

func pointers(plans []Plan) []*Plan {
	var out []*Plan
	for i := range plans {
		out = append(out, &plans[i])
	}
	return out
}

// options are a plan's, with what the planning says beside it.
func (p *Plan) options(o Planning) Options {
	out := o.Layout
	out.Split, out.Chunks = p.Boundaries, 0
	if len(p.Boundaries) == 0 {
		out.Chunks = 1
	}
	out.Place, out.Streams, out.Block, out.Merge = placement(p.Placement), p.Streams, p.Block, p.Merge
	// What is predicted is prompts that come at once, not beside others that
	// decode.
	out.BlockBeside = p.Block
	return out
}

// planFits sees what a plan takes of each unit's memory. All units of this machine
// share its memory; the limit of each is what the others leave.
func (m *Model) planFits(p *plan.Plan, o Planning, pieces []model.Range, available int64) (bool, error) {
	x := planOf(p)
	for i, piece := range x.Boundaries {
		x.Boundaries = slices.Clone(x.Boundaries)
		x.Boundaries[i] = pieces[piece].First
	}
	l, err := m.layout(x.options(o))
	if err != nil {
		return false, err
	}
	chunks, err := m.plan(l)
	if err != nil {
		return false, err
	}
	var total int64
	for _, name := range x.units() {
		mem := plan.Memory{Unit: name}
		for i, b := range chunks {
			if x.Placement[i] == name {
				mem.Bytes += b.Weights + b.Tables + b.KV + b.Buffers
			}
		}
		total += mem.Bytes
		p.Memory = append(p.Memory, mem)
	}
	if available == 0 {
		return true, nil // nothing is known of the memory
	}
	for i := range p.Memory {
		p.Memory[i].Limit = available - (total - p.Memory[i].Bytes)
	}
	return float64(total) <= (1-memoryMargin)*float64(available), nil
}

// costs are what the layers take on the units, and the file they are kept in.
func (m *Model) costs(ctx context.Context, o Planning, l layout) (*plan.Costs, string, error) {
	host, err := machine.Detect()
	if err != nil {
		return nil, "", fmt.Errorf("finding the cores of this machine: %w", err)
	}
	apart, err := never(o.Units, host)
	if err != nil {
		return nil, "", err
	}
	key := m.costsKey(o, l, host)
	file, err := costsFile(key)
	if err != nil {
		return nil, "", err
	}
	if !o.Fresh {
		if c := readCosts(file, key); c != nil {
			return c, file, nil
		}
	}
	whole := l
	whole.ranges, whole.names, whole.o.Slots = []model.Range{{First: 0, Last: len(m.model.Layers)}}, o.Units[:1], o.Streams
	need, err := m.plan(whole)
	if err != nil {
		return nil, "", err
	}
	each := need[0].Weights + need[0].KV + need[0].Buffers
	var delay machine.DelayMeter
	defer delay.Close()
	costs, err := measure.Costs(ctx, measure.Config{
		Model: m.model, Units: o.Units, Never: apart, Together: 2*each*int64(len(o.Units)) < host.Memory.Available, Context: l.o.Context, Block: l.o.Block, KV: l.o.KV,
		Streams: o.Streams, Depth: min(o.Prompt+o.Tokens/2, l.o.Context-1), Delay: delay.Read, Time: o.Time, Progress: o.Progress,
		Open: func(ctx context.Context, ranges []model.Range, units []string, streams int) (*engine.Engine, error) {
			x := o.Layout
			x.Split, x.Chunks, x.Place, x.Streams, x.Merge = nil, 0, placement(units), streams, 0
			for _, r := range ranges[1:] {
				x.Split = append(x.Split, r.First)
			}
			if len(ranges) == 1 {
				x.Chunks = 1
			}
			x.BlockBeside = l.o.Block   // a block is as long as is asked for
			x.Observe = func(Record) {} // records have their parts then
			e, err := m.Open(ctx, x)
			if err != nil {
				return nil, err
			}
			return e.e, nil
		},
	})
	if err != nil {
		return nil, "", err
	}
	costs.Name = host.Model
	return costs, file, writeCosts(file, key, costs)
}

// costsKey names all that measured costs depend on.
func (m *Model) costsKey(o Planning, l layout, host *machine.Machine) []string {
	x := o.Layout
	return []string{
		"tandem " + buildVersion(),
		fmt.Sprintf("machine %s %s/%s cores %v quota %g", host.Model, host.OS, host.Arch, host.Usable(), host.Quota),
		fmt.Sprintf("model %s %x", m.describe(), m.fingerprint()),
		fmt.Sprintf("units %s", strings.Join(o.Units, ",")),
		fmt.Sprintf("streams %d prompt %d tokens %d", o.Streams, o.Prompt, o.Tokens),
		fmt.Sprintf("threads %d context %d block %d kv %s file layout %t qos %s", x.Threads, l.o.Context, l.o.Block, l.o.KV, x.FileLayout, cmp.Or(x.QoS, "none")),
	}
}

// costsFormat changes when costs mean something else.
const costsFormat = "2"

// buildVersion tells builds apart, as far as the Go tool has recorded it.
func buildVersion() string {
	out := "costs " + costsFormat
	if info, ok := debug.ReadBuildInfo(); ok {
		out += " " + info.Main.Version
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" || s.Key == "vcs.modified" {
				out += " " + s.Value
			}
		}
	}
	return out
}

// costsFile is where costs are kept.
func costsFile(key []string) (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding where to keep measured costs: %w", err)
	}
	sum := sha256.Sum256([]byte(strings.Join(key, "\n")))
	return filepath.Join(dir, "tandem", fmt.Sprintf("costs-%x.json", sum[:8])), nil
}

// costsRecord is the file of costs.
type costsRecord struct {
	Of    []string    `json:"of"`
	Costs *plan.Costs `json:"costs"`
}

// readCosts reads costs that were measured before, or returns nil: a file that
// is missing, damaged or of something else is measured again.
func readCosts(file string, key []string) *plan.Costs {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	var k costsRecord
	if json.Unmarshal(data, &k) != nil || !slices.Equal(k.Of, key) || k.Costs == nil || k.Costs.Check() != nil {
		return nil
	}
	return k.Costs
}

// writeCosts keeps costs; the file appears whole or not at all.
func writeCosts(file string, key []string, c *plan.Costs) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("keeping measured costs: %w", err)
		}
	}()
	data, err := json.MarshalIndent(costsRecord{key, c}, "", " ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), "costs-*.tmp")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
