package synth

import (
	"context"
	"encoding/binary"
	"hash/fnv"
	"io"
	"math"
	"sync"

	"github.com/tandemrun/tandem/quant"
)

// chunkElements is how many weights are drawn at a time. It is a multiple of every block. A chunk's weights depend on
// the seed, the tensor and the chunk, so files would change if this did.
const chunkElements = 1 << 19

// chunk is a run of elements of a tensor.
type chunk struct {
	t           *tensor
	index       int // of the chunk within the tensor
	first, last int // elements
}

// A pipeline draws the chunks of all tensors in workers and gives them out in order. Worker i draws chunks i, i +
// workers, ...; each has two buffers, so that it draws one while the other is written.
type pipeline struct {
	ctx      context.Context
	cancel   context.CancelFunc
	wg       sync.WaitGroup
	chunks   []chunk
	next     int // chunk to write
	lanes    []lane
	progress func(done, total int64)
	done     int64
	total    int64
}

type lane struct {
	full, free chan []byte
}

func startPipeline(ctx context.Context, tensors []tensor, o Options) *pipeline {
	p := &pipeline{progress: o.Progress}
	p.ctx, p.cancel = context.WithCancel(ctx)
	largest := 0
	for i := range tensors {
		t := &tensors[i]
		p.total += t.bytes
		n := t.elements()
		for index := 0; index*chunkElements < n; index++ {
			first := index * chunkElements
			c := chunk{t, index, first, min(first+chunkElements, n)}
			p.chunks = append(p.chunks, c)
			largest = max(largest, c.bytes())
		}
	}
	for i := range min(o.Workers, len(p.chunks)) {
		l := lane{make(chan []byte, 2), make(chan []byte, 2)}
		for range 2 {
			l.free <- make([]byte, largest)
		}
		p.lanes = append(p.lanes, l)
		p.wg.Go(func() { p.draw(i, min(o.Workers, len(p.chunks)), l, o.Seed) })
	}
	return p
}

// draw is a worker.
func (p *pipeline) draw(first, step int, l lane, seed uint64) {
	fillers := map[fillerKey]*filler{}
	for i := first; i < len(p.chunks); i += step {
		select {
		case <-p.ctx.Done():
			return
		case b := <-l.free:
			c := p.chunks[i]
			b = b[:c.bytes()]
			c.fill(b, seed, fillers)
			l.full <- b
		}
	}
}

// write writes the chunks of the next tensor.
func (p *pipeline) write(out io.Writer) error {
	for t := p.chunks[p.next].t; p.next < len(p.chunks) && p.chunks[p.next].t == t; p.next++ {
		l := p.lanes[p.next%len(p.lanes)]
		select {
		case <-p.ctx.Done():
			return p.ctx.Err()
		case b := <-l.full:
			if _, err := out.Write(b); err != nil {
				return err
			}
			p.done += int64(len(b))
			l.free <- b
		}
		if p.progress != nil {
			p.progress(p.done, p.total)
		}
	}
	return nil
}

// stop ends the workers and waits for them.
func (p *pipeline) stop() {
	p.cancel()
	p.wg.Wait()
}

func (c chunk) bytes() int {
	return (c.last - c.first) / c.t.typ.BlockSize() * c.t.typ.BlockBytes()
}

type fillerKey struct {
	typ   quant.Type
	sigma float64
}

// fill draws the chunk's weights into b.
func (c chunk) fill(b []byte, seed uint64, fillers map[fillerKey]*filler) {
	if c.t.values != nil {
		for i, v := range c.t.values[c.first:c.last] {
			binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(v))
		}
		return
	}
	key := fillerKey{c.t.typ, c.t.sigma}
	f := fillers[key]
	if f == nil {
		f = newFiller(key.typ, key.sigma)
		fillers[key] = f
	}
	h := fnv.New64a()
	io.WriteString(h, c.t.name)
	r := source(seed)
	r = source(r.next() ^ h.Sum64())
	r = source(r.next() + uint64(c.index))
	f.fill(b, source(r.next()))
}

// A source is a stream of random bits (SplitMix64).
type source uint64

func (s *source) next() uint64 {
	*s += 0x9e3779b97f4a7c15
	z := uint64(*s)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// below returns a number in [0, n).
func (s *source) below(n int) int { return int(s.next() >> 33 % uint64(n)) }
