package gpu

import (
	"errors"
	"fmt"

	"github.com/tandemrun/tandem/program"
	"github.com/tandemrun/tandem/unit/gpu/compute"
)

// upload copies a matrix to the device, in the layout of the file, as pieces
// that can be bound each. The pieces' buffers are the caller's, also after an
// error.
func upload(dev compute.Device, w program.Weight) ([]piece, error) {
	rowBytes := len(w.Data) / w.Rows
	step := int(dev.Limits().Binding-16) / rowBytes
	if step < 1 {
		return nil, fmt.Errorf("a row of tensor %s has %d bytes, more than the device binds at once", w.Name, rowBytes)
	}
	var out []piece
	for lo := 0; lo < w.Rows; lo += step {
		hi := min(lo+step, w.Rows)
		data := w.Data[lo*rowBytes : hi*rowBytes]
		b, err := dev.Alloc(alignInt64(int64(len(data)), 16), compute.Local)
		if err != nil {
			return out, fmt.Errorf("tensor %s: %w", w.Name, err)
		}
		out = append(out, piece{compute.Binding{Buffer: b, Size: b.Size()}, 0, lo, hi})
		if err := dev.Transfer(compute.Move{At: compute.Binding{Buffer: b, Size: int64(len(data))}, Data: data}); err != nil {
			return out, fmt.Errorf("tensor %s: %w", w.Name, err)
		}
	}
	return out, nil
}

func closePieces(pieces []piece) error {
	var err error
	for _, p := range pieces {
		err = errors.Join(err, p.bind.Buffer.Close())
	}
	return err
}
