//go:build noasm || !amd64

package kernel

func (s *Set) dotTile(scores []float32, sstride int, q []float32, qstride, queries, n int, k []float32, kstride, rows int) int {
	return 0
}

func (s *Set) addTile(dst []float32, dstride, queries, n int, w []float32, wstride int, v []float32, vstride, rows int) int {
	return 0
}

func (s *Set) dotTileF16(scores []float32, sstride int, q []float32, qstride, queries, n int, k []uint16, kstride, rows int) int {
	return 0
}

func (s *Set) addTileF16(dst []float32, dstride, queries, n int, w []float32, wstride int, v []uint16, vstride, rows int) int {
	return 0
}
