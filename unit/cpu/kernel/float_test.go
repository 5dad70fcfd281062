package kernel

import "math/big"

// exactFMA rounds the exact a*b+c once.
func exactFMA(a, b, c float32) float32 {
	x := new(big.Float).SetPrec(600).SetFloat64(float64(a))
	x.Mul(x, new(big.Float).SetFloat64(float64(b)))
	x.Add(x, new(big.Float).SetFloat64(float64(c)))
	f, _ := x.Float32()
	return f
}
