// Package conformance is the suite that every unit must pass: small programs
// that together use every operation, compared with the float32 evaluator, and
// the promises of package unit, compared bit for bit.
//
// The checks are plain functions, so that a test can run them and a command as
// well ([Checks]). They need a unit and nothing else; weights are made up.
package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/tandemrun/tandem/program"
	"github.com/tandemrun/tandem/quant"
	"github.com/tandemrun/tandem/unit"
)

// A Check is one thing a unit must do. Run returns nil if it does; the unit is
// as before then.
type Check struct {
	Name string
	Run  func(ctx context.Context, u unit.Unit) error
}

// Types are the weight types that the suite uses.
func Types() []quant.Type {
	return []quant.Type{quant.F32, quant.F16, quant.BF16, quant.Q8_0, quant.Q4_0, quant.Q4_1, quant.Q5_0, quant.Q5_1, quant.Q4_K, quant.Q6_K}
}

// Checks is the suite.
func Checks() []Check {
	var out []Check
	for _, t := range Types() {
		out = append(out, Check{"operations/" + t.String(), func(ctx context.Context, u unit.Unit) error {
			return operations(ctx, u, shape{typ: t})
		}})
	}
	for name, s := range map[string]shape{
		"interleaved":  {typ: quant.F32, interleaved: true},
		"silu":         {typ: quant.F32, silu: true},
		"full":         {typ: quant.F32, full: true},
		"cache-f16":    {typ: quant.F32, kv: unit.F16},
		"single-head":  {typ: quant.F32, heads: 2},
		"file-layout":  {typ: quant.Q4_0, fileLayout: true},
		"cache-q8_0":   {typ: quant.F32, kv: unit.Q8_0},
		"q8_0-f16":     {typ: quant.Q8_0, kv: unit.F16},
		"q4_0-q8_0":    {typ: quant.Q4_0, kv: unit.Q8_0},
		"plain-layers": {typ: quant.F32, bare: true},
		"long":         {typ: quant.F32, positions: 300, full: true},
		"long-window":  {typ: quant.F32, positions: 300, window: 150},
		"long-f16":     {typ: quant.F32, positions: 300, full: true, kv: unit.F16},
		"long-q8_0":    {typ: quant.F32, positions: 300, full: true, kv: unit.Q8_0},
		"heads-of-32":  {typ: quant.F32, dim: 32, kv: unit.Q8_0},
		"heads-of-80":  {typ: quant.F32, dim: 80},
		"heads-of-256": {typ: quant.F32, dim: 256, kv: unit.F16},
		"many-heads":   {typ: quant.F32, heads: 14},
	} {
		out = append(out, Check{"operations/" + name, func(ctx context.Context, u unit.Unit) error {
			return orRefused(s.kv, operations(ctx, u, s))
		}})
	}
	for _, kv := range unit.KVs() {
		for name, run := range map[string]func(context.Context, unit.Unit, unit.KV) error{
			"equal/blocks": blocks, "equal/sizes": sizes, "equal/wanted": wantedRows, "equal/merged": merged, "equal/mixed": mixed,
			"equal/rewound": rewound, "equal/chunks": chunks, "equal/shared": shared, "cache/copy": cacheCopy, "cache/stored": stored,
		} {
			out = append(out, Check{name + "/" + kv.String(), func(ctx context.Context, u unit.Unit) error {
				return orRefused(kv, run(ctx, u, kv))
			}})
		}
	}
	out = append(out,
		Check{"equal/layouts", layouts},
		Check{"equal/apart", apart},
		Check{"equal/timed", opTimes},
		Check{"rows/edges", edges},
		Check{"errors/kv-heads", kvHeads},
		Check{"errors/bad-task", badTask},
		Check{"errors/bad-options", badOptions},
		Check{"errors/cancelled", cancelled},
	)
	slices.SortFunc(out, func(a, b Check) int { return compare(a.Name, b.Name) })
	return out
}

// orRefused lets a unit do without a type of cache but F32, if it says so.
func orRefused(kv unit.KV, err error) error {
	if no := (*unit.KVError)(nil); kv != unit.F32 && errors.As(err, &no) && no.KV == kv {
		return nil
	}
	return err
}

func compare(a, b string) int {
	if a < b {
		return -1
	}
	return 1
}

// The sizes of the made-up model: more positions than the window holds, and
// outputs that are no multiple of any kernel's width.
const (
	vocab     = 77
	window    = 12
	positions = 40
	slots     = 3
)

