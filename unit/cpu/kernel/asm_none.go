//go:build noasm || !(amd64 || arm64)

package kernel

// assembly returns the instruction sets that have assembly here.
func assembly() []ISA { return nil }

func prefetchAhead() int { return 0 }

func (s *Set) tile(dst []float32, stride int, m *Matrix, panels []byte, n int, in *Input, row, t int) {
	tileGeneric(dst, stride, m, panels, n, in, row, t)
}

func (s *Set) prefetch([]byte) {}
