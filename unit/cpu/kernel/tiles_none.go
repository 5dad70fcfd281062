//go:build !amd64 || noasm

package kernel

// mulTiles does nothing: there are no tile registers.
func (s *Set) mulTiles([]float32, int, *Matrix, []byte, int, *Input) int { return 0 }

func (s *Set) panelRun() int { return 1 }
