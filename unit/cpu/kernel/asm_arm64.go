//go:build !noasm

package kernel

import "golang.org/x/sys/cpu"

// assembly returns the instruction sets that this CPU has.
func assembly() []ISA {
	if cpu.ARM64.HasASIMDDP {
		return []ISA{NEON, NEONDot}
	}
	return []ISA{NEON}
}

// prefetchAhead is 0: prefetching in products has not been measured here.
func prefetchAhead() int { return 0 }

func (s *Set) tile(dst []float32, stride int, m *Matrix, panels []byte, n int, in *Input, row, t int) {
	// Assembly knows nothing of bounds.
	_, _ = dst[(t-1)*stride+n*lanes-1], panels[n*m.panel-1]
	switch s.isa {
	case NEON:
		tileNEON(dst, stride, m, panels, n, in, row, t)
	case NEONDot:
		tileNEONDot(dst, stride, m, panels, n, in, row, t)
	default:
		tileGeneric(dst, stride, m, panels, n, in, row, t)
	}
}

//go:noinline
func tileNEONFloat(dst []float32, stride int, m *Matrix, panels []byte, n int, in *Input, row, t int) {
	x := &in.x[row*in.stride]
	switch m.kind {
	case kindF32:
		mulF32NEON(&dst[0], stride, &panels[0], n, m.Cols, x, in.stride, t)
	case kindF16:
		mulF16NEON(&dst[0], stride, &panels[0], n, m.Cols, x, in.stride, t)
	case kindBF16:
		mulBF16NEON(&dst[0], stride, &panels[0], n, m.Cols, x, in.stride, t)
	}
}

//go:noinline
func tileNEON(dst []float32, stride int, m *Matrix, panels []byte, n int, in *Input, row, t int) {
	if !formats[m.kind].int8 {
		tileNEONFloat(dst, stride, m, panels, n, in, row, t)
		return
	}
	records := &in.tile(row, t)[0]
	switch m.kind {
	case kindQ4_0:
		mulQ4_0NEON(&dst[0], stride, &panels[0], n, m.blocks, records, t)
	case kindQ4_1:
		mulQ4_1NEON(&dst[0], stride, &panels[0], n, m.blocks, records, t)
	case kindQ5_0:
		mulQ5_0NEON(&dst[0], stride, &panels[0], n, m.blocks, records, t)
	case kindQ5_1:
		mulQ5_1NEON(&dst[0], stride, &panels[0], n, m.blocks, records, t)
	case kindQ8_0:
		mulQ8_0NEON(&dst[0], stride, &panels[0], n, m.blocks, records, t)
	case kindQ4_K:
		mulQ4_KNEON(&dst[0], stride, &panels[0], n, m.blocks, records, t)
	case kindQ5_K:
		mulQ5_KNEON(&dst[0], stride, &panels[0], n, m.blocks, records, t)
	case kindQ6_K:
		mulQ6_KNEON(&dst[0], stride, &panels[0], n, m.blocks, records, t)
	}
}

//go:noinline
func tileNEONDot(dst []float32, stride int, m *Matrix, panels []byte, n int, in *Input, row, t int) {
	if !formats[m.kind].int8 {
		tileNEONFloat(dst, stride, m, panels, n, in, row, t)
		return
	}
	records := &in.tile(row, t)[0]
	switch m.kind {
	case kindQ4_0:
		mulQ4_0NEONDot(&dst[0], stride, &panels[0], n, m.blocks, records, t)
	case kindQ4_1:
		mulQ4_1NEONDot(&dst[0], stride, &panels[0], n, m.blocks, records, t)
	case kindQ5_0:
		mulQ5_0NEONDot(&dst[0], stride, &panels[0], n, m.blocks, records, t)
	case kindQ5_1:
		mulQ5_1NEONDot(&dst[0], stride, &panels[0], n, m.blocks, records, t)
	case kindQ8_0:
		mulQ8_0NEONDot(&dst[0], stride, &panels[0], n, m.blocks, records, t)
	case kindQ4_K:
		mulQ4_KNEONDot(&dst[0], stride, &panels[0], n, m.blocks, records, t)
	case kindQ5_K:
		mulQ5_KNEONDot(&dst[0], stride, &panels[0], n, m.blocks, records, t)
	case kindQ6_K:
		mulQ6_KNEONDot(&dst[0], stride, &panels[0], n, m.blocks, records, t)
	}
}

func (s *Set) prefetch([]byte) {}
