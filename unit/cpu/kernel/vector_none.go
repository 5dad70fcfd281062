//go:build noasm || !(amd64 || arm64)

package kernel

func (s *Set) quantizeRow(tile []byte, t, slot int, x []float32) { quantizeRow(tile, t, slot, x) }

// These return how many elements they have done.

func (s *Set) scaleMul(dst, x, w []float32, f float32) int               { return 0 }
func (s *Set) scale(dst, x []float32, f float32) int                     { return 0 }
func (s *Set) add(dst, a, b []float32) int                               { return 0 }
func (s *Set) toHalf(dst []uint16, src []float32) int                    { return 0 }
func (s *Set) fromHalf(dst []float32, src []uint16) int                  { return 0 }
func (s *Set) geluMul(dst, gate, up []float32) int                       { return 0 }
func (s *Set) siluMul(dst, gate, up []float32) int                       { return 0 }
func (s *Set) softcap(x []float32, limit float32) int                    { return 0 }
func (s *Set) sumSquares(x []float32, sum *[lanes]float32) int           { return 0 }
func (s *Set) maximum(x []float32, most *[lanes]float32) int             { return 0 }
func (s *Set) expSum(x []float32, most float32, sum *[lanes]float32) int { return 0 }
func (s *Set) ropeHalves(a, b, cos, sin []float32) int                   { return 0 }
func (s *Set) ropePairs(x, cos, sin []float32) int                       { return 0 }
func (s *Set) readBytes(b []byte) int                                    { return 0 }

func (s *Set) multiplyBytes() int64 { return multiplyGeneric() }

func (s *Set) packWords(dst, src []byte, m *Matrix, blocks int, w run) int { return 0 }

func (s *Set) packHalves(dst, src []byte, m *Matrix) int { return 0 }

func (s *Set) packScales(dst, src []byte, m *Matrix) bool { return false }

func (s *Set) dotRows(scores, q []float32, k []float32, stride int) {
	dotRowsGeneric(scores, q, k, stride)
}

func (s *Set) addRows(dst, w []float32, v []float32, stride int) { addRowsGeneric(dst, w, v, stride) }

func (s *Set) dotRowsF16(scores, q []float32, k []uint16, stride int) {
	dotRowsF16Generic(scores, q, k, stride)
}

func (s *Set) addRowsF16(dst, w []float32, v []uint16, stride int) {
	addRowsF16Generic(dst, w, v, stride)
}

func (s *Set) q8Row(dst []byte, src []float32) { q8RowGeneric(dst, src) }

func (s *Set) q8Values(dst []float32, src []byte) { q8ValuesGeneric(dst, src) }
