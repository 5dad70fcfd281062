package kernel

// Head returns the first bytes, at most n, of what a product of outputs from row on reads.
func (m *Matrix) Head(row, n int) []byte {
	b := m.data[min(row*m.rowBytes, len(m.data)):]
	if m.layout == Panels {
		b = m.panels[min(row/lanes*m.panel, len(m.panels)):]
	}
	return b[:min(n, len(b))]
}

// Prefetch asks for memory that will be read soon and does not wait for it. It does nothing where there is no
// instruction for it.
func (s *Set) Prefetch(b []byte) {
	if len(b) > 0 {
		s.prefetch(b)
	}
}
