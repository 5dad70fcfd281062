package quant

import "math"

// encodeMXFP4 takes the exponent from the largest element, as the format's specification (OCP Microscaling Formats 1.0)
// proposes, and rounds each element to the nearest value, to the one with the lower code between two.
func encodeMXFP4(dst []byte, src []float32) {
	for ; len(src) >= 32; dst, src = dst[17:], src[32:] {
		e := sharedExponent(abs(peak(src[:32])))
		d := halfScale(e)
		dst[0] = e
		for j := range 16 {
			dst[1+j] = nearestMXFP4(src[j], d) | nearestMXFP4(src[j+16], d)<<4
		}
	}
}

// sharedExponent returns the E8M0 exponent with which the values up to 6 of E2M1 reach the magnitude of x.
func sharedExponent(x float32) byte {
	if x == 0 {
		return 0
	}
	_, exp := math.Frexp(float64(x)) // x in [2^(exp-1), 2^exp)
	return byte(max(exp-1-2+127, 0))
}

// nearestMXFP4 returns the code whose value times d is nearest to x.
func nearestMXFP4(x, d float32) byte {
	best, code := float32(math.Inf(1)), 0
	for i, v := range mxfp4Values {
		if err := abs(float32(d*v) - x); err < best {
			best, code = err, i
		}
	}
	return byte(code)
}