func options(s shape) unit.Options {
	return unit.Options{Slots: slots, Context: cmp.Or(s.positions, positions), Block: 16, KV: s.kv, FileLayout: s.fileLayout}
}

// text is the tokens of slot i.
func text(i int) []int32 { return longText(i, positions) }

func longText(i, n int) []int32 {
	out := make([]int32, n)
	for p := range out {
		out[p] = int32((p*p*7 + p*13 + i*31 + 5) % vocab)
	}
	return out
}

// tolerance is how far logits, whose root mean square is about 3, may be from
// the evaluator's: at most, and in the root mean square. The weights are the
// same but the evaluator never rounds activations, while products with
// quantised weights may take theirs as 8-bit integers.
func tolerance(s shape) (most, rms float64) {
	switch s.typ {
	case quant.F32:
		most = 1e-4
	case quant.F16, quant.BF16:
		most = 2e-3
	default:
		most = 0.25
	}
	// The evaluator rounds cache rows alike, but a value next to a tie of two
	// levels may fall to either, since it was summed in another order. A unit that
	// did not round at all would be off by about 2e-3 and 5e-2 at most.
	switch s.kv {
	case unit.F16:
		most += 1.4e-3
	case unit.Q8_0:
		most += 1e-2
	}
	return most, most / 5
}

func operations(ctx context.Context, u unit.Unit, s shape) error {
	p := s.program(0, layers)
	tokens := longText(0, cmp.Or(s.positions, positions))
	all := make([]int, len(tokens))
	for i := range all {
		all[i] = i
	}
	want, err := (&program.Evaluator{KV: s.kv.Type()}).Run(program.Block{Tokens: tokens, Wanted: all}, p)
	if err != nil {
		return err
	}
	got, err := runText(ctx, u, []*program.Program{p}, options(s), tokens, 16)
	if err != nil {
		return err
	}
	worst, at, sum := 0.0, 0, 0.0
	for i, x := range want.Data {
		d := math.Abs(float64(x) - float64(got[i]))
		if !(d <= worst) {
			worst, at = d, i
		}
		sum += d * d
	}
	most, limit := tolerance(s)
	rms := math.Sqrt(sum / float64(len(want.Data)))
	if !(worst <= most && rms <= limit) {
		return fmt.Errorf("position %d, logit %d is %g, the evaluator's is %g: the difference %.3g (at most %g), root mean square %.3g (at most %g)",
			at/vocab, at%vocab, got[at], want.Data[at], worst, most, rms, limit)
	}
	return nil
}

func blocks(ctx context.Context, u unit.Unit, kv unit.KV) error {
	s := shape{typ: quant.Q8_0, kv: kv}
	p := s.program(0, layers)
	want, err := runAll(ctx, u, []*program.Program{p}, options(s), 16)
	if err != nil {
		return err
	}
	for _, size := range []int{1, 3, 7} {
		got, err := runAll(ctx, u, []*program.Program{p}, options(s), size)
		if err != nil {
			return err
		}
		if err := equal(got, want); err != nil {
			return fmt.Errorf("blocks of %d: %w", size, err)
		}
	}
	return nil
}

func chunks(ctx context.Context, u unit.Unit, kv unit.KV) error {
	s := shape{typ: quant.Q8_0, kv: kv}
	want, err := runAll(ctx, u, []*program.Program{s.program(0, layers)}, options(s), 16)
	if err != nil {
		return err
	}
	for cut := 1; cut < layers; cut++ {
		got, err := runAll(ctx, u, []*program.Program{s.program(0, cut), s.program(cut, layers)}, options(s), 16)
		if err != nil {
			return err
		}
		if err := equal(got, want); err != nil {
			return fmt.Errorf("cut before layer %d: %w", cut, err)
		}
	}
	return nil
}

// layouts compares the unit's own layout of the weights with the file's.
func layouts(ctx context.Context, u unit.Unit) error {
	for _, t := range Types() {
		s := shape{typ: t}
		p := []*program.Program{s.program(0, layers)}
		want, err := runAll(ctx, u, p, options(s), 16)
		if err != nil {
			return err
		}
		s.fileLayout = true
		got, err := runAll(ctx, u, p, options(s), 16)
		if err != nil {
			return err
		}
		if err := equal(got, want); err != nil {
			return fmt.Errorf("%s in the file's layout: %w", t, err)
		}
	}
	return nil
}

