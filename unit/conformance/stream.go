package conformance

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/tandemrun/tandem/program"
	"github.com/tandemrun/tandem/quant"
	"github.com/tandemrun/tandem/unit"
)

// The checks of this file are about what a stream sees of its chunk: rows that
// nobody wants, other streams, earlier ones in its slot, and its own past.

// whole compiles the made-up model as one chunk and calls f with what runs
// parts on it.
func whole(ctx context.Context, u unit.Unit, s shape, o unit.Options, f func(c unit.Chunk, run func(parts ...unit.Part) error) error) error {
	c, err := u.Compile(ctx, s.program(0, layers), o)
	if err != nil {
		return err
	}
	err = f(c, func(parts ...unit.Part) error { return c.Run(ctx, &unit.Task{Parts: parts}) })
	return errors.Join(err, c.Close())
}

// part is n tokens of a text from pos on, with the logits of some rows wanted.
func part(slot int, tokens []int32, pos, n int, wanted ...int) unit.Part {
	return unit.Part{Slot: slot, Pos: pos, Tokens: tokens[pos : pos+n], Wanted: wanted, Logits: make([]float32, len(wanted)*vocab)}
}

// feed runs positions [from, to) of a text, whose rows nobody wants, in blocks.
func feed(run func(...unit.Part) error, slot int, tokens []int32, from, to, size int) error {
	for at := from; at < to; at += size {
		if err := run(part(slot, tokens, at, min(size, to-at))); err != nil {
			return err
		}
	}
	return nil
}

// rowsOf are the logits of single positions.
func rowsOf(all []float32, positions ...int) []float32 {
	var out []float32
	for _, p := range positions {
		out = append(out, all[p*vocab:(p+1)*vocab]...)
	}
	return out
}

// wantedRows: the logits of a row do not depend on which others are wanted.
func wantedRows(ctx context.Context, u unit.Unit, kv unit.KV) error {
	s := shape{typ: quant.Q8_0, kv: kv}
	all, err := runAll(ctx, u, []*program.Program{s.program(0, layers)}, options(s), 16)
	if err != nil {
		return err
	}
	return whole(ctx, u, s, options(s), func(c unit.Chunk, run func(...unit.Part) error) error {
		tokens := text(0)
		at := 0
		for i, wanted := range [][]int{{0, 5, 15}, nil, {7}, {0}} {
			n := []int{16, 9, 8, 1}[i]
			x := part(1, tokens, at, n, wanted...)
			if err := run(x); err != nil {
				return err
			}
			var positions []int
			for _, w := range wanted {
				positions = append(positions, at+w)
			}
			if err := equal(x.Logits, rowsOf(all, positions...)); err != nil {
				return fmt.Errorf("rows %v of %d at position %d are wanted: %w", wanted, n, at, err)
			}
			at += n
		}
		return nil
	})
}

// mixed runs a prompt's block beside single rows of other streams, in parts of
// different lengths, positions and wanted rows.
func mixed(ctx context.Context, u unit.Unit, kv unit.KV) error {
	s := shape{typ: quant.Q8_0, kv: kv}
	return whole(ctx, u, s, options(s), func(c unit.Chunk, run func(...unit.Part) error) error {
		prepare := func() error {
			return errors.Join(feed(run, 0, text(0), 0, 31, 16), feed(run, 2, text(2), 0, 10, 7))
		}
		parts := func() []unit.Part {
			return []unit.Part{
				part(1, text(1), 0, 9, 3, 8), part(0, text(0), 31, 1, 0), part(2, text(2), 10, 16),
			}
		}
		after := func() []unit.Part { // what nobody wanted has been written all the same
			return []unit.Part{part(2, text(2), 26, 2, 0, 1), part(0, text(0), 32, 3, 2), part(1, text(1), 9, 1, 0)}
		}
		if err := prepare(); err != nil {
			return err
		}
		var alone [2][]unit.Part
		for i, set := range []func() []unit.Part{parts, after} {
			alone[i] = set()
			for _, x := range alone[i] {
				if err := run(x); err != nil {
					return err
				}
			}
		}
		if err := prepare(); err != nil {
			return err
		}
		for i, set := range []func() []unit.Part{parts, after} {
			together := set()
			if err := run(together...); err != nil {
				return err
			}
			for j, x := range together {
				if err := equal(x.Logits, alone[i][j].Logits); err != nil {
					return fmt.Errorf("task %d, %d rows of slot %d beside others: %w", i, len(x.Tokens), x.Slot, err)
				}
			}
		}
		return nil
	})
}

