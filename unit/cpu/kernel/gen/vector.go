package main

import (
	"math"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// vector writes the vector operations for registers of 8 (AVX2) or 16 (AVX-512) values. All but a few work on a
// multiple of 16 elements, at least 16; a step is 16 elements, so one or two registers. package kernel has the
// definitions and does what is left of a row.
type vector struct {
	*asm
	suffix string
	width  int // bytes of a register
	r      []reg.Register
}

func newAVX512(c *asm) *vector {
	z := []reg.Register{reg.Z0, reg.Z1, reg.Z2, reg.Z3, reg.Z4, reg.Z5, reg.Z6, reg.Z7, reg.Z8, reg.Z9, reg.Z10, reg.Z11, reg.Z12, reg.Z13, reg.Z14, reg.Z15}
	return &vector{asm: c, suffix: "AVX512", width: 64, r: z}
}

func newAVX2(c *asm) *vector {
	y := []reg.Register{reg.Y0, reg.Y1, reg.Y2, reg.Y3, reg.Y4, reg.Y5, reg.Y6, reg.Y7, reg.Y8, reg.Y9, reg.Y10, reg.Y11, reg.Y12, reg.Y13, reg.Y14, reg.Y15}
	return &vector{asm: c, suffix: "AVX2", width: 32, r: y}
}

func (c *vector) all() {
	c.elementwise()
	c.activations()
	c.reductions()
	c.attention()
	c.tiles()
	c.rope()
	c.quantize()
	c.q8()
	c.ceilings()
	c.pack()
}

// parts is the number of registers in a step.
func (c *vector) parts() int { return 64 / c.width }

// constant is a register full of f in memory.
func (c *vector) constant(name string, f float64) operand.Mem {
	return c.bits(name, math.Float32bits(float32(f)))
}

func (c *vector) bits(name string, w uint32) operand.Mem {
	words := make([]uint32, c.width/4)
	for i := range words {
		words[i] = w
	}
	return c.words(name+c.suffix, words...)
}

// xmm and ymm are the lower parts of a register.
func xmm(r reg.Register) reg.Register { return r.(reg.Vec).AsX() }
func ymm(r reg.Register) reg.Register { return r.(reg.Vec).AsY() }

func (c *vector) function(name, signature, doc string) { c.begin(name+c.suffix, signature, doc) }

// steps runs body for each register of n elements, n in CX, with the displacement from pointers, which it advances.
func (c *vector) steps(body func(disp int), pointers ...reg.Register) {
	c.SHRQ(imm(4), reg.RCX)
	c.loop(reg.RCX, func() {
		for i := range c.parts() {
			body(i * c.width)
		}
		for _, p := range pointers {
			c.add(64, p)
		}
	})
}

func (c *vector) elementwise() {
	r := c.r
	dst, a, b := reg.RAX, reg.RBX, reg.RDX
	c.function("scaleMul", "func(dst, x, w *float32, n int, f float32)", "computes dst = x * f * w.")
	c.param("dst", dst)
	c.param("x", a)
	c.param("w", b)
	c.param("n", reg.RCX)
	c.broadcastParam("f", r[0])
	c.steps(func(d int) {
		c.VMULPS(at(a, d), r[0], r[1])
		c.VMULPS(at(b, d), r[1], r[1])
		c.VMOVUPS(r[1], at(dst, d))
	}, dst, a, b)
	c.end()

	c.function("scale", "func(dst, x *float32, n int, f float32)", "computes dst = x * f.")
	c.param("dst", dst)
	c.param("x", a)
	c.param("n", reg.RCX)
	c.broadcastParam("f", r[0])
	c.steps(func(d int) {
		c.VMULPS(at(a, d), r[0], r[1])
		c.VMOVUPS(r[1], at(dst, d))
	}, dst, a)
	c.end()

	c.function("add", "func(dst, a, b *float32, n int)", "computes dst = a + b.")
	c.param("dst", dst)
	c.param("a", a)
	c.param("b", b)
	c.param("n", reg.RCX)
	c.steps(func(d int) {
		c.VMOVUPS(at(a, d), r[1])
		c.VADDPS(at(b, d), r[1], r[1])
		c.VMOVUPS(r[1], at(dst, d))
	}, dst, a, b)
	c.end()

	c.function("toHalf", "func(dst *uint16, src *float32, n int)", "rounds to half precision.")
	c.param("dst", dst)
	c.param("src", a)
	c.param("n", reg.RCX)
	c.steps(func(d int) {
		c.VMOVUPS(at(a, d), r[1])
		if c.width == 64 {
			c.VCVTPS2PH(imm(0), r[1], at(dst, d/2))
		} else {
			c.VCVTPS2PH(imm(0), r[1], xmm(r[2]))
			c.VMOVDQU(xmm(r[2]), at(dst, d/2))
		}
		if d+c.width == 64 {
			c.add(32, dst)
		}
	}, a)
	c.end()

	c.function("fromHalf", "func(dst *float32, src *uint16, n int)", "widens half precision.")
	c.param("dst", dst)
	c.param("src", a)
	c.param("n", reg.RCX)
	c.steps(func(d int) {
		c.VCVTPH2PS(at(a, d/2), r[1])
		c.VMOVUPS(r[1], at(dst, d))
		if d+c.width == 64 {
			c.add(32, a)
		}
	}, dst)
	c.end()
}

func (c *vector) broadcastParam(name string, r reg.Register) {
	c.VBROADCASTSS(c.stackParam(name), r)
}

// exponential returns a function that computes r[0] = exp(r[0]) with r[1] to r[4].
func (c *vector) exponential(prefix string) func() {
	high, low := c.constant(prefix+"High", 88), c.constant(prefix+"Low", -87.3)
	log2e, magic := c.constant(prefix+"Log2e", math.Log2E), c.constant(prefix+"Magic", 12582912)
	ln2High, ln2Low := c.constant(prefix+"Ln2High", -0.693359375), c.constant(prefix+"Ln2Low", 2.12194440e-4)
	one := c.constant(prefix+"One", 1)
	var coef []operand.Mem
	for i, f := range []float64{1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1} {
		coef = append(coef, c.constant(prefix+"Coef"+string(rune('0'+i)), f))
	}
	x, n, k, t, p := c.r[0], c.r[1], c.r[2], c.r[3], c.r[4]
	return func() {
		c.VMOVUPS(high, t)
		c.VMINPS(x, t, x)
		c.VMOVUPS(magic, n)
		c.VFMADD231PS(log2e, x, n)
		c.VPSLLD(imm(23), n, k)
		c.VSUBPS(magic, n, n)
		c.VMOVUPS(x, t)
		c.VFMADD231PS(ln2High, n, t)
		c.VFMADD231PS(ln2Low, n, t)
		c.VMOVUPS(coef[0], p)
		for _, f := range coef[1:] {
			c.VFMADD213PS(f, t, p)
		}
		c.VADDPS(one, t, n)
		c.VMULPS(t, t, t)
		c.VFMADD213PS(n, t, p)
		c.VPADDD(k, p, p)
		const notLess = 5
		if c.width == 64 {
			c.VCMPPS(imm(notLess), low, x, reg.K1)
			c.VMOVAPS_Z(p, reg.K1, x)
		} else {
			c.VCMPPS(imm(notLess), low, x, x)
			c.VANDPS(p, x, x)
		}
	}
}

func (c *vector) activations() {
	r := c.r
	dst, gate, up := reg.RAX, reg.RBX, reg.RDX
	x := r[8]
	one := c.constant("one", 1)
	gelu1, gelu3 := c.constant("gelu1", -1.5957691216057308), c.constant("gelu3", -0.07135481627105426)
	sign := c.bits("sign", 0x80000000)
	gated := func(name, doc string, argument func()) {
		exp := c.exponential(name)
		c.function(name, "func(dst, gate, up *float32, n int)", doc)
		c.param("dst", dst)
		c.param("gate", gate)
		c.param("up", up)
		c.param("n", reg.RCX)
		c.steps(func(d int) {
			c.VMOVUPS(at(gate, d), x)
			argument()
			exp()
			c.VADDPS(one, r[0], r[0])
			c.VDIVPS(r[0], x, x)
			c.VMULPS(at(up, d), x, x)
			c.VMOVUPS(x, at(dst, d))
		}, dst, gate, up)
		c.end()
	}
	gated("geluMul", "computes dst = gelu(gate) * up.", func() {
		c.VMULPS(x, x, r[1])
		c.VMOVUPS(gelu1, r[0])
		c.VFMADD231PS(gelu3, r[1], r[0])
		c.VMULPS(x, r[0], r[0])
	})
	gated("siluMul", "computes dst = silu(gate) * up.", func() { c.VXORPS(sign, x, r[0]) })

	exp := c.exponential("softcap")
	magnitude := c.bits("magnitude", 0x7fffffff)
	small, two := c.constant("tanhSmall", 0.625), c.constant("two", 2)
	var coef []operand.Mem
	for i, f := range []float64{-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1} {
		coef = append(coef, c.constant("tanhCoef"+string(rune('0'+i)), f))
	}
	limit, near, a, z := r[9], r[10], r[11], r[12]
	c.function("softcap", "func(x *float32, n int, limit float32)", "computes x = limit * tanh(x/limit).")
	c.param("x", dst)
	c.param("n", reg.RCX)
	c.broadcastParam("limit", limit)
	c.steps(func(d int) {
		c.VMOVUPS(at(dst, d), x)
		c.VDIVPS(limit, x, x)
		c.VMULPS(x, x, z)
		c.VMOVUPS(coef[0], near)
		for _, f := range coef[1:] {
			c.VFMADD213PS(f, z, near)
		}
		c.VMULPS(z, near, near)
		c.VFMADD213PS(x, x, near)
		c.VANDPS(magnitude, x, a)
		c.VADDPS(a, a, r[0])
		exp()
		c.VADDPS(one, r[0], r[0])
		c.VMOVUPS(two, r[1])
		c.VDIVPS(r[0], r[1], r[0])
		c.VMOVUPS(one, r[1])
		c.VSUBPS(r[0], r[1], r[0])
		c.VANDPS(sign, x, x)
		c.VORPS(x, r[0], r[0])
		const less = 1
		if c.width == 64 {
			c.VCMPPS(imm(less), small, a, reg.K1)
			c.VMOVAPS(near, reg.K1, r[0])
		} else {
			c.VCMPPS(imm(less), small, a, a)
			c.VBLENDVPS(a, near, r[0], r[0])
		}
		c.VMULPS(limit, r[0], r[0])
		c.VMOVUPS(r[0], at(dst, d))
	}, dst)
	c.end()
}

// reductions keep 16 lanes, in one register or two.
func (c *vector) reductions() {
	r := c.r
	x, sums := reg.RAX, reg.RBX
	acc := func(d int) reg.Register { return r[13+d/c.width] }
	each := func(f func(d int)) {
		for i := range c.parts() {
			f(i * c.width)
		}
	}
	c.function("sumSquares", "func(x *float32, n int, lanes *float32)", "adds x² to 16 lanes.")
	c.param("x", x)
	c.param("n", reg.RCX)
	c.param("lanes", sums)
	each(func(d int) { c.VMOVUPS(at(sums, d), acc(d)) })
	c.steps(func(d int) {
		c.VMOVUPS(at(x, d), r[0])
		c.VFMADD231PS(r[0], r[0], acc(d))
	}, x)
	each(func(d int) { c.VMOVUPS(acc(d), at(sums, d)) })
	c.end()

	c.function("maximum", "func(x *float32, n int, lanes *float32)", "raises 16 lanes to the largest of x.")
	c.param("x", x)
	c.param("n", reg.RCX)
	c.param("lanes", sums)
	each(func(d int) { c.VMOVUPS(at(sums, d), acc(d)) })
	c.steps(func(d int) {
		c.VMOVUPS(at(x, d), r[0])
		c.VMAXPS(acc(d), r[0], acc(d)) // a NaN in x gives acc
	}, x)
	each(func(d int) { c.VMOVUPS(acc(d), at(sums, d)) })
	c.end()

	exp := c.exponential("expSum")
	c.function("expSum", "func(x *float32, n int, most float32, lanes *float32)", "computes x = exp(x-most) and adds it to 16 lanes.")
	c.param("x", x)
	c.param("n", reg.RCX)
	c.param("lanes", sums)
	c.broadcastParam("most", r[8])
	each(func(d int) { c.VMOVUPS(at(sums, d), acc(d)) })
	c.steps(func(d int) {
		c.VMOVUPS(at(x, d), r[0])
		c.VSUBPS(r[8], r[0], r[0])
		exp()
		c.VMOVUPS(r[0], at(x, d))
		c.VADDPS(r[0], acc(d), acc(d))
	}, x)
	each(func(d int) { c.VMOVUPS(acc(d), at(sums, d)) })
	c.end()
}

func (c *vector) rope() {
	r := c.r
	a, b, cos, sin := reg.RAX, reg.RBX, reg.RDX, reg.RSI
	c.function("ropeHalves", "func(a, b, cos, sin *float32, n int)", "turns the pairs (a[i], b[i]).")
	c.param("a", a)
	c.param("b", b)
	c.param("cos", cos)
	c.param("sin", sin)
	c.param("n", reg.RCX)
	c.steps(func(d int) {
		c.VMOVUPS(at(a, d), r[0])
		c.VMOVUPS(at(b, d), r[1])
		c.VMOVUPS(at(cos, d), r[2])
		c.VMOVUPS(at(sin, d), r[3])
		c.VMULPS(r[2], r[0], r[4])
		c.VMULPS(r[3], r[1], r[5])
		c.VSUBPS(r[5], r[4], r[4])
		c.VMOVUPS(r[4], at(a, d))
		c.VMULPS(r[2], r[1], r[1])
		c.VMULPS(r[3], r[0], r[0])
		c.VADDPS(r[0], r[1], r[1])
		c.VMOVUPS(r[1], at(b, d))
	}, a, b, cos, sin)
	c.end()

	// Four pairs a register: both elements of a pair need the pair's angle.
	double := c.words("double"+c.suffix, 0, 0, 1, 1, 2, 2, 3, 3)
	y := []reg.Register{reg.Y0, reg.Y1, reg.Y2, reg.Y3, reg.Y4}
	c.function("ropePairs", "func(x, cos, sin *float32, n int)", "turns the n pairs (x[2i], x[2i+1]); n is a multiple of 4.")
	c.param("x", a)
	c.param("cos", cos)
	c.param("sin", sin)
	c.param("n", reg.RCX)
	c.SHRQ(imm(2), reg.RCX)
	c.VMOVDQU(double, y[4])
	c.loop(reg.RCX, func() {
		c.VMOVUPS(at(cos, 0), reg.X0)
		c.VPERMPS(y[0], y[4], y[0])
		c.VMOVUPS(at(sin, 0), reg.X1)
		c.VPERMPS(y[1], y[4], y[1])
		c.VMOVUPS(at(a, 0), y[2])
		c.VPERMILPS(imm(0xb1), y[2], y[3])
		c.VMULPS(y[0], y[2], y[2])
		c.VMULPS(y[1], y[3], y[3])
		c.VADDSUBPS(y[3], y[2], y[2])
		c.VMOVUPS(y[2], at(a, 0))
		c.add(32, a)
		c.add(16, cos)
		c.add(16, sin)
	})
	c.end()
}