// merged runs three streams in one task and compares with each alone.
func merged(ctx context.Context, u unit.Unit, kv unit.KV) error {
	s := shape{typ: quant.Q8_0, kv: kv}
	p := s.program(0, layers)
	c, err := u.Compile(ctx, p, options(s))
	if err != nil {
		return err
	}
	defer c.Close()
	var alone [slots][]float32
	step := func(parts []unit.Part) error { return c.Run(ctx, &unit.Task{Parts: parts}) }
	part := func(slot, pos, n int) unit.Part { return part(slot, text(slot), pos, n, n-1) }
	begin := func() error {
		for slot := range slots {
			if err := step([]unit.Part{part(slot, 0, 5+slot)}); err != nil {
				return err
			}
		}
		return nil
	}
	if err := begin(); err != nil {
		return err
	}
	const steps = 20
	for slot := range slots {
		for i := range steps {
			x := part(slot, 5+slot+i, 1)
			if err := step([]unit.Part{x}); err != nil {
				return err
			}
			alone[slot] = append(alone[slot], x.Logits...)
		}
	}
	if err := begin(); err != nil {
		return err
	}
	var together [slots][]float32
	for i := range steps {
		var parts []unit.Part
		for _, slot := range []int{2, 0, 1} {
			parts = append(parts, part(slot, 5+slot+i, 1))
		}
		if err := step(parts); err != nil {
			return err
		}
		for _, x := range parts {
			together[x.Slot] = append(together[x.Slot], x.Logits...)
		}
	}
	for slot := range slots {
		if err := equal(together[slot], alone[slot]); err != nil {
			return fmt.Errorf("stream %d beside others: %w", slot, err)
		}
	}
	return nil
}

// cacheCopy reads what a chunk has cached and writes it to another slot.
func cacheCopy(ctx context.Context, u unit.Unit, kv unit.KV) error {
	s := shape{typ: quant.F32, kv: kv}
	p := s.program(0, layers)
	c, err := u.Compile(ctx, p, options(s))
	if err != nil {
		return err
	}
	return errors.Join(copySlot(ctx, c, p, kv), c.Close())
}

// kvHeads: heads that are not whole blocks of a cache's type are refused.
func kvHeads(ctx context.Context, u unit.Unit) error {
	s := shape{typ: quant.F32, kv: unit.Q8_0, dim: 48}
	c, err := u.Compile(ctx, s.program(0, layers), options(s))
	if err == nil {
		return errors.Join(errors.New("a q8_0 cache for heads of 48 values was no error"), c.Close())
	}
	if no := (*unit.KVError)(nil); !errors.As(err, &no) || no.KV != unit.Q8_0 {
		return fmt.Errorf("a q8_0 cache for heads of 48 values: the error is no unit.KVError: %w", err)
	}
	return nil
}

func copySlot(ctx context.Context, c unit.Chunk, p *program.Program, kv unit.KV) error {
	const n = 10
	last := func(slot int) ([]float32, error) {
		x := unit.Part{Slot: slot, Pos: n, Tokens: text(0)[n : n+1], Wanted: []int{0}, Logits: make([]float32, vocab)}
		return x.Logits, c.Run(ctx, &unit.Task{Parts: []unit.Part{x}})
	}
	if err := c.Run(ctx, &unit.Task{Parts: []unit.Part{{Slot: 0, Tokens: text(0)[:n]}}}); err != nil {
		return err
	}
	for _, x := range p.Caches {
		k, v := make([]byte, kv.Size(n*x.KeyWidth())), make([]byte, kv.Size(n*x.ValueWidth()))
		if err := c.ReadKV(x.Layer, 0, 0, n, k, v); err != nil {
			return err
		}
		if err := c.WriteKV(x.Layer, 2, 0, n, k, v); err != nil {
			return err
		}
	}
	want, err := last(0)
	if err != nil {
		return err
	}
	got, err := last(2)
	if err != nil {
		return err
	}
	return equal(got, want)
}

