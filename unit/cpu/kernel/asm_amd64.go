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
		if x.HasAMXTile && x.HasAMXInt8 && allowTiles() {
			have = append(have, AMX)
		}
	}
	return have
}

// prefetchAhead is how far ahead a product of few rows prefetches weights with
// AVX-512. The prefetchers of an Intel core leave it waiting: on two cores of a
// Sapphire Rapids, whose memory ceiling was 24 GB/s, Q4_0 ran at 16 GB/s without,
// 21 to 24 with 4 KiB, and 22 to 25 with 8 KiB; Q6_K at 13, 25 and 25. Those of a
// Zen 4 do not, and prefetching made it slower.
func prefetchAhead() int {
	if b, d, c := vendor(); b == 0x756e6547 && d == 0x49656e69 && c == 0x6c65746e { // "GenuineIntel"
		return 8 << 10
	}
	return 0
}

func (s *Set) tile(dst []float32, stride int, m *Matrix, panels []byte, n int, in *Input, row, t int) {
	// Assembly knows nothing of bounds.
	_, _ = dst[(t-1)*stride+n*lanes-1], panels[n*m.panel-1]
	switch s.isa {
	case AVX512:
		ahead := s.ahead
		if m.layout != Panels {
			ahead = 0 // nothing follows this panel
		}
		tileAVX512(dst, stride, m, panels, n, in, row, t, ahead)
	case AVX2:
		tileAVX2(dst, stride, m, panels, n, in, row, t)
	default:
		tileGeneric(dst, stride, m, panels, n, in, row, t)
	}
}

//go:noinline
func tileAVX512(dst []float32, stride int, m *Matrix, panels []byte, n int, in *Input, row, t, ahead int) {
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
		mulQ4_0AVX512(&dst[0], stride, &panels[0], n, m.blocks, records, t, ahead)
	case kindQ4_1:
		mulQ4_1AVX512(&dst[0], stride, &panels[0], n, m.blocks, records, t, ahead)
	case kindQ5_0:
		mulQ5_0AVX512(&dst[0], stride, &panels[0], n, m.blocks, records, t, ahead)
	case kindQ5_1:
		mulQ5_1AVX512(&dst[0], stride, &panels[0], n, m.blocks, records, t, ahead)
	case kindQ8_0:
		mulQ8_0AVX512(&dst[0], stride, &panels[0], n, m.blocks, records, t, ahead)
	case kindQ4_K:
		mulQ4_KAVX512(&dst[0], stride, &panels[0], n, m.blocks, records, t, ahead)
	case kindQ5_K:
		mulQ5_KAVX512(&dst[0], stride, &panels[0], n, m.blocks, records, t, ahead)
	case kindQ6_K:
		mulQ6_KAVX512(&dst[0], stride, &panels[0], n, m.blocks, records, t, ahead)
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

//go:noinline
func (s *Set) prefetch(b []byte) {
	if s.isa != Generic {
		prefetchLines(&b[0], (len(b)+63)/64)
	}
}
