package kernel

import "math"

// fma returns a*b+c rounded once.
func fma(a, b, c float32) float32 {
	// The product of two float32 is exact in float64, so the sum below is rounded once, to 53 bits. Rounding it again
	// to 24 is right unless it fell on a tie or the result is subnormal, where the error of the first decides.
	p := float64(a) * float64(b)
	s := p + float64(c)
	bits := math.Float64bits(s)
	if bits&0x1fffffff != 0x10000000 && bits&0x7ff0000000000000 >= (1023-126)<<52 {
		return float32(s)
	}
	return fmaSlow(p, float64(c), s)
}

// fmaSlow rounds p+c, whose nearest float64 is s, to float32: s is first rounded to odd, which keeps what the second
// rounding needs to know.
func fmaSlow(p, c, s float64) float32 {
	t := s - p
	rest := (p - (s - t)) + (c - t)
	if bits := math.Float64bits(s); rest != 0 && bits&1 == 0 {
		if (rest > 0) == (s > 0) {
			bits++
		} else {
			bits--
		}
		s = math.Float64frombits(bits)
	}
	return float32(s)
}

// Constants of exp: the bounds of its argument, log2(e), and ln(2) in two parts, of which the first has few bits.
const (
	expLow   = -87.3
	expHigh  = 88
	log2e    = 1.44269504088896341
	ln2High  = 0.693359375
	ln2Low   = -2.12194440e-4
	expCoef0 = 1.9875691500e-4
	expCoef1 = 1.3981999507e-3
	expCoef2 = 8.3334519073e-3
	expCoef3 = 4.1665795894e-2
	expCoef4 = 1.6666665459e-1
	expCoef5 = 5.0000001201e-1
)

// exp returns e^x to about 1e-7, 0 below -87.3, and e^88 above 88. The polynomial is that of the Cephes library.
func exp(x float32) float32 {
	if expHigh < x {
		x = expHigh
	}
	n := fma(x, log2e, roundMagic)
	k := int32(math.Float32bits(n)) << 23
	n -= roundMagic
	r := fma(n, -ln2High, x)
	r = fma(n, -ln2Low, r)
	p := fma(expCoef0, r, expCoef1)
	p = fma(p, r, expCoef2)
	p = fma(p, r, expCoef3)
	p = fma(p, r, expCoef4)
	p = fma(p, r, expCoef5)
	p = fma(p, r*r, r+1)
	if x < expLow {
		return 0
	}
	return math.Float32frombits(math.Float32bits(p) + uint32(k))
}

// Coefficients of tanh near 0, from the Cephes library.
const (
	tanhCoef0 = -5.70498872745e-3
	tanhCoef1 = 2.06390887954e-2
	tanhCoef2 = -5.37397155531e-2
	tanhCoef3 = 1.33314422036e-1
	tanhCoef4 = -3.33332819422e-1
	tanhSmall = 0.625
)

// tanh is accurate to about 1e-7 relative to its value.
func tanh(x float32) float32 {
	bits := math.Float32bits(x)
	a := math.Float32frombits(bits & 0x7fffffff)
	z := x * x
	p := fma(tanhCoef0, z, tanhCoef1)
	p = fma(p, z, tanhCoef2)
	p = fma(p, z, tanhCoef3)
	p = fma(p, z, tanhCoef4)
	near := fma(p*z, x, x)
	if a < tanhSmall {
		return near
	}
	far := 1 - 2/(exp(a+a)+1)
	return math.Float32frombits(math.Float32bits(far) | bits&0x80000000)
}

// sumLanes adds 16 partial sums in halves: lane i with lane i+8, then i+4, i+2, i+1.
func sumLanes(v *[lanes]float32) float32 {
	for h := lanes / 2; h > 0; h /= 2 {
		for i := range h {
			v[i] += v[i+h]
		}
	}
	return v[0]
}
