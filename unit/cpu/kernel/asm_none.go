//go:build noasm || !amd64

package kernel

// assembly returns the instruction sets that have assembly here.
func assembly() []ISA { return nil }

func (s *Set) tile(dst []float32, stride int, m *Matrix, panels []byte, n int, in *Input, row, t int) {
	tileGeneric(dst, stride, m, panels, n, in, row, t)
}

func (s *Set) quantizeRow(tile []byte, t, slot int, x []float32) { quantizeRow(tile, t, slot, x) }
