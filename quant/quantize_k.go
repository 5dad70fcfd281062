package quant

import "math"

// The quantisers of the super-blocks look for the scales that lose least, rather than take them from the extremes:
//
//  1. For each group, some scales around the one that spans the extremes are tried: elements are rounded to levels, and
//     the scale and minimum that fit these levels best in the weighted least-squares sense are computed in closed form.
//     The fit with the smallest error is kept.
//  2. The super-block's halves d and dmin are chosen to reach the largest scale and minimum.
//  3. For each group the stored integers next to the fit are tried, with the elements rounded anew to the levels that
//     these really stand for, and the best are stored.
//
// An element's error counts by its weight, the root mean square of its group plus its own magnitude, as in ggml: large
// weights matter more. The arithmetic is float64 with every product rounded, so the bytes are equal on all machines.

// group is a group of elements to be fitted, with the weights of their errors.
type group struct {
	x, w [32]float64
	n    int // elements in use
}

// set takes the elements. What is not finite counts as zero, so that it spoils no more than itself.
func (g *group) set(x []float32) {
	g.n = len(x)
	sum := 0.0
	for i, v := range x {
		f := float64(v)
		if math.IsNaN(f) || math.IsInf(f, 0) {
			f = 0
		}
		g.x[i] = f
		sum += float64(f * f)
	}
	rms := math.Sqrt(sum / float64(len(x)))
	for i := range x {
		g.w[i] = rms + math.Abs(g.x[i])
	}
}

// level returns the level in low..high next to x; NaN gives low.
func level(x float64, low, high int) int {
	r := x - float64(low) + 0.5 // at least 1 from low+0.5 on, so that the conversion below rounds down
	switch {
	case r >= float64(high-low+1):
		return high
	case r >= 1:
		return low + int(r)
	}
	return low
}

// fitAffine returns scale and low, low at most 0, for x = scale*q + low with levels q in 0..top.
func (g *group) fitAffine(top int) (scale, low float64) {
	min, max := 0.0, math.Inf(-1)
	for _, v := range g.x[:g.n] {
		min, max = math.Min(min, v), math.Max(max, v)
	}
	if max <= min {
		return 0, min
	}
	best := math.Inf(1)
	for step := range 21 {
		// One level less than the extremes need up to one more: clipping the largest may pay.
		inverse := (float64(top) - 1 + float64(0.1*float64(step))) / (max - min)
		var sw, sq, sqq, sx, sxq, sxx float64
		for i, v := range g.x[:g.n] {
			q := float64(level(float64((v-min)*inverse), 0, top))
			w := g.w[i]
			wq, wx := float64(w*q), float64(w*v)
			sw += w
			sq += wq
			sqq += float64(wq * q)
			sx += wx
			sxq += float64(wx * q)
			sxx += float64(wx * v)
		}
		if sqq == 0 {
			continue
		}
		// The normal equations of the sum of w (s q + l - x)^2.
		s, l := sxq/sqq, 0.0
		if det := float64(sw*sqq) - float64(sq*sq); det > 0 {
			ts := (float64(sw*sxq) - float64(sq*sx)) / det
			tl := (float64(sqq*sx) - float64(sq*sxq)) / det
			if tl <= 0 {
				s, l = ts, tl
			}
		}
		err := float64(s*(float64(s*sqq)+float64(2*l*sq)-float64(2*sxq))) + float64(l*(float64(l*sw)-float64(2*sx))) + sxx
		if err < best && s > 0 {
			best, scale, low = err, s, l
		}
	}
	return scale, low
}

// affineError returns the weighted error of the group with the levels next to it.
func (g *group) affineError(scale, low float64, top int) float64 {
	inverse := 0.0
	if scale > 0 {
		inverse = 1 / scale
	}
	sum := 0.0
	for i, v := range g.x[:g.n] {
		q := level(float64((v-low)*inverse), 0, top)
		d := float64(scale*float64(q)) + low - v
		sum += float64(g.w[i] * float64(d*d))
	}
	return sum
}

// unit returns the half u, as bits and value, with which the integers 0..top reach as far as peak. It rounds up where
// rounding to nearest would fall short, which happens with subnormal halves.
func unit(peak float64, top int) (uint16, float64) {
	h := min(F32ToF16(float32(peak/float64(top))), 0x7bff)
	if peak > float64(F16ToF32(h))*(float64(top)+0.5) && h < 0x7bff {
		h++
	}
	return h, float64(F16ToF32(h))
}

// ratio returns a/b, or 0 for b = 0.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// affineBlock is a super-block of 8 groups of 32 with scales and minima.
type affineBlock struct {
	d, dmin    uint16
	scale, low [8]byte // six bits
	q          [256]byte
}

// quantize fits the block to 256 elements with levels 0..top.
func (b *affineBlock) quantize(x []float32, top int) {
	var groups [8]group
	var scales, lows [8]float64
	var peakScale, peakLow float64
	for g := range groups {
		groups[g].set(x[32*g : 32*g+32])
		s, l := groups[g].fitAffine(top)
		scales[g], lows[g] = s, -l
		peakScale, peakLow = math.Max(peakScale, s), math.Max(peakLow, -l)
	}
	var d, dmin float64
	b.d, d = unit(peakScale, 63)
	b.dmin, dmin = unit(peakLow, 63)
	for g := range groups {
		s0, m0 := level(ratio(scales[g], d), 0, 63), level(ratio(lows[g], dmin), 0, 63)
		best := math.Inf(1)
		for s := max(s0-1, 0); s <= min(s0+1, 63); s++ {
			for m := max(m0-1, 0); m <= min(m0+1, 63); m++ {
				if err := groups[g].affineError(float64(d*float64(s)), -float64(dmin*float64(m)), top); err < best {
					best, b.scale[g], b.low[g] = err, byte(s), byte(m)
				}
			}
		}
		s, l := d*float64(b.scale[g]), float64(dmin*float64(b.low[g]))
		inverse := ratio(1, s)
		for i, v := range groups[g].x {
			b.q[32*g+i] = byte(level(float64((v+l)*inverse), 0, top))
		}
	}
}