func badTask(ctx context.Context, u unit.Unit) error {
	s := shape{typ: quant.F32}
	c, err := u.Compile(ctx, s.program(0, layers), options(s))
	if err != nil {
		return err
	}
	defer c.Close()
	logits := make([]float32, vocab)
	for name, x := range map[string]unit.Part{
		"a negative slot":              {Slot: -1, Tokens: []int32{1}, Wanted: []int{0}, Logits: logits},
		"a negative position":          {Pos: -1, Tokens: []int32{1}, Wanted: []int{0}, Logits: logits},
		"a negative wanted row":        {Tokens: []int32{1}, Wanted: []int{-1}, Logits: logits},
		"a block past the context":     {Pos: positions - 1, Tokens: []int32{1, 2}, Wanted: []int{0}, Logits: logits},
		"outputs that nobody makes":    {Tokens: []int32{1}, Wanted: []int{0}, Logits: logits, Out: []unit.Rows{{Data: make([]float32, hidden), Stride: hidden}}},
		"inputs that nobody takes":     {Tokens: []int32{1}, Wanted: []int{0}, Logits: logits, In: []unit.Rows{{Data: make([]float32, hidden), Stride: hidden}}},
		"a slot that is not there":     {Slot: slots, Tokens: []int32{1}, Wanted: []int{0}, Logits: logits},
		"a token past the vocabulary":  {Tokens: []int32{vocab}, Wanted: []int{0}, Logits: logits},
		"a negative token":             {Tokens: []int32{-1}, Wanted: []int{0}, Logits: logits},
		"a position past the context":  {Pos: positions, Tokens: []int32{1}, Wanted: []int{0}, Logits: logits},
		"a wanted row past the block":  {Tokens: []int32{1}, Wanted: []int{1}, Logits: logits},
		"more rows than a block holds": {Tokens: text(0)[:17], Wanted: []int{0}, Logits: logits},
	} {
		if err := c.Run(ctx, &unit.Task{Parts: []unit.Part{x}}); err == nil {
			return fmt.Errorf("%s was no error", name)
		}
	}
	return c.Run(ctx, &unit.Task{Parts: []unit.Part{{Tokens: []int32{1}, Wanted: []int{0}, Logits: logits}}})
}

func cancelled(ctx context.Context, u unit.Unit) error {
	s := shape{typ: quant.F32}
	c, err := u.Compile(ctx, s.program(0, layers), options(s))
	if err != nil {
		return err
	}
	defer c.Close()
	stopped, cancel := context.WithCancel(ctx)
	cancel()
	x := part(0, text(0), 0, 4, 3)
	if err := c.Run(stopped, &unit.Task{Parts: []unit.Part{x}}); !errors.Is(err, context.Canceled) {
		return fmt.Errorf("the error of a task with a cancelled context is %v", err)
	}
	if c, err := u.Compile(stopped, s.program(0, layers), options(s)); err == nil {
		return errors.Join(fmt.Errorf("a chunk was compiled with a cancelled context"), c.Close())
	}
	// The slot is undefined now and begins anew, and the other slots are as before.
	for slot := range 2 {
		x.Slot = slot
		if err := c.Run(ctx, &unit.Task{Parts: []unit.Part{x}}); err != nil {
			return fmt.Errorf("after a cancelled task: %w", err)
		}
	}
	return nil
}

// badOptions: chunks that can hold nothing are refused, and so is a cache that
// is shared from a chunk without it.
func badOptions(ctx context.Context, u unit.Unit) error {
	s := shape{typ: quant.F32}
	for what, change := range map[string]func(*unit.Options){
		"no slots":              func(o *unit.Options) { o.Slots = 0 },
		"no positions":          func(o *unit.Options) { o.Context = 0 },
		"blocks without a row":  func(o *unit.Options) { o.Block = 0 },
		"a negative block size": func(o *unit.Options) { o.Block = -1 },
	} {
		o := options(s)
		change(&o)
		if c, err := u.Compile(ctx, s.program(0, layers), o); err == nil {
			return errors.Join(fmt.Errorf("a chunk with %s was no error", what), c.Close())
		}
	}
	o := options(s)
	other, err := u.Compile(ctx, s.program(0, 1), options(s))
	if err != nil {
		return err
	}
	defer other.Close()
	o.Slots++
	o.Share = map[int]unit.Chunk{0: other}
	if c, err := u.Compile(ctx, s.program(2, layers), o); err == nil {
		return errors.Join(errors.New("a cache of 3 slots was shared with a chunk of 4"), c.Close())
	}
	return nil
}

// equal compares bit for bit.
func equal(got, want []float32) error {
	if len(got) != len(want) {
		return fmt.Errorf("%d logits, not %d", len(got), len(want))
	}
	for i, x := range want {
		if math.Float32bits(x) != math.Float32bits(got[i]) {
			return fmt.Errorf("position %d, logit %d is %g, not %g", i/vocab, i%vocab, got[i], x)
		}
	}
	return nil
}
