package main

import (
	"math"

	"github.com/mmcloughlin/avo/reg"
)

// q8 writes the conversion of cache rows to and from blocks of Q8_0: a scale in half precision and 32 bytes.
func (c *vector) q8() {
	c.q8Row()
	c.q8Values()
}

func (c *vector) q8Row() {
	r := c.r
	magnitude := c.bits("q8Magnitude", 0x7fffffff)
	sign := c.bits("q8Sign", 0x80000000)
	belowHalf := c.bits("q8BelowHalf", math.Float32bits(0.5)-1)
	most, one, tiny := c.constant("q8Most", 127), c.constant("q8One", 1), c.constant("q8Tiny", 1e-30)
	c.function("q8Row", "func(dst *byte, src *float32, blocks int)", "rounds blocks of 32 values to Q8_0.")
	dst, x := reg.RAX, reg.RSI
	c.param("dst", dst)
	c.param("src", x)
	c.param("blocks", reg.RCX)
	q, m, tmp, scale, inverse := r[:2*c.parts()], r[8], r[9], r[10], r[11]
	c.loop(reg.RCX, func() {
		c.largest(magnitude, x, q, m, tmp)
		// Below the bound both factors are 0. The comparison is not less, so a NaN stays.
		c.VMOVSS(most, xmm(tmp))
		c.VDIVSS(xmm(tmp), xmm(m), xmm(scale))
		c.VMOVSS(one, xmm(tmp))
		c.VDIVSS(xmm(scale), xmm(tmp), xmm(inverse))
		c.VCMPSS(imm(5), tiny, xmm(m), xmm(tmp))
		c.VANDPS(xmm(tmp), xmm(scale), xmm(scale))
		c.VANDPS(xmm(tmp), xmm(inverse), xmm(inverse))
		c.VCVTPS2PH(imm(0), xmm(scale), xmm(scale))
		c.VPEXTRW(imm(0), xmm(scale), at(dst, 0))
		c.VBROADCASTSS(xmm(inverse), inverse)
		for _, v := range q {
			c.VMULPS(v, inverse, v)
			c.VANDPS(sign, v, tmp)
			c.VORPS(belowHalf, tmp, tmp)
			c.VADDPS(tmp, v, v)
			c.VCVTTPS2DQ(v, v)
		}
		if c.width == 64 {
			for i, v := range q {
				c.VPMOVDB(v, at(dst, 2+16*i))
			}
		} else {
			for _, v := range q { // what was NaN is 0 in its low byte
				c.VPSLLD(imm(24), v, v)
				c.VPSRAD(imm(24), v, v)
			}
			for i := 0; i < 4; i += 2 {
				c.VPACKSSDW(q[i+1], q[i], tmp)
				c.VPERMQ(imm(0xd8), tmp, tmp)
				c.VEXTRACTI128(imm(1), tmp, xmm(m))
				c.VPACKSSWB(xmm(m), xmm(tmp), xmm(tmp))
				c.VMOVDQU(xmm(tmp), at(dst, 2+8*i))
			}
		}
		c.add(q8Bytes, dst)
		c.add(128, x)
	})
	c.end()
}

const q8Bytes = 34

// q8Ahead is how far ahead rows are fetched: what the caller widens at a time, so that the next rows come while it works
// on these.
const q8Ahead = 4096 / 32 * q8Bytes

func (c *vector) q8Values() {
	c.function("q8Values", "func(dst *float32, src *byte, blocks int)", "writes the values of blocks of Q8_0.")
	dst, src := reg.RAX, reg.RSI
	c.param("dst", dst)
	c.param("src", src)
	c.param("blocks", reg.RCX)
	scale := c.r[8]
	half := xmm(scale)
	if c.width == 64 {
		half = ymm(scale)
	}
	c.loop(reg.RCX, func() {
		c.PREFETCHT0(at(src, q8Ahead))
		c.VPBROADCASTW(at(src, 0), half)
		c.VCVTPH2PS(half, scale)
		for i, v := range c.r[:2*c.parts()] {
			c.VPMOVSXBD(at(src, 2+i*c.width/4), v)
			c.VCVTDQ2PS(v, v)
			c.VMULPS(scale, v, v)
			c.VMOVUPS(v, at(dst, i*c.width))
		}
		c.add(q8Bytes, src)
		c.add(128, dst)
	})
	c.end()
}
