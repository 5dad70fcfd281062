package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/tandemrun/tandem/program"
	"github.com/tandemrun/tandem/quant"
	"github.com/tandemrun/tandem/unit"
)

// shared: a chunk that shares the cache of another one of the unit gives the
// bits of one chunk, and has no memory for it.
func shared(ctx context.Context, u unit.Unit, kv unit.KV) error {
	s := shape{typ: quant.Q8_0, kv: kv}
	want, err := runAll(ctx, u, []*program.Program{s.program(0, layers)}, options(s), 16)
	if err != nil {
		return err
	}
	for cut := 1; cut < layers; cut++ {
		if err := sharing(ctx, u, s, cut, want); err != nil {
			return fmt.Errorf("cut before layer %d: %w", cut, err)
		}
	}
	return nil
}

func sharing(ctx context.Context, u unit.Unit, s shape, cut int, want []float32) error {
	ps := []*program.Program{s.program(0, cut), s.program(cut, layers)}
	owner, err := u.Compile(ctx, ps[0], options(s))
	if err != nil {
		return err
	}
	defer owner.Close()
	o := options(s)
	copied, err := u.Compile(ctx, ps[1], o)
	if err != nil {
		return err
	}
	defer copied.Close()
	o.Share = map[int]unit.Chunk{0: owner}
	reader, err := u.Compile(ctx, ps[1], o)
	if err != nil {
		return err
	}
	defer reader.Close()
	if own, all := reader.Bytes().KV, copied.Bytes().KV; own >= all {
		return fmt.Errorf("the chunk has %d bytes of caches with a shared one and %d with a copy of it", own, all)
	}
	var got []float32
	tokens := text(0)
	for at := 0; at < len(tokens); at += 16 {
		n := min(16, len(tokens)-at)
		x := unit.Part{Slot: 1, Pos: at, Tokens: tokens[at : at+n]}
		for i := range n {
			x.Wanted = append(x.Wanted, i)
		}
		rows := []unit.Rows{{Data: make([]float32, n*hidden), Stride: hidden}}
		a, b := x, x
		a.Out = rows
		b.In, b.Logits = rows, make([]float32, n*vocab)
		for i, c := range []unit.Chunk{owner, reader} {
			if err := c.Run(ctx, &unit.Task{Parts: [][]unit.Part{{a}, {b}}[i]}); err != nil {
				return err
			}
		}
		got = append(got, b.Logits...)
	}
	return equal(got, want)
}

// stored: what ReadKV gives is the rows that were computed, rounded to the type
// and laid out as its block format says; rows can be had one by one and over
// the end of a window's ring; WriteKV keeps every byte.
func stored(ctx context.Context, u unit.Unit, kv unit.KV) error {
	s := shape{typ: quant.F32, kv: kv}
	p := s.program(0, layers)
	e := program.Evaluator{KV: kv.Type()}
	if _, err := e.Run(program.Block{Tokens: text(0)}, p); err != nil {
		return err
	}
	return whole(ctx, u, s, options(s), func(c unit.Chunk, run func(...unit.Part) error) error {
		if err := feed(run, 1, text(0), 0, positions, 16); err != nil {
			return err
		}
		for _, x := range p.Caches {
			n := positions
			if x.Window > 0 {
				n = x.Window // what the next position can see, and more is not promised
			}
			first := positions - n
			kb, vb := int(kv.Size(x.KeyWidth())), int(kv.Size(x.ValueWidth()))
			k, v := make([]byte, n*kb), make([]byte, n*vb)
			if err := c.ReadKV(x.Layer, 1, first, n, k, v); err != nil {
				return err
			}
			keys, values := e.Cache(x.Layer)
			for i := range n {
				if err := errors.Join(near(kv, k[i*kb:(i+1)*kb], keys[first+i]), near(kv, v[i*vb:(i+1)*vb], values[first+i])); err != nil {
					return fmt.Errorf("layer %d, position %d: %w", x.Layer, first+i, err)
				}
				k1, v1 := make([]byte, kb), make([]byte, vb)
				if err := c.ReadKV(x.Layer, 1, first+i, 1, k1, v1); err != nil {
					return err
				}
				if !bytes.Equal(k1, k[i*kb:(i+1)*kb]) || !bytes.Equal(v1, v[i*vb:(i+1)*vb]) {
					return fmt.Errorf("layer %d: the row of position %d alone is another than among its neighbours", x.Layer, first+i)
				}
			}
			if err := c.WriteKV(x.Layer, 2, first, n, k, v); err != nil {
				return err
			}
			k2, v2 := make([]byte, n*kb), make([]byte, n*vb)
			if err := c.ReadKV(x.Layer, 2, first, n, k2, v2); err != nil {
				return err
			}
			if !bytes.Equal(k, k2) || !bytes.Equal(v, v2) {
				return fmt.Errorf("layer %d: rows that were written come back as others", x.Layer)
			}
		}
		return limits(c, p, kv)
	})
}

// near compares a row of a cache with the evaluator's.
func near(kv unit.KV, row []byte, want []float32) error {
	got := make([]float32, len(want))
	if err := kv.Type().Dequantize(got, row); err != nil {
		return err
	}
	for i, x := range want {
		most := 1e-4 * (1 + math.Abs(float64(x)))
		switch kv { // and a level, for what lies next to a tie
		case unit.F16:
			most += math.Abs(float64(x)) / 1024
		case unit.Q8_0:
			var largest float64
			for _, y := range want[i/32*32 : i/32*32+32] {
				largest = max(largest, math.Abs(float64(y)))
			}
			most += largest / 126
		}
		if d := math.Abs(float64(got[i]) - float64(x)); !(d <= most) {
			return fmt.Errorf("value %d of the row is %g, the evaluator's is %g", i, got[i], x)
		}
	}
	return nil
}

// limits: rows that a chunk cannot have are errors.
func limits(c unit.Chunk, p *program.Program, kv unit.KV) error {
	x := p.Caches[0]
	k, v := make([]byte, kv.Size((positions+1)*x.KeyWidth())), make([]byte, kv.Size((positions+1)*x.ValueWidth()))
	for _, bad := range []struct {
		what                string
		layer, slot, pos, n int
		k, v                []byte
	}{
		{"a layer that is not there", 99, 0, 0, 1, k, v},
		{"a slot that is not there", x.Layer, slots, 0, 1, k, v},
		{"a negative slot", x.Layer, -1, 0, 1, k, v},
		{"a negative position", x.Layer, 0, -1, 1, k, v},
		{"a negative number of rows", x.Layer, 0, 0, -1, k, v},
		{"more rows than there are", x.Layer, 0, 0, positions + 1, k, v},
		{"too few bytes for keys", x.Layer, 0, 0, 2, k[:kv.Size(2*x.KeyWidth())-1], v},
		{"too few bytes for values", x.Layer, 0, 0, 2, k, v[:kv.Size(2*x.ValueWidth())-1]},
	} {
		if err := c.ReadKV(bad.layer, bad.slot, bad.pos, bad.n, bad.k, bad.v); err == nil {
			return fmt.Errorf("reading cache rows: %s was no error", bad.what)
		}
		if err := c.WriteKV(bad.layer, bad.slot, bad.pos, bad.n, bad.k, bad.v); err == nil {
			return fmt.Errorf("writing cache rows: %s was no error", bad.what)
		}
	}
	return nil
}
