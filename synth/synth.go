// Package synth writes model files with random weights in the shape of real models, so that anyone can measure a model
// that he has not downloaded.
//
// A file has the dimensions, keys, tensor names and block types of the real one (the mix of types is the one that
// llama-quantize makes), a vocabulary of the full size that encodes any text, with the special tokens at their known
// ids, and a chat template. Other programs that read GGUF load it too. The text that the model writes is noise, but its
// activations and logits are finite and of ordinary size in every layer.
//
// Weights are drawn directly as blocks: levels as gaussian values have them when they are quantised, with a scale of the
// right size. That is much faster than quantising floats, and statistically the same. Scales are drawn too and do not
// depend on the block's largest value.
//
// A file's bytes depend on shape, type and seed alone, not on the number of workers. Memory is bounded: some megabytes
// for each worker and the vocabulary. A path never holds half a file. Functions may be called from any goroutine.
//
// The package knows nothing of how a model is run.
package synth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/tandemrun/tandem/gguf"
	"github.com/tandemrun/tandem/quant"
)

// Options say what to write.
type Options struct {
	Shape   Shape
	Type    string // a mix of block types: one of Types, in any case
	Seed    uint64
	Workers int // goroutines that draw weights; 0 for as many as run at once
	// Progress, if not nil, is told how many of the tensors' bytes are written. It is called from one goroutine.
	Progress func(done, total int64)
}

// ErrSpace is the error of a file that does not fit on the disk.
var ErrSpace = errors.New("not enough free disk space")

// WriteFile writes a file and returns its size in bytes. It checks first that the disk has room for it (ErrSpace); the
// file is written beside path and renamed at the end. When ctx is done, it stops and leaves nothing behind.
func WriteFile(ctx context.Context, path string, o Options) (int64, error) {
	err := write(ctx, o, func(least int64) error {
		if free, ok := freeSpace(filepath.Dir(path)); ok && free < least {
			return fmt.Errorf("writing %s: %w: it takes %s and %s are free; choose another folder, a smaller type or fewer layers",
				path, ErrSpace, gigabytes(least), gigabytes(free))
		}
		return nil
	}, func(w *gguf.Writer) error { return w.WriteFile(path) })
	if err != nil {
		return 0, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return 0, fmt.Errorf("synth: %w", err)
	}
	return info.Size(), nil
}

// Bytes returns what WriteFile would write.
func Bytes(ctx context.Context, o Options) ([]byte, error) {
	var b bytes.Buffer
	err := write(ctx, o, func(least int64) error {
		b.Grow(int(least + least/64))
		return nil
	}, func(w *gguf.Writer) error {
		_, err := w.WriteTo(&b)
		return err
	})
	return b.Bytes(), err
}

// write collects what a file holds and lets to write it, once room has heard how many bytes there will be at least.
func write(ctx context.Context, o Options, room func(least int64) error, to func(w *gguf.Writer) error) error {
	m, err := mixNamed(o.Type)
	if err != nil {
		return err
	}
	if err := o.Shape.check(); err != nil {
		return err
	}
	if o.Workers < 0 {
		return fmt.Errorf("synth: %d workers; at least 1 is needed", o.Workers)
	}
	if o.Workers == 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	v := newVocabulary(o.Shape)
	tensors := o.Shape.tensors(m)
	least := v.bytes()
	for _, t := range tensors {
		least += t.bytes
	}
	if err := room(least); err != nil {
		return fmt.Errorf("synth: %w", err)
	}
	w := gguf.NewWriter()
	for _, kv := range append(o.Shape.keys(m), v.keys()...) {
		if err := w.Set(kv.key, kv.value); err != nil {
			return fmt.Errorf("synth: %w", err)
		}
	}
	p := startPipeline(ctx, tensors, o)
	defer p.stop()
	for _, t := range tensors {
		if err := w.AddTensor(t.name, t.typ, t.dims(), p.write); err != nil {
			return fmt.Errorf("synth: %w", err)
		}
	}
	if err := to(w); err != nil {
		return fmt.Errorf("synth: %w", err)
	}
	return nil
}

func gigabytes(n int64) string { return fmt.Sprintf("%.2f GB", float64(n)/1e9) }

// keyValue is a key of the file.
type keyValue struct {
	key   string
	value any
}

// tensor is a tensor to write.
type tensor struct {
	name       string
	typ        quant.Type
	rows, cols int       // rows is 0 for a vector
	sigma      float64   // standard deviation of the values
	values     []float32 // if not nil, the values of a vector
	bytes      int64
}

func (t *tensor) dims() []uint64 {
	if t.rows == 0 {
		return []uint64{uint64(t.cols)}
	}
	return []uint64{uint64(t.cols), uint64(t.rows)}
}

func (t *tensor) elements() int { return t.cols * max(t.rows, 1) }
