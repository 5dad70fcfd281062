package gpu

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unsafe"

	"github.com/tandemrun/tandem/program"
	"github.com/tandemrun/tandem/unit"
	"github.com/tandemrun/tandem/unit/gpu/compute"
)

// A plan is a program as a device runs it: the buffers beside weights and
// caches, and the lists of dispatches.
//
// A task is cut into runs (see [plan.cut]). For a run the host writes what is
// different each time into the buffer up ([plan.fill]): the rows, the inputs
// and the rows of tables that its tokens name. Everything else is in the list
// of dispatches of the run's shape ([plan.list]), which is recorded once. Then
// the host takes the outputs from the buffer down ([plan.take]).
type plan struct {
	dev    compute.Device
	limits compute.Limits
	p      *program.Program
	o      unit.Options

	weights map[string][]piece
	caches  []*cache // as the program's caches

	rows, wanted int      // most rows of a run
	bufs         []matrix // as the program's buffers
	scratch      matrix   // for inputs of products that are not aligned
	up, down     compute.Buffer
	vectors      compute.Buffer // norms, biases, rotations

	vectorAt map[*float32]uint32
	ropes    []ropeTable
	tables   []table
	tilings  []tiling
	rowsAt   [2]section // by program.Rows: token, position, slot, index
	inputs   []section
	outputs  []section
	logits   section
	vocab    int // tokens below are in every table
}

// A piece is rows [lo, hi) of a matrix in one binding; row lo begins at byte
// shift of it. Pieces of an F32 matrix begin at multiples of 4, others at
// multiples of 2.
type piece struct {
	bind   compute.Binding
	shift  uint32
	lo, hi int
}

// A cache is the keys and values of one layer for all slots: position p of
// slot s is row s·rows + p mod rows, of words(width) words.
type cache struct {
	program.Cache
	kv   unit.KV
	rows int // of a slot
	k, v compute.Binding
}

// words is the number of 32-bit words of a cache row of n values.
func words(kv unit.KV, n int) int { return int(kv.Size(n)+3) / 4 }

// A matrix is a buffer of the program: rows of stride floats, a multiple of 4.
type matrix struct {
	bind   compute.Binding
	stride int
}

// A section is a part of up or down: rows of stride bytes.
type section struct {
	at     int64
	size   int64
	stride int
}

// A table is rows of an embedding table that the host gathers for the kernel:
// bytes [lo, lo+n) of the row of each token.
type table struct {
	op   program.Embed
	rows program.Rows
	lo   int
	n    int
	sec  section
}

// A tiling is how rows of a class are put together for attention: up to size
// neighbouring rows of one slot.
type tiling struct {
	rows program.Rows
	size int
	sec  section
}

// A ropeTable is the rotations of one set of frequencies; at is in pairs of
// floats.
type ropeTable struct {
	freqs     []float64
	magnitude float32
	at        uint32
}

// newPlan makes the buffers of a program. Weights are by name, caches as the
// program lists them; they stay the caller's.
func newPlan(dev compute.Device, p *program.Program, o unit.Options, weights map[string][]piece, caches []*cache) (*plan, error) {
	x := &plan{dev: dev, limits: dev.Limits(), p: p, o: o, weights: weights, caches: caches, vectorAt: map[*float32]uint32{}, vocab: math.MaxInt32}
	if err := x.make(); err != nil {
		return nil, errors.Join(err, x.close())
	}
	return x, nil
}