// rewound: a stream that goes on from an earlier position, and one that begins
// in a slot where another one was, see nothing of what was there.
func rewound(ctx context.Context, u unit.Unit, kv unit.KV) error {
	s := shape{typ: quant.Q8_0, kv: kv}
	all, err := runAll(ctx, u, []*program.Program{s.program(0, layers)}, options(s), 16)
	if err != nil {
		return err
	}
	return whole(ctx, u, s, options(s), func(c unit.Chunk, run func(...unit.Part) error) error {
		check := func(what string, pos, n int) error {
			x := part(0, text(0), pos, n, n-1)
			if err := run(x); err != nil {
				return err
			}
			if err := equal(x.Logits, rowsOf(all, pos+n-1)); err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
			return nil
		}
		if err := feed(run, 0, text(1), 0, positions, 16); err != nil { // another stream fills the slot
			return err
		}
		if err := check("a stream in a used slot", 0, 14); err != nil {
			return err
		}
		// A draft that is thrown away: its tokens are not those that follow.
		if err := feed(run, 0, text(2), 14, 20, 6); err != nil {
			return err
		}
		if err := check("a stream brought back", 14, 3); err != nil {
			return err
		}
		if err := feed(run, 0, text(2), 17, 33, 16); err != nil {
			return err
		}
		return check("a stream brought back by a block", 17, 16)
	})
}

// sizes: neither the largest block nor the context that a chunk was compiled
// for changes a bit; both change the size of a sliding window's ring.
func sizes(ctx context.Context, u unit.Unit, kv unit.KV) error {
	s := shape{typ: quant.Q8_0, kv: kv}
	ps := []*program.Program{s.program(0, layers)}
	want, err := runAll(ctx, u, ps, options(s), 16)
	if err != nil {
		return err
	}
	for _, x := range []struct{ block, context int }{{1, positions}, {5, positions + 3}, {positions, positions}, {64, 500}} {
		o := options(s)
		o.Block, o.Context = x.block, x.context
		got, err := runAll(ctx, u, ps, o, min(x.block, positions))
		if err != nil {
			return err
		}
		if err := equal(got, want); err != nil {
			return fmt.Errorf("blocks of up to %d, context %d: %w", x.block, x.context, err)
		}
	}
	return nil
}

