package kernel

import (
	"encoding/binary"
	"fmt"
	"math"
)

// An Input is up to maxRows rows of activations prepared for products: a view of the float32 rows and, if
// QuantizeInput has run, an int8 form of them.
type Input struct {
	x       []float32
	stride  int
	n, cols int
	q       []byte // records of the int8 form
	maxRows int
	maxCols int
}

// The int8 form. The rows are cut into tiles of 16 and, for what is left, 8, 4, 2 and 1; a tile of t rows has one
// record for each block of 32 columns, in which each row has 32 int8 values, the scale, and sums of the values:
//
//	t x [32]int8   values
//	t x float32    scale: value*scale is the activation
//	t x int32      minus the sum of the block
//	t x int32      minus the sum of the first 16
//	t x int32      minus the sum of the last 16
//	t x float32    the sum of the block
const (
	recordValues = 0
	recordScale  = 32
	recordSum    = 36
	recordFirst  = 40
	recordLast   = 44
	recordFloat  = 48
	recordBytes  = 52 // a row; the offsets above are multiplied by the rows of the tile
	maxTile      = 16
)

// NewInput returns an Input for up to maxRows rows of up to maxCols columns.
func (s *Set) NewInput(maxRows, maxCols int) *Input {
	return &Input{q: aligned(maxRows*((maxCols+31)/32)*recordBytes + 64), maxRows: maxRows, maxCols: maxCols}
}

// SetInput makes the Input a view of n rows of cols columns; row r begins at x[r*stride]. The int8 form is undefined
// until QuantizeInput.
func (s *Set) SetInput(in *Input, x []float32, stride, n, cols int) {
	if n < 0 || n > in.maxRows || cols < 1 || cols > in.maxCols {
		panic(fmt.Sprintf("kernel: input of %d x %d values, made for %d x %d", n, cols, in.maxRows, in.maxCols))
	}
	in.x, in.stride, in.n, in.cols = nil, stride, n, cols
	if n > 0 {
		in.x = x[: (n-1)*stride+cols : (n-1)*stride+cols]
	}
}

// Rows returns the number of rows that SetInput gave.
func (in *Input) Rows() int { return in.n }

// tileAt returns the size of the tile that begins at row of n.
func tileAt(row, n int) int {
	t := maxTile
	for t > n-row {
		t /= 2
	}
	return t
}

// tileOf returns the first row and the size of the tile that holds row of n.
func tileOf(row, n int) (first, t int) {
	if row < n/maxTile*maxTile {
		return row / maxTile * maxTile, maxTile
	}
	first = n / maxTile * maxTile
	for {
		if t = tileAt(first, n); row < first+t {
			return first, t
		}
		first += t
	}
}

// tile returns the records of the tile of t rows that begins at row.
func (in *Input) tile(row, t int) []byte {
	blocks := in.cols / 32
	return in.q[row*blocks*recordBytes:][:t*blocks*recordBytes]
}

// QuantizeInput makes the int8 form of activation rows [lo, hi). The number of columns is a multiple of 32. Separate
// ranges may be made by several goroutines at once. Only matrices that want it (see [Matrix.WantsInt8]) read it.
//
// In each block of 32 columns the scale is the largest magnitude over 127 and each value the activation over the
// scale, rounded to nearest even. A block whose magnitudes are all below 1e-30 is zero. A NaN makes its whole block NaN.
func (s *Set) QuantizeInput(in *Input, lo, hi int) {
	if lo < 0 || hi > in.n || in.cols%32 != 0 {
		panic(fmt.Sprintf("kernel: quantising rows [%d, %d) of %d x %d values", lo, hi, in.n, in.cols))
	}
	for row := lo; row < hi; row++ {
		first, t := tileOf(row, in.n)
		s.quantizeRow(in.tile(first, t), t, row-first, in.x[row*in.stride:][:in.cols])
	}
}

const (
	tiny = 1e-30
	// roundMagic added to a float32 below 2^22 leaves its nearest integer in the low bits.
	roundMagic = 12582912
)

// quantizeRow writes row slot of a tile of t rows.
func quantizeRow(tile []byte, t, slot int, x []float32) {
	for len(x) > 0 {
		rec := tile[:t*recordBytes]
		tile = tile[t*recordBytes:]
		var most uint32 // magnitudes order as their bits do, and NaN above all
		for _, v := range x[:32] {
			most = max(most, math.Float32bits(v)&0x7fffffff)
		}
		amax := math.Float32frombits(most)
		var scale, inverse float32
		if most >= math.Float32bits(tiny) {
			scale, inverse = amax/127, 127/amax
		}
		var sum [2]int32
		for i, v := range x[:32] {
			q := int8(math.Float32bits(float32(v*inverse) + roundMagic))
			rec[slot*32+i] = byte(q)
			sum[i/16] += int32(q)
		}
		put := func(at int, v uint32) { binary.LittleEndian.PutUint32(rec[at*t+4*slot:], v) }
		put(recordScale, math.Float32bits(scale))
		put(recordSum, uint32(-sum[0]-sum[1]))
		put(recordFirst, uint32(-sum[0]))
		put(recordLast, uint32(-sum[1]))
		put(recordFloat, math.Float32bits(float32(sum[0]+sum[1])))
		x = x[32:]
	}
}