func (x *plan) make() error {
	if err := checkAttention(x.p); err != nil {
		return err
	}
	x.rows, x.wanted = x.o.Block, x.o.Block
	for _, b := range x.p.Buffers {
		most := int(x.limits.Binding / (4 * int64(align(b.Width, 4))))
		if most < 1 {
			return fmt.Errorf("a row of buffer %s has %d values, more than the device can bind at once (%d bytes)", b.Name, b.Width, x.limits.Binding)
		}
		if b.Rows == program.Wanted {
			x.wanted = min(x.wanted, most)
		} else {
			x.rows = min(x.rows, most)
		}
	}
	x.wanted = min(x.wanted, x.rows)
	x.rows = min(x.rows, x.limits.Groups[1])
	if err := x.makeVectors(); err != nil {
		return err
	}
	if err := x.makeSections(); err != nil {
		return err
	}
	for _, b := range x.p.Buffers {
		stride := align(b.Width, 4)
		bind, err := x.alloc(4*int64(stride)*int64(x.most(b.Rows)), compute.Local)
		if err != nil {
			return fmt.Errorf("buffer %s: %w", b.Name, err)
		}
		x.bufs = append(x.bufs, matrix{bind, stride})
	}
	if w := align(scratchWidth(x.p), 4); w > 0 {
		bind, err := x.alloc(4*int64(w)*int64(x.rows), compute.Local)
		if err != nil {
			return err
		}
		x.scratch = matrix{bind, w}
	}
	return nil
}

// most is how many rows of a class a run has at most.
func (x *plan) most(r program.Rows) int {
	if r == program.Wanted {
		return x.wanted
	}
	return x.rows
}

func (x *plan) alloc(size int64, m compute.Memory) (compute.Binding, error) {
	b, err := x.dev.Alloc(size, m)
	if err != nil {
		return compute.Binding{}, err
	}
	return compute.Binding{Buffer: b, Size: size}, nil
}

// makeVectors puts norms, biases and tables of rotations into one buffer.
func (x *plan) makeVectors() error {
	data := make([]byte, 0, 4096)
	add := func(v []float32) {
		if len(v) == 0 {
			return
		}
		if _, ok := x.vectorAt[&v[0]]; ok {
			return
		}
		x.vectorAt[&v[0]] = uint32(len(data) / 4)
		for _, f := range v {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(f))
		}
	}
	for _, op := range x.p.Ops {
		switch op := op.(type) {
		case program.RMSNorm:
			add(op.Weight)
		case program.MatMul:
			add(op.Bias)
		}
	}
	for _, op := range x.p.Ops {
		if op, ok := op.(program.Rope); ok {
			if _, ok := x.rope(op); !ok {
				data = append(data, make([]byte, align(len(data), 8)-len(data))...)
				x.ropes = append(x.ropes, ropeTable{op.Freqs, op.Magnitude, uint32(len(data) / 8)})
				data = appendRotations(data, op, x.o.Context)
			}
		}
	}
	data = append(data, make([]byte, 16)...) // never empty
	if int64(len(data)) > x.limits.Binding {
		return fmt.Errorf("norms and rotations for %d positions take %d bytes; the device binds at most %d: a smaller context is needed", x.o.Context, len(data), x.limits.Binding)
	}
	bind, err := x.alloc(int64(len(data)), compute.Local)
	if err != nil {
		return fmt.Errorf("norms and rotations: %w", err)
	}
	x.vectors = bind.Buffer
	return x.dev.Transfer(compute.Move{At: bind, Data: data})
}

// makeSections lays out up and down.
func (x *plan) makeSections() error {
	var up, down int64
	add := func(size *int64, stride, rows int) section {
		s := section{*size, int64(stride) * int64(rows), stride}
		*size = alignInt64(*size+max(s.size, 16), max(x.limits.Align, 16))
		return s
	}
	x.rowsAt = [2]section{add(&up, 16, x.rows), add(&up, 16, x.wanted)}
	for _, op := range x.p.Ops {
		switch op := op.(type) {
		case program.Embed:
			x.vocab = min(x.vocab, op.Table.Rows)
			if t := newTable(x.p, op); x.table(t) == nil {
				t.sec = add(&up, align(t.n, 4), x.most(t.rows))
				x.tables = append(x.tables, t)
			}
		case program.Attention:
			t := tiling{rows: x.class(op.Q), size: x.tile(op).rows}
			if x.tiling(t) < 0 {
				t.sec = add(&up, 8, x.most(t.rows))
				x.tilings = append(x.tilings, t)
			}
		}
	}
	if len(x.tilings) > maxTilings {
		return fmt.Errorf("attention of %d different shapes; the unit knows %d", len(x.tilings), maxTilings)
	}
	for _, in := range x.p.Inputs {
		x.inputs = append(x.inputs, add(&up, 4*in.View.Width, x.most(in.Rows)))
	}
	for _, out := range x.p.Outputs {
		x.outputs = append(x.outputs, add(&down, 4*out.View.Width, x.most(out.Rows)))
	}
	if x.p.Logits >= 0 {
		x.logits = add(&down, 4*x.p.Buffers[x.p.Logits].Width, x.wanted)
	}
	for _, s := range append(append([]section{x.logits}, x.inputs...), x.outputs...) {
		if s.size > x.limits.Binding {
			return fmt.Errorf("%d bytes of rows are handed over; the device binds at most %d: a smaller block is needed", s.size, x.limits.Binding)
		}
	}
	b, err := x.alloc(up, compute.Upload)
	if err != nil {
		return fmt.Errorf("inputs: %w", err)
	}
	x.up = b.Buffer
	if b, err = x.alloc(max(down, 16), compute.Download); err != nil {
		return fmt.Errorf("outputs: %w", err)
	}
	x.down = b.Buffer
	return nil
}

