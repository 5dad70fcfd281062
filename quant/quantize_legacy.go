package quant

import (
	"encoding/binary"
	"math"
)

// The quantisers of the formats of 32 elements round each element to the nearest level of a scale that the largest
// element fixes. They give the same bytes as ggml's reference in Python, whose rounding (in float64 for the _0 forms,
// in float32 for the others) does not depend on the compiler.

// inverse returns 1/d, or 0 for d = 0.
func inverse(d float32) float32 {
	if d == 0 {
		return 0
	}
	return 1 / d
}

// clampLevel truncates x to a level 0..top; NaN gives 0.
func clampLevel(x float64, top int) byte {
	if x >= float64(top) {
		return byte(top)
	}
	if x >= 0 {
		return byte(x)
	}
	return 0
}

// peak returns the element of x with the largest magnitude, with its sign; the first of equals.
func peak(x []float32) float32 {
	var best, value float32
	for _, v := range x {
		if a := abs(v); a > best {
			best, value = a, v
		}
	}
	return value
}

func abs(x float32) float32 { return math.Float32frombits(math.Float32bits(x) &^ (1 << 31)) }

// bounds returns the smallest and the largest element of x.
func bounds(x []float32) (low, high float32) {
	low, high = x[0], x[0]
	for _, v := range x[1:] {
		if v < low {
			low = v
		}
		if v > high {
			high = v
		}
	}
	return low, high
}

// symmetricLevels maps the block x to levels 0..2*half-1 around half, and returns the scale. The peak maps to level 0,
// the only one whose magnitude is half.
func symmetricLevels(q *[32]byte, x []float32, half int) float32 {
	d := peak(x) / float32(-half)
	id := inverse(d)
	for j, v := range x {
		q[j] = clampLevel(float64(float64(v)*float64(id))+float64(half)+0.5, 2*half-1)
	}
	return d
}

// affineLevels maps the block x to levels 0..top from its minimum to its maximum, and returns scale and minimum.
func affineLevels(q *[32]byte, x []float32, top int) (d, low float32) {
	low, high := bounds(x)
	d = (high - low) / float32(top)
	id := inverse(d)
	for j, v := range x {
		q[j] = clampLevel(float64(float32((v-low)*id)+0.5), top)
	}
	return d, low
}

// packNibbles writes the low four bits of q: elements j and j+16 share byte j.
func packNibbles(dst []byte, q *[32]byte) {
	for j := range 16 {
		dst[j] = q[j]&15 | q[j+16]<<4
	}
}

// packFifthBits writes bit 4 of each element of q as a little-endian word.
func packFifthBits(dst []byte, q *[32]byte) {
	var h uint32
	for j, v := range q {
		h |= uint32(v>>4&1) << j
	}
	binary.LittleEndian.PutUint32(dst, h)
}

func encodeQ4_0(dst []byte, src []float32) {
	var q [32]byte
	for ; len(src) >= 32; dst, src = dst[18:], src[32:] {
		putHalf(dst, symmetricLevels(&q, src[:32], 8))
		packNibbles(dst[2:], &q)
	}
}

func encodeQ4_1(dst []byte, src []float32) {
	var q [32]byte
	for ; len(src) >= 32; dst, src = dst[20:], src[32:] {
		d, m := affineLevels(&q, src[:32], 15)
		putHalf(dst, d)
		putHalf(dst[2:], m)
		packNibbles(dst[4:], &q)
	}
}

func encodeQ5_0(dst []byte, src []float32) {
	var q [32]byte
	for ; len(src) >= 32; dst, src = dst[22:], src[32:] {
		putHalf(dst, symmetricLevels(&q, src[:32], 16))
		packFifthBits(dst[2:], &q)
		packNibbles(dst[6:], &q)
	}
}

func encodeQ5_1(dst []byte, src []float32) {
	var q [32]byte
	for ; len(src) >= 32; dst, src = dst[24:], src[32:] {
		d, m := affineLevels(&q, src[:32], 31)
		putHalf(dst, d)
		putHalf(dst[2:], m)
		packFifthBits(dst[4:], &q)
		packNibbles(dst[8:], &q)
	}
}

func encodeQ8_0(dst []byte, src []float32) {
	for ; len(src) >= 32; dst, src = dst[34:], src[32:] {
		d := abs(peak(src[:32])) / 127
		id := inverse(d)
		putHalf(dst, d)
		for j, v := range src[:32] {
			dst[2+j] = byte(roundClamp(v*id, -127, 127))
		}
	}
}

// roundClamp rounds x to the nearest integer, halves away from zero, within low..high; NaN gives 0.
func roundClamp(x float32, low, high int) int {
	r := math.Round(float64(x))
	switch {
	case r >= float64(high):
		return high
	case r <= float64(low):
		return low
	case r != r:
		return 0
	}
	return int(r)
}
