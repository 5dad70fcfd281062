package kernel

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/tandemrun/tandem/quant"
)

// Layout is how a matrix's weights lie in memory.
type Layout uint8

const (
	// FileRows are the bytes as they are in the file, row after row. A product repacks 16 rows at a time on the way.
	FileRows Layout = iota
	// Panels are 16 rows each, repacked once by Pack.
	Panels
)

func (l Layout) String() string {
	if l == Panels {
		return "panels"
	}
	return "file rows"
}

// A Matrix is a weight matrix prepared for products: Rows outputs from Cols inputs.
type Matrix struct {
	Rows, Cols int
	Type       quant.Type

	layout   Layout
	kind     kind
	native   bool   // the type has a panel format of its own
	data     []byte // the file's rows
	rowBytes int
	panels   []byte
	blocks   int // panel blocks along a row
	panel    int // bytes of a panel
}

// Matrix prepares rows x cols weights of type t for products. data holds the rows as a file has them; it is not
// copied. With FileRows the matrix is ready and keeps data; with Panels memory is allocated, and the matrix is ready
// when Pack has covered all rows, which also is when data is no longer needed. Types without a panel format keep
// the file's layout (see [Matrix.Layout]).
func (s *Set) Matrix(t quant.Type, rows, cols int, data []byte, layout Layout) (*Matrix, error) {
	return s.MatrixIn(t, rows, cols, data, layout, nil)
}

// MatrixIn is Matrix with memory for the panels from the caller: at least PanelBytes, starting at a multiple of 64, or
// nil to allocate it.
func (s *Set) MatrixIn(t quant.Type, rows, cols int, data []byte, layout Layout, memory []byte) (*Matrix, error) {
	switch {
	case !t.Supported():
		return nil, fmt.Errorf("weights of type %v: no conversion is known", t)
	case rows <= 0 || cols <= 0:
		return nil, fmt.Errorf("a weight matrix of %d rows and %d columns", rows, cols)
	}
	rowBytes, err := t.RowBytes(cols)
	if err != nil {
		return nil, err
	}
	if int64(rows) > math.MaxInt64/64/rowBytes || int64(len(data)) != int64(rows)*rowBytes {
		return nil, fmt.Errorf("%d x %d weights of type %v are given in %d bytes: they take %d a row", rows, cols, t, len(data), rowBytes)
	}
	m := &Matrix{Rows: rows, Cols: cols, Type: t, data: data, rowBytes: int(rowBytes)}
	m.kind, m.native = kindOf(t)
	f := &formats[m.kind]
	m.blocks = cols / f.columns
	m.panel = m.blocks * f.bytes
	if layout == Panels && m.native {
		m.layout = Panels
		size := int((PanelBytes(t, rows, cols)))
		if memory == nil {
			memory = aligned(size)
		}
		if len(memory) < size || uintptr(unsafe.Pointer(&memory[0]))%64 != 0 {
			return nil, fmt.Errorf("memory for the panels of %d x %d weights of type %v: %d bytes aligned to 64 are needed", rows, cols, t, size)
		}
		m.panels = memory[:size:size]
	}
	return m, nil
}

// PanelBytes returns the memory that the panels of a matrix take, 0 if its type has no panel format.
func PanelBytes(t quant.Type, rows, cols int) int64 {
	k, native := kindOf(t)
	if !native {
		return 0
	}
	f := &formats[k]
	return int64((rows+lanes-1)/lanes) * int64(cols/f.columns) * int64(f.bytes)
}

// aligned returns n bytes that start at a multiple of 64.
func aligned(n int) []byte {
	b := make([]byte, n+63)
	skip := -int(uintptr(unsafe.Pointer(&b[0]))) & 63
	return b[skip : skip+n : skip+n]
}

// Layout returns how the weights lie in memory.
func (m *Matrix) Layout() Layout { return m.layout }

// Align returns what the bounds of a row range given to Mul or Pack must be multiples of, except the last row.
func (m *Matrix) Align() int {
	if m.layout == Panels {
		return lanes
	}
	return 1
}

// Bytes returns the bytes of weights that one product reads.
func (m *Matrix) Bytes() int64 {
	if m.layout == Panels {
		return int64(len(m.panels))
	}
	return int64(len(m.data))
}

// WantsInt8 reports whether products read the quantised form of the activations; if not, QuantizeInput is not needed.
func (m *Matrix) WantsInt8() bool { return formats[m.kind].int8 }

// Release drops the reference to the file's bytes of a packed matrix.
func (m *Matrix) Release() {
	if m.layout == Panels {
		m.data = nil
	}
}

// checkRange panics where a range of rows is not one that Mul and Pack allow.
func (m *Matrix) checkRange(lo, hi int) {
	if lo < 0 || lo > hi || hi > m.Rows || lo%m.Align() != 0 || hi%m.Align() != 0 && hi != m.Rows {
		panic(fmt.Sprintf("kernel: rows [%d, %d) of %d, which must be multiples of %d", lo, hi, m.Rows, m.Align()))
	}
}