func newTable(p *program.Program, op program.Embed) table {
	block, size := op.Table.Type.BlockSize(), op.Table.Type.BlockBytes()
	return table{op: op, rows: p.Buffers[op.Out.Buf].Rows, lo: op.Col / block * size, n: op.Out.Width / block * size}
}

// table returns the gathered rows that are those of t, if there are.
func (x *plan) table(t table) *table {
	for i := range x.tables {
		o := &x.tables[i]
		if o.rows == t.rows && o.lo == t.lo && o.n == t.n && &o.op.Table.Data[0] == &t.op.Table.Data[0] {
			return o
		}
	}
	return nil
}

// tiling returns the index of a tiling, or -1.
func (x *plan) tiling(t tiling) int {
	for i, o := range x.tilings {
		if o.rows == t.rows && o.size == t.size {
			return i
		}
	}
	return -1
}

func (x *plan) rope(op program.Rope) (at uint32, ok bool) {
	for _, t := range x.ropes {
		if t.magnitude == op.Magnitude && equalFloats(t.freqs, op.Freqs) {
			return t.at, true
		}
	}
	return 0, false
}

func equalFloats(a, b []float64) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// appendRotations appends the cosines and sines of the positions 0..255 and,
// times the magnitude, those of the multiples of 256. A position is turned by
// one of each; see rope.comp.
func appendRotations(data []byte, op program.Rope, context int) []byte {
	add := func(pos, freq, magnitude float64) {
		sin, cos := math.Sincos(pos * freq)
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(cos*magnitude)))
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(sin*magnitude)))
	}
	for pos := range 256 {
		for _, f := range op.Freqs {
			add(float64(pos), f, 1)
		}
	}
	for pos := 0; pos < context; pos += 256 {
		for _, f := range op.Freqs {
			add(float64(pos), f, float64(op.Magnitude))
		}
	}
	return data
}

func (x *plan) class(v program.View) program.Rows { return x.p.Buffers[v.Buf].Rows }

// bytes is the size of the plan's buffers.
func (x *plan) bytes() int64 {
	n := x.up.Size() + x.down.Size() + x.vectors.Size()
	for _, b := range append([]matrix{x.scratch}, x.bufs...) {
		n += b.bind.Size
	}
	return n
}

func (x *plan) close() error {
	var err error
	all := []compute.Buffer{x.up, x.down, x.vectors, x.scratch.bind.Buffer}
	for _, b := range x.bufs {
		all = append(all, b.bind.Buffer)
	}
	for _, b := range all {
		if b != nil {
			err = errors.Join(err, b.Close())
		}
	}
	x.up, x.down, x.vectors, x.scratch, x.bufs = nil, nil, nil, matrix{}, nil
	return err
}

func align(n, to int) int { return (n + to - 1) / to * to }

func alignInt64(n, to int64) int64 { return (n + to - 1) / to * to }

// floats is a section's memory as values.
func floats(b []byte) []float32 {
	if len(b) == 0 {
		return nil
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(&b[0])), len(b)/4)
}
