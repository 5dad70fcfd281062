//go:build !noasm

package kernel

import "golang.org/x/sys/cpu"

//go:generate go -C gen run . -o ..

// assembly returns the instruction sets that this CPU has.
func assembly() (have []ISA) {
	x := &cpu.X86
	// F16C has no flag of its own here, and every CPU with AVX2 has it.
	if x.HasAVX2 && x.HasFMA {
		have = append(have, AVX2)
	}
	if x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL && x.HasAVX512VNNI && len(have) > 0 {
		have = append(have, AVX512)
	}
	return have
}

func (s *Set) tile(dst []float32, stride int, m *Matrix, panels []byte, n int, in *Input, row, t int) {
	// Assembly knows nothing of bounds.
	_, _ = dst[(t-1)*stride+n*lanes-1], panels[n*m.panel-1]
	switch s.isa {
	case AVX512:
		tileAVX512(dst, stride, m, panels, n, in, row, t)
	case AVX2:
		tileAVX2(dst, stride, m, panels, n, in, row, t)
	default:
		tileGeneric(dst, stride, m, panels, n, in, row, t)
	}
}

//go:noinline
func tileAVX512(dst []float32, stride int, m *Matrix, panels []byte, n int, in *Input, row, t int) {
	if !formats[m.kind].int8 {
		x := &in.x[row*in.stride]
		switch m.kind {
		case kindF32:
			mulF32AVX512(&dst[0], stride, &panels[0], n, m.Cols, x, in.stride, t)
		case kindF16:
			mulF16AVX512(&dst[0], stride, &panels[0], n, m.Cols, x, in.stride, t)
		case kindBF16:
			mulBF16AVX512(&dst[0], stride, &panels[0], n, m.Cols, x, in.stride, t)
		}
		return
	}
	records := &in.tile(row, t)[0]
	switch m.kind {
	case kindQ4_0:
		mulQ4_0AVX512(&dst[0], stride, &panels[0], n, m.blocks, records, t)
	case kindQ4_1:
		mulQ4_1AVX512(&dst[0], stride, &panels[0], n, m.blocks, records, t)
	case kindQ5_0:
		mulQ5_0AVX512(&dst[0], stride, &panels[0], n, m.blocks, records, t)
	case kindQ5_1:
		mulQ5_1AVX512(&dst[0], stride, &panels[0], n, m.blocks, records, t)
	case kindQ8_0:
		mulQ8_0AVX512(&dst[0], stride, &panels[0], n, m.blocks, records, t)
	case kindQ4_K:
		mulQ4_KAVX512(&dst[0], stride, &panels[0], n, m.blocks, records, t)
	case kindQ5_K:
		mulQ5_KAVX512(&dst[0], stride, &panels[0], n, m.blocks, records, t)
	case kindQ6_K:
		mulQ6_KAVX512(&dst[0], stride, &panels[0], n, m.blocks, records, t)
	}
}

//go:noinline
func tileAVX2(dst []float32, stride int, m *Matrix, panels []byte, n int, in *Input, row, t int) {
	if !formats[m.kind].int8 {
		x := &in.x[row*in.stride]
		switch m.kind {
		case kindF32:
			mulF32AVX2(&dst[0], stride, &panels[0], n, m.Cols, x, in.stride, t)
		case kindF16:
			mulF16AVX2(&dst[0], stride, &panels[0], n, m.Cols, x, in.stride, t)
		case kindBF16:
			mulBF16AVX2(&dst[0], stride, &panels[0], n, m.Cols, x, in.stride, t)
		}
		return
	}
	records := &in.tile(row, t)[0]
	switch m.kind {
	case kindQ4_0:
		mulQ4_0AVX2(&dst[0], stride, &panels[0], n, m.blocks, records, t)
	case kindQ4_1:
		mulQ4_1AVX2(&dst[0], stride, &panels[0], n, m.blocks, records, t)
	case kindQ5_0:
		mulQ5_0AVX2(&dst[0], stride, &panels[0], n, m.blocks, records, t)
	case kindQ5_1:
		mulQ5_1AVX2(&dst[0], stride, &panels[0], n, m.blocks, records, t)
	case kindQ8_0:
		mulQ8_0AVX2(&dst[0], stride, &panels[0], n, m.blocks, records, t)
	case kindQ4_K:
		mulQ4_KAVX2(&dst[0], stride, &panels[0], n, m.blocks, records, t)
	case kindQ5_K:
		mulQ5_KAVX2(&dst[0], stride, &panels[0], n, m.blocks, records, t)
	case kindQ6_K:
		mulQ6_KAVX2(&dst[0], stride, &panels[0], n, m.blocks, records, t)
	}
}
