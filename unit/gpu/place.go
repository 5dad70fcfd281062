package gpu

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"unsafe"

	"github.com/tandemrun/tandem/program"
	"github.com/tandemrun/tandem/unit"
	"github.com/tandemrun/tandem/unit/gpu/compute"
)

// arenaSize is the least that is allocated for several small things together:
// drivers allow only some thousand allocations.
const arenaSize = 64 << 20

// arena gives out parts of large buffers. What it gave stays until close.
type arena struct {
	dev     compute.Device
	buffers []compute.Buffer
	used    int64 // of the last buffer
}

// take returns size bytes. left is how much will be taken after them, at most.
func (a *arena) take(size, left int64) (compute.Binding, error) {
	l := a.dev.Limits()
	size = alignInt64(size, max(l.Align, 16))
	if size > l.Binding {
		return compute.Binding{}, fmt.Errorf("%d bytes at once; the device binds at most %d", size, l.Binding)
	}
	if n := len(a.buffers); n == 0 || a.used+size > a.buffers[n-1].Size() {
		b, err := a.dev.Alloc(min(max(size, min(size+left, arenaSize)), l.Allocation), compute.Local)
		if err != nil {
			return compute.Binding{}, err
		}
		a.buffers, a.used = append(a.buffers, b), 0
	}
	b := compute.Binding{Buffer: a.buffers[len(a.buffers)-1], Offset: a.used, Size: size}
	a.used += size
	return b, nil
}

func (a *arena) close() error {
	var err error
	for _, b := range a.buffers {
		err = errors.Join(err, b.Close())
	}
	a.buffers, a.used = nil, 0
	return err
}

// rowsAtOnce is how many rows of a matrix one binding shows.
func rowsAtOnce(w program.Weight, l compute.Limits) (int, error) {
	rowBytes := int64(len(w.Data) / w.Rows)
	// A piece may begin anywhere behind an aligned offset.
	n := (l.Binding - max(l.Align, 16)) / rowBytes
	if n < 1 {
		return 0, fmt.Errorf("tensor %s: a row has %d bytes; the device binds at most %d at once", w.Name, rowBytes, l.Binding)
	}
	return int(min(n, int64(w.Rows))), nil
}

// placement is the weights of a chunk on the device.
type placement struct {
	pieces          map[string][]piece
	arena           arena
	imported        []compute.Buffer
	copied, inPlace int64 // bytes
	refused         error // why memory was not imported
}

// place puts the matrices of a program on the device.
func place(ctx context.Context, dev compute.Device, p *program.Program, o unit.Options) (*placement, error) {
	x := &placement{pieces: map[string][]piece{}, arena: arena{dev: dev}}
	weights := p.Weights(false)
	if err := x.all(ctx, dev, weights, o); err != nil {
		return nil, errors.Join(err, x.close())
	}
	return x, nil
}

func (x *placement) all(ctx context.Context, dev compute.Device, weights []program.Weight, o unit.Options) error {
	for _, w := range weights {
		if !kernelFor(w.Type) {
			return fmt.Errorf("tensor %s has type %s, for which the unit has no kernel", w.Name, w.Type)
		}
	}
	if x.importable(dev) {
		weights = x.importAll(dev, weights, o)
	}
	var left int64
	for _, w := range weights {
		left += int64(len(w.Data))
	}
	for _, w := range weights {
		if err := ctx.Err(); err != nil {
			return err
		}
		left -= int64(len(w.Data))
		if err := x.copy(dev, w, left); err != nil {
			return fmt.Errorf("tensor %s, %d bytes: %w", w.Name, len(w.Data), err)
		}
		if o.Release != nil {
			o.Release(w.Data)
		}
		if o.Progress != nil {
			o.Progress(int64(len(w.Data)))
		}
	}
	return nil
}

