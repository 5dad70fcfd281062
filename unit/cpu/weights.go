package cpu

import (
	"context"
	"fmt"

	"github.com/tandemrun/tandem/machine"
	"github.com/tandemrun/tandem/unit/cpu/kernel"
)

// packPiece is how many bytes of a matrix are packed before its pages of the
// file are released and the context is looked at.
const packPiece = 16 << 20

// loadWeights prepares the matrices of the chunk's program.
func (c *Chunk) loadWeights(ctx context.Context) error {
	weights := c.p.Weights(false)
	layout := kernel.Panels
	if c.o.FileLayout {
		layout = kernel.FileRows
	}
	var size int64
	for _, w := range weights {
		if layout == kernel.Panels {
			size += roundUp(kernel.PanelBytes(w.Type, w.Rows, w.Cols))
		}
	}
	var err error
	if c.panels, err = machine.NewPages(size); err != nil {
		return fmt.Errorf("unit %s: %d bytes for the weights of layers %d..%d: %w", c.unit.Name(), size, c.p.First, c.p.Last-1, err)
	}
	free := c.panels.Data
	for _, w := range weights {
		n := kernel.PanelBytes(w.Type, w.Rows, w.Cols)
		l, memory := layout, []byte(nil)
		if n == 0 {
			l = kernel.FileRows // a type the kernels take only as it is
		}
		if l == kernel.Panels {
			memory, free = free[:n:n], free[roundUp(n):]
		}
		m, err := c.unit.set.MatrixIn(w.Type, w.Rows, w.Cols, w.Data, l, memory)
		if err != nil {
			return fmt.Errorf("unit %s: tensor %s: %w", c.unit.Name(), w.Name, err)
		}
		if err := c.pack(ctx, m, w.Data); err != nil {
			return err
		}
		c.matrices[w.Name] = m
		c.bytes.Weights += m.Bytes()
	}
	return nil
}

// pack fills a matrix's panels, piece by piece, with all workers.
func (c *Chunk) pack(ctx context.Context, m *kernel.Matrix, data []byte) error {
	rowBytes := len(data) / m.Rows
	rows := max(1, packPiece/rowBytes/m.Align()) * m.Align() * c.unit.pool.n
	for lo := 0; lo < m.Rows; lo += rows {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		hi := min(lo+rows, m.Rows)
		piece := data[lo*rowBytes : hi*rowBytes]
		if m.Layout() == kernel.Panels {
			c.unit.pool.run(func(w int) {
				from, to := share(hi-lo, m.Align(), w, c.unit.pool.n)
				c.unit.set.Pack(m, lo+from, lo+to)
			})
			if c.o.Release != nil {
				c.o.Release(piece)
			}
		}
		if c.o.Progress != nil {
			c.o.Progress(int64(len(piece)))
		}
	}
	m.Release()
	return nil
}

// roundUp is n up to the alignment of panels.
func roundUp(n int64) int64 { return (n + 63) &^ 63 }
