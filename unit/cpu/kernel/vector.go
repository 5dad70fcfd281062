package kernel

import (
	"math"

	"github.com/tandemrun/tandem/quant"
)

// RMSNorm computes dst = x / sqrt(mean(x²)+eps) * w (Zhang and Sennrich 2019); w nil means all ones. The squares are
// summed fused in 16 lanes. dst may be x.
func (s *Set) RMSNorm(dst, x, w []float32, eps float32) {
	dst = dst[:len(x)]
	var sum [lanes]float32
	done := s.sumSquares(x, &sum)
	for i, v := range x[done:] {
		sum[i%lanes] = fma(v, v, sum[i%lanes])
	}
	mean := sumLanes(&sum) / float32(len(x))
	scale := 1 / float32(math.Sqrt(float64(mean+eps)))
	if w == nil {
		s.Scale(dst, x, scale)
		return
	}
	w = w[:len(x)]
	for i := s.scaleMul(dst, x, w, scale); i < len(x); i++ {
		dst[i] = float32(x[i]*scale) * w[i]
	}
}

// Rope turns pairs of the elements of one head by angles with the given cosines and sines (Su et al. 2021): a pair
// (a, b) becomes (a*cos-b*sin, b*cos+a*sin). The first len(cos) pairs turn: neighbours if interleaved, else elements i
// and i+len(x)/2.
func (s *Set) Rope(x []float32, cos, sin []float32, interleaved bool) {
	sin = sin[:len(cos)]
	if interleaved {
		x = x[:2*len(cos)]
		for i := s.ropePairs(x, cos, sin); i < len(cos); i++ {
			a, b, c := x[2*i], x[2*i+1], cos[i]
			x[2*i] = float32(a*c) - float32(b*sin[i])
			x[2*i+1] = float32(b*c) + float32(a*sin[i])
		}
		return
	}
	first, second := x[:len(cos)], x[len(x)/2:][:len(cos)]
	for i := s.ropeHalves(first, second, cos, sin); i < len(cos); i++ {
		a, b, c := first[i], second[i], cos[i]
		first[i] = float32(a*c) - float32(b*sin[i])
		second[i] = float32(b*c) + float32(a*sin[i])
	}
}

// Factors of the argument of the sigmoid that gelu is: -2*sqrt(2/π) and 0.044715 times it.
const (
	gelu1 = -1.5957691216057308
	gelu3 = -0.07135481627105426
)

// GeluMul computes dst = gelu(gate) * up with gelu(x) = x/2 * (1+tanh(sqrt(2/π)(x+0.044715x³))) (Hendrycks and Gimpel
// 2016), evaluated as x / (1+exp(-2 sqrt(2/π)(x+0.044715x³))). dst may be gate or up.
func (s *Set) GeluMul(dst, gate, up []float32) {
	dst, up = dst[:len(gate)], up[:len(gate)]
	for i := s.geluMul(dst, gate, up); i < len(gate); i++ {
		x := gate[i]
		z := x * fma(x*x, gelu3, gelu1)
		dst[i] = x / (exp(z) + 1) * up[i]
	}
}

// SiluMul computes dst = gate / (1+exp(-gate)) * up. dst may be gate or up.
func (s *Set) SiluMul(dst, gate, up []float32) {
	dst, up = dst[:len(gate)], up[:len(gate)]
	for i := s.siluMul(dst, gate, up); i < len(gate); i++ {
		x := gate[i]
		dst[i] = x / (exp(-x) + 1) * up[i]
	}
}

// Add computes dst = a + b. dst may be either.
func (s *Set) Add(dst, a, b []float32) {
	dst, b = dst[:len(a)], b[:len(a)]
	for i := s.add(dst, a, b); i < len(a); i++ {
		dst[i] = a[i] + b[i]
	}
}

// Scale computes dst = x * f. dst may be x.
func (s *Set) Scale(dst, x []float32, f float32) {
	dst = dst[:len(x)]
	for i := s.scale(dst, x, f); i < len(x); i++ {
		dst[i] = x[i] * f
	}
}

// Softcap computes x = limit * tanh(x/limit) in place.
func (s *Set) Softcap(x []float32, limit float32) {
	for i := s.softcap(x, limit); i < len(x); i++ {
		x[i] = limit * tanh(x[i]/limit)
	}
}

// Softmax computes x = exp(x-max(x)) / sum in place. The exponentials are summed in 16 lanes.
func (s *Set) Softmax(x []float32) {
	if len(x) == 0 {
		return
	}
	var most, sum [lanes]float32
	for i := range most {
		most[i] = float32(math.Inf(-1))
	}
	done := s.maximum(x, &most)
	for _, rest := range [2][]float32{most[1:], x[done:]} {
		for _, v := range rest {
			if v > most[0] {
				most[0] = v
			}
		}
	}
	done = s.expSum(x, most[0], &sum)
	for i, v := range x[done:] {
		e := exp(v - most[0])
		x[done+i] = e
		sum[i%lanes] += e
	}
	s.Scale(x, x, 1/sumLanes(&sum))
}

// F16Rows rounds src to half precision, to nearest even.
func (s *Set) F16Rows(dst []uint16, src []float32) {
	dst = dst[:len(src)]
	for i := s.toHalf(dst, src); i < len(src); i++ {
		dst[i] = quant.F32ToF16(src[i])
	}
}

// F32Rows widens half precision.
func (s *Set) F32Rows(dst []float32, src []uint16) {
	dst = dst[:len(src)]
	for i := s.fromHalf(dst, src); i < len(src); i++ {
		dst[i] = quant.F16ToF32(src[i])
	}
}
