package synth

import (
	"encoding/binary"
	"math"

	"github.com/tandemrun/tandem/quant"
)

// steps is the number of values in which a gaussian is cut; all are equally likely.
const steps = 1 << 12

// gaussian returns the value in the middle of step i of a standard gaussian. It is rounded so that the last bits, in
// which machines may differ, do not count.
func gaussian(i int) float64 {
	z := math.Sqrt2 * math.Erfinv(2*(float64(i)+0.5)/steps-1)
	return math.Round(z*(1<<16)) / (1 << 16)
}

// A filler draws blocks of one type whose values have mean 0 and standard deviation sigma. It may be used by one
// goroutine.
type filler struct {
	size, bytes int
	pack        func(f *filler, b []byte, r *source)
	levels      [steps]uint8  // equally likely levels of a block format
	floats      [steps]uint32 // equally likely values of a float format
	// A block's scale, as a half, is one of scales; lows are the minima (or, in formats with groups, their scale) that
	// belong to them.
	scales, lows [64]uint16
	drawn        [256]uint8 // levels of the block that is packed
}

// format is what a filler knows of a block format.
type format struct {
	values []float64 // of the levels, in units of the scale
	spread float64   // of a gaussian in these units: how far out the largest value of a block is decides it
	centre float64   // what the values lie around
	group  float64   // root mean square of the group scales that pack draws; 0 for formats without groups
	pack   func(f *filler, b []byte, r *source)
}

// How far, in standard deviations, the largest of 16 and of 32 gaussian values is out on the average: on one side, and
// on either.
const (
	top16, top32   = 1.77, 2.07
	peak16, peak32 = 2.07, 2.39
)

// formatOf returns the format of a block type.
func formatOf(t quant.Type) format {
	switch t {
	case quant.Q4_0:
		return format{ascending(-8, 16), 8 / peak32, 0, 0, packQ4}
	case quant.Q4_1:
		return format{ascending(0, 16), 7.5 / top32, 7.5, 0, packQ4}
	case quant.Q5_0:
		return format{ascending(-16, 32), 16 / peak32, 0, 0, packQ5}
	case quant.Q5_1:
		return format{ascending(0, 32), 15.5 / top32, 15.5, 0, packQ5}
	case quant.Q8_0:
		return format{ascending(-128, 256), 127 / peak32, 0, 0, packQ8}
	case quant.Q2_K:
		return format{ascending(0, 4), 1.5 / top16, 1.5, rootMeanSquare(8, 8, 1), packQ2K}
	case quant.Q3_K:
		return format{ascending(-4, 8), 4 / peak16, 0, rootMeanSquare(16, 16, 1), packQ3K}
	case quant.Q4_K:
		return format{ascending(0, 16), 7.5 / top32, 7.5, rootMeanSquare(48, 16, 1), packQ4K}
	case quant.Q5_K:
		return format{ascending(0, 32), 15.5 / top32, 15.5, rootMeanSquare(48, 16, 1), packQ5K}
	case quant.Q6_K:
		return format{ascending(-32, 64), 32 / peak16, 0, rootMeanSquare(96, 16, 2), packQ6K}
	}
	return format{}
}

// ascending returns the n numbers from first on.
func ascending(first, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = float64(first + i)
	}
	return out
}

// nearest returns the index of the value nearest to x.
func nearest(values []float64, x float64) int {
	best := 0
	for i, v := range values {
		if math.Abs(v-x) < math.Abs(values[best]-x) {
			best = i
		}
	}
	return best
}

// rootMeanSquare is that of first, first+step, ..., n numbers.
func rootMeanSquare(first, n, step int) float64 {
	sum := 0
	for i := range n {
		sum += (first + i*step) * (first + i*step)
	}
	return math.Sqrt(float64(sum) / float64(n))
}

func newFiller(t quant.Type, sigma float64) *filler {
	f := &filler{size: t.BlockSize(), bytes: t.BlockBytes()}
	if f.size == 1 {
		for i := range f.floats {
			x := float32(sigma * gaussian(i))
			switch t {
			case quant.F16:
				f.floats[i] = uint32(quant.F32ToF16(x))
			case quant.BF16:
				f.floats[i] = uint32(quant.F32ToBF16(x))
			default:
				f.floats[i] = math.Float32bits(x)
			}
		}
		return f
	}
	m := formatOf(t)
	f.pack = m.pack
	// Levels reach further down than up: the centre is moved until the mean is right.
	var mean, squares float64
	for shift := 0.0; ; shift += m.centre - mean {
		mean, squares = 0, 0
		for i := range f.levels {
			level := nearest(m.values, m.centre+shift+m.spread*gaussian(i))
			f.levels[i] = uint8(level)
			mean += m.values[level] / steps
			squares += m.values[level] * m.values[level] / steps
		}
		if math.Abs(m.centre-mean) < 0.001*m.spread {
			break
		}
	}
	deviation := math.Sqrt(squares - mean*mean)
	group := m.group
	if group == 0 {
		group = 1
	}
	// Scales differ from block to block by up to a fifth.
	n := len(f.scales)
	spread := func(i int) float64 { return 0.8 + 0.4*float64(i)/float64(n-1) }
	var meanSquare float64
	for i := range n {
		meanSquare += spread(i) * spread(i) / float64(n)
	}
	for i := range n {
		d := sigma / (deviation * group) * spread(i) / math.Sqrt(meanSquare)
		f.scales[i] = quant.F32ToF16(float32(d))
		f.lows[i] = quant.F32ToF16(float32(-mean * float64(quant.F16ToF32(f.scales[i]))))
		if m.group != 0 { // formats with groups subtract the minimum
			f.lows[i] ^= 0x8000
		}
	}
	return f
}

// fill fills b with whole blocks, or with floats.
func (f *filler) fill(b []byte, r source) {
	switch f.bytes {
	case 2:
		for i := 0; i+2 <= len(b); i += 2 {
			binary.LittleEndian.PutUint16(b[i:], uint16(f.floats[r.next()>>(64-12)]))
		}
	case 4:
		for i := 0; i+4 <= len(b); i += 4 {
			binary.LittleEndian.PutUint32(b[i:], f.floats[r.next()>>(64-12)])
		}
	default:
		for len(b) >= f.bytes {
			f.draw(&r)
			f.pack(f, b[:f.bytes], &r)
			b = b[f.bytes:]
		}
	}
}

// draw draws the levels of a block.
func (f *filler) draw(r *source) {
	for q := f.drawn[:f.size]; len(q) >= 4; q = q[4:] {
		x := r.next()
		q[0] = f.levels[x%steps]
		q[1] = f.levels[x>>16%steps]
		q[2] = f.levels[x>>32%steps]
		q[3] = f.levels[x>>48%steps]
	}
}

// scale writes a block's scale.
func (f *filler) scale(b []byte, r *source) {
	binary.LittleEndian.PutUint16(b, f.scales[r.next()>>58])
}

// scaleLow writes a block's scale and minimum.
func (f *filler) scaleLow(b, low []byte, r *source) {
	i := r.next() >> 58
	binary.LittleEndian.PutUint16(b, f.scales[i])
	binary.LittleEndian.PutUint16(low, f.lows[i])
}