// copy copies a matrix to the device in pieces that can be bound.
func (x *placement) copy(dev compute.Device, w program.Weight, left int64) error {
	rows, err := rowsAtOnce(w, dev.Limits())
	if err != nil {
		return err
	}
	rowBytes := len(w.Data) / w.Rows
	for lo := 0; lo < w.Rows; lo += rows {
		hi := min(w.Rows, lo+rows)
		data := w.Data[lo*rowBytes : hi*rowBytes]
		at, err := x.arena.take(int64(len(data)), left+int64(len(w.Data)-hi*rowBytes))
		if err != nil {
			return err
		}
		x.pieces[w.Name] = append(x.pieces[w.Name], piece{at, 0, lo, hi})
		if err := dev.Transfer(compute.Move{At: at, Data: data}); err != nil {
			return err
		}
		x.copied += int64(len(data))
	}
	return nil
}

// importable reports whether the device reads memory of this process. Where the
// driver's granule is larger than a page, the memory around a mapped file is not
// known to be there.
func (x *placement) importable(dev compute.Device) bool {
	n := dev.Limits().Import
	return n > 0 && n <= int64(os.Getpagesize())
}

// importAll imports the memory of matrices where it is, neighbours together,
// and returns those that must be copied.
func (x *placement) importAll(dev compute.Device, weights []program.Weight, o unit.Options) (rest []program.Weight) {
	l := dev.Limits()
	gap := uintptr(os.Getpagesize() - 1) // so that no page between two tensors is unmapped
	sorted := slices.Clone(weights)
	slices.SortFunc(sorted, func(a, b program.Weight) int {
		if address(a.Data) < address(b.Data) {
			return -1
		}
		return 1
	})
	for len(sorted) > 0 {
		n, end := 1, address(sorted[0].Data)+uintptr(len(sorted[0].Data))
		for n < len(sorted) {
			next := sorted[n]
			to := max(end, address(next.Data)+uintptr(len(next.Data)))
			if address(next.Data) > end+gap || int64(to-address(sorted[0].Data)) > l.Allocation-2*l.Import {
				break
			}
			n, end = n+1, to
		}
		if !x.importRun(dev, sorted[:n], int(end-address(sorted[0].Data)), o) {
			rest = append(rest, sorted[:n]...)
		}
		sorted = sorted[n:]
	}
	return rest
}

func address(b []byte) uintptr { return uintptr(unsafe.Pointer(&b[0])) }

// importRun imports size bytes that begin with the first of some matrices.
func (x *placement) importRun(dev compute.Device, run []program.Weight, size int, o unit.Options) bool {
	whole, err := dev.Import(&run[0].Data[0], int64(size))
	if err != nil {
		x.refused = err
		return false
	}
	pieces := map[string][]piece{}
	l := dev.Limits()
	for _, w := range run {
		rows, err := rowsAtOnce(w, l)
		if err != nil {
			x.refused = errors.Join(err, whole.Buffer.Close())
			return false
		}
		rowBytes := len(w.Data) / w.Rows
		for lo := 0; lo < w.Rows; lo += rows {
			hi := min(w.Rows, lo+rows)
			at := whole.Offset + int64(address(w.Data)-address(run[0].Data)) + int64(lo*rowBytes)
			begin := at / l.Align * l.Align
			end := min(alignInt64(at+int64((hi-lo)*rowBytes), 4), whole.Buffer.Size())
			pieces[w.Name] = append(pieces[w.Name], piece{compute.Binding{Buffer: whole.Buffer, Offset: begin, Size: end - begin}, uint32(at - begin), lo, hi})
		}
	}
	x.imported = append(x.imported, whole.Buffer)
	for _, w := range run {
		x.pieces[w.Name] = pieces[w.Name]
		x.inPlace += int64(len(w.Data))
		if o.Progress != nil {
			o.Progress(int64(len(w.Data)))
		}
	}
	return true
}

func (x *placement) close() error {
	err := x.arena.close()
	for _, b := range x.imported {
		err = errors.Join(err, b.Close())
	}
	x.imported, x.pieces = nil, nil
	return err
}
