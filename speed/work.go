package speed

import "github.com/tandemrun/tandem/program"

// Operations is how many operations the products with weights need for a block
// of rows of which some are wanted, a multiplication and an addition being two.
// Products that programs do for the wanted rows only are counted for these.
// Attention and everything else is not counted: it is not 8-bit arithmetic.
func Operations(p *program.Program, rows, wanted int) int64 {
	var n int64
	for _, op := range p.Ops {
		x, ok := op.(program.MatMul)
		if !ok {
			continue
		}
		r := rows
		if p.Buffers[x.In.Buf].Rows == program.Wanted {
			r = wanted
		}
		n += 2 * int64(r) * int64(x.W.Rows) * int64(x.W.Cols)
	}
	return n
}