// edges: rows are read and written at the stride they have, and what lies
// between and behind them, and the inputs, stay as they are.
func edges(ctx context.Context, u unit.Unit) error {
	s := shape{typ: quant.F32}
	first, err := u.Compile(ctx, s.program(0, 1), options(s))
	if err != nil {
		return err
	}
	defer first.Close()
	second, err := u.Compile(ctx, s.program(1, layers), options(s))
	if err != nil {
		return err
	}
	defer second.Close()
	const n = 5
	guard := float32(math.Float32frombits(0x7fc0beef)) // a NaN of its own
	step := func(stride, slack int) (rows, logits []float32, err error) {
		rows, logits = slices.Repeat([]float32{guard}, n*stride), slices.Repeat([]float32{guard}, 2*vocab+slack)
		x := unit.Part{Tokens: text(0)[:n], Wanted: []int{1, n - 1}}
		a, b := x, x
		a.Out = []unit.Rows{{Data: rows, Stride: stride}}
		if err := first.Run(ctx, &unit.Task{Parts: []unit.Part{a}}); err != nil {
			return nil, nil, err
		}
		k, v := make([]byte, unit.F32.Size(n*2*64)), make([]byte, unit.F32.Size(n*2*64))
		if err := errors.Join(first.ReadKV(0, 0, 0, n, k, v), second.WriteKV(0, 0, 0, n, k, v)); err != nil {
			return nil, nil, err
		}
		before := slices.Clone(rows)
		b.In, b.Logits = []unit.Rows{{Data: rows, Stride: stride}}, logits
		if err := second.Run(ctx, &unit.Task{Parts: []unit.Part{b}}); err != nil {
			return nil, nil, err
		}
		if !sameBits(rows, before) {
			return nil, nil, errors.New("a task changed its inputs")
		}
		return rows, logits, nil
	}
	rows, logits, err := step(hidden, 0)
	if err != nil {
		return err
	}
	const stride = hidden + 3
	apart, more, err := step(stride, 7)
	if err != nil {
		return err
	}
	for r := range n {
		if !sameBits(apart[r*stride:][:hidden], rows[r*hidden:][:hidden]) {
			return fmt.Errorf("row %d at a stride of %d is another", r, stride)
		}
		if !sameBits(apart[r*stride+hidden:(r+1)*stride], slices.Repeat([]float32{guard}, stride-hidden)) {
			return fmt.Errorf("the columns behind row %d were written", r)
		}
	}
	if !sameBits(more[2*vocab:], slices.Repeat([]float32{guard}, 7)) {
		return errors.New("logits were written behind the last wanted row")
	}
	return equal(more[:2*vocab], logits)
}

func sameBits(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

// apart: chunks of a unit have nothing to do with each other; closing one, or a
// task of it that fails, leaves the others as they were.
func apart(ctx context.Context, u unit.Unit) error {
	s := shape{typ: quant.Q8_0}
	all, err := runAll(ctx, u, []*program.Program{s.program(0, layers)}, options(s), 16)
	if err != nil {
		return err
	}
	return whole(ctx, u, s, options(s), func(c unit.Chunk, run func(...unit.Part) error) error {
		if err := feed(run, 0, text(0), 0, 9, 9); err != nil {
			return err
		}
		err := whole(ctx, u, s, options(s), func(_ unit.Chunk, other func(...unit.Part) error) error {
			if err := other(part(0, []int32{vocab}, 0, 1, 0)); err == nil {
				return errors.New("a token past the vocabulary was no error")
			}
			return feed(other, 0, text(1), 0, 20, 10)
		})
		if err != nil {
			return err
		}
		x := part(0, text(0), 9, 2, 0, 1)
		if err := run(x); err != nil {
			return err
		}
		return equal(x.Logits, rowsOf(all, 9, 10))
	})
}

// opTimes: measuring operations changes no bit, and begins anew when it is
// asked for. Units need not measure.
func opTimes(ctx context.Context, u unit.Unit) error {
	s := shape{typ: quant.Q8_0}
	all, err := runAll(ctx, u, []*program.Program{s.program(0, layers)}, options(s), 16)
	if err != nil {
		return err
	}
	o := options(s)
	o.TimeOps = true
	return whole(ctx, u, s, o, func(c unit.Chunk, run func(...unit.Part) error) error {
		timer, ok := c.(unit.OpTimer)
		for i := range 2 {
			x := part(0, text(0), 8*i, 8, 7)
			if err := run(x); err != nil {
				return err
			}
			if err := equal(x.Logits, rowsOf(all, 8*i+7)); err != nil {
				return fmt.Errorf("while operations are timed: %w", err)
			}
			if !ok {
				continue
			}
			products := 0
			for _, t := range timer.OpTimes() {
				if t.Calls < 1 || t.Time < 0 || t.Bytes < 0 || t.Ops < 0 {
					return fmt.Errorf("%s %s: %+v", t.Name, t.Rows, t)
				}
				if t.Name == (program.MatMul{}).Name() {
					products += t.Calls
				}
			}
			// Seven products a layer with a cache of its own, five without, and the head; a unit may join some.
			if products < 1 || products > 7*(layers-1)+5+1 {
				return fmt.Errorf("task %d: %d calls of products", i, products)
			}
		}
		return nil
	})
}
