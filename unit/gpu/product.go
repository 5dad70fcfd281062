package gpu

import (
	"github.com/tandemrun/tandem/program"
	"github.com/tandemrun/tandem/quant"
	"github.com/tandemrun/tandem/unit/gpu/compute"
	"github.com/tandemrun/tandem/unit/gpu/shader"
)

const (
	// fewRows is the most rows that matvec.comp takes; for more, the weights
	// are converted once a tile of 32 by matmul.comp.
	fewRows = 8
	// laneRows is how many outputs a lane of matvec.comp has.
	laneRows = 4
	// tileSize is how many outputs and rows a tile of matmul.comp has.
	tileSize = 32
)

// kernelFor reports whether the kernels know a type of weights: all that
// package quant converts.
func kernelFor(t quant.Type) bool { return t.Supported() }

// matmul writes a product: one dispatch for each piece of the weights, or more
// if the device takes no more workgroups at once. Both kernels give the same
// bits, so the choice between them is free.
func (l *lister) matmul(op program.MatMul) {
	rows := l.class(op.Out)
	n := l.count(rows)
	if n == 0 {
		return
	}
	in, reads := l.aligned(op.In)
	out := l.view(op.Out)
	rowBytes := len(op.W.Data) / op.W.Rows
	kernel, per, tokens := variant("matmul", uint32(op.W.Type)), tileSize, tileSize
	if n <= fewRows {
		lanes, blocks := 8, (op.W.Cols+31)/32
		for lanes < 64 && lanes < blocks {
			lanes *= 2
		}
		tokens = []int{1, 1, 2, 4}[min(n, 3)]
		per = 64 / lanes * laneRows
		kernel = variant("matvec", uint32(op.W.Type), uint32(lanes), uint32(tokens))
	}
	if l.limits.Lanes > 0 {
		tokens = []int{1, 1, 2, 4, 4, 8}[min(n, 5)]
		// Outputs of an invocation: many where that leaves work for some cores.
		outputs := 4
		for outputs > 1 && (n < outputs || op.W.Rows < 256*outputs) {
			outputs /= 2
		}
		per = shader.Invocations * outputs
		kernel = variant("matrow", uint32(op.W.Type), uint32(tokens), uint32(l.limits.Lanes), uint32(outputs))
	}
	for _, p := range l.weights[op.W.Name] {
		step := per * l.limits.Groups[0]
		for lo := p.lo; lo < p.hi; lo += step {
			m, bias := min(step, p.hi-lo), none
			if op.Bias != nil {
				bias = l.vectorAt[&op.Bias[0]] + uint32(lo)
			}
			l.add(compute.Dispatch{
				Variant: kernel, Op: op.Name(), Rows: rows.String(),
				Bytes: int64(m) * int64(rowBytes), Ops: 2 * int64(m) * int64(op.W.Cols) * int64(n),
				Bind: []compute.Binding{p.bind, in.bind, out.bind, l.vectorBinding()},
				Push: push(p.shift+uint32((lo-p.lo)*rowBytes), rowBytes, op.W.Cols, m, n, in.col/4, in.stride/4, out.col+lo, out.stride, bias),
			}, (m+per-1)/per, (n+tokens-1)/tokens, reads, views(op.Out.Cols(lo, m)))
		}
	}
}

// aligned is a view as the product kernels need it: its columns begin at a
// multiple of 4. Others are copied to where they do.
func (l *lister) aligned(v program.View) (at, []program.View) {
	from := l.view(v)
	if from.col%4 == 0 {
		return from, views(v)
	}
	scratch := program.View{Buf: scratchBuf, Width: 1}
	to := at{l.scratch.bind, 0, l.scratch.stride}
	l.copyRows("handoff", l.class(v), from, to, v.Width, views(v), views(scratch))
	return to, views(scratch)
}

// scratchWidth is how many values a row of [aligned] copies has at most.
func scratchWidth(p *program.Program) int {
	n := 0
	for _, op := range p.Ops {
		if op, ok := op.(program.MatMul); ok && op.In.Col%4 != 0 {
			n = max(n, op.In.Width)
		}
	}
	return n
}