// header writes d, dmin and the packed scales, the 16 bytes that Q4_K and Q5_K begin with.
func (b *affineBlock) header(dst []byte) {
	dst[0], dst[1], dst[2], dst[3] = byte(b.d), byte(b.d>>8), byte(b.dmin), byte(b.dmin>>8)
	p := (*[12]byte)(dst[4:])
	for g := range 4 {
		s, m := b.scale[g+4], b.low[g+4]
		p[g] = b.scale[g] | s>>4<<6
		p[g+4] = b.low[g] | m>>4<<6
		p[g+8] = s&15 | m<<4
	}
}

func encodeQ4_K(dst []byte, src []float32) {
	var b affineBlock
	for ; len(src) >= 256; dst, src = dst[144:], src[256:] {
		b.quantize(src[:256], 15)
		b.header(dst)
		for i := range 128 {
			at := i/32*64 + i%32
			dst[16+i] = b.q[at] | b.q[at+32]<<4
		}
	}
}

func encodeQ5_K(dst []byte, src []float32) {
	var b affineBlock
	for ; len(src) >= 256; dst, src = dst[176:], src[256:] {
		b.quantize(src[:256], 31)
		b.header(dst)
		for j := range 32 {
			var h byte
			for g := range 8 {
				h |= b.q[32*g+j] >> 4 << g
			}
			dst[16+j] = h
		}
		for i := range 128 {
			at := i/32*64 + i%32
			dst[48+i] = b.q[at]&15 | b.q[at+32]<<4
		}
	}
}

// fitSymmetric returns the scale for x = scale*q with levels q in -half..half-1.
func (g *group) fitSymmetric(half int) (scale float64) {
	peak := 0.0
	for _, v := range g.x[:g.n] {
		if math.Abs(v) > math.Abs(peak) {
			peak = v
		}
	}
	if peak == 0 {
		return 0
	}
	best := 0.0
	for step := -9; step <= 9; step++ {
		// The largest element goes to the end that reaches further.
		inverse := -(float64(half) + float64(0.1*float64(step))) / peak
		var sxq, sqq float64
		for i, v := range g.x[:g.n] {
			q := float64(level(float64(v*inverse), -half, half-1))
			wq := float64(g.w[i] * q)
			sxq += float64(wq * v)
			sqq += float64(wq * q)
		}
		// With the best scale sxq/sqq, the error is what the elements weigh less gain.
		if gain := float64(sxq*sxq) / sqq; sqq > 0 && gain > best {
			best, scale = gain, sxq/sqq
		}
	}
	return scale
}

// symmetricError returns the weighted error of the group with the levels next to it.
func (g *group) symmetricError(scale float64, half int) float64 {
	inverse, sum := ratio(1, scale), 0.0
	for i, v := range g.x[:g.n] {
		d := float64(scale*float64(level(float64(v*inverse), -half, half-1))) - v
		sum += float64(g.w[i] * float64(d*d))
	}
	return sum
}

func encodeQ6_K(dst []byte, src []float32) {
	var q [256]byte
	for ; len(src) >= 256; dst, src = dst[210:], src[256:] {
		var groups [16]group
		var scales [16]float64
		peak := 0.0
		for g := range groups {
			groups[g].set(src[16*g : 16*g+16])
			scales[g] = groups[g].fitSymmetric(32)
			if math.Abs(scales[g]) > math.Abs(peak) {
				peak = scales[g]
			}
		}
		// As with the elements, the largest scale goes to -128, so d has the opposite sign.
		h, d := unit(math.Abs(peak), 128)
		if peak > 0 {
			h, d = h|0x8000, -d
		}
		for g := range groups {
			s0 := level(ratio(scales[g], d), -128, 127)
			best, stored := math.Inf(1), 0
			for s := max(s0-1, -128); s <= min(s0+1, 127); s++ {
				if err := groups[g].symmetricError(d*float64(s), 32); err < best {
					best, stored = err, s
				}
			}
			dst[192+g] = byte(stored)
			inverse := ratio(1, d*float64(stored))
			for i, v := range groups[g].x[:16] {
				q[16*g+i] = byte(level(float64(v*inverse), -32, 31) + 32)
			}
		}
		packQ6_K(dst, &q)
		dst[208], dst[209] = byte(h), byte(h>>8)
	}
}

// packQ6_K writes the levels 0..63: the low four bits to ql, the upper two to qh (see decodeQ6_K).
func packQ6_K(dst []byte, q *[256]byte) {
	for n := range 2 {
		for j := range 32 {
			a, b, c, d := q[128*n+j], q[128*n+j+32], q[128*n+j+64], q[128*n+j+96]
			dst[64*n+j] = a&15 | c<<4
			dst[64*n+j+32] = b&15 | d<<4
			dst[128+32*n+j] = a>>4 | b>>4<<2 | c>>4<<4 | d>>4<<6
		}
	}
}
