package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// quantize writes one row of a tile's int8 form.
func (c *vector) quantize() {
	r := c.r
	parts := 2 * c.parts() // registers of a block
	magnitude := c.bits("quantizeMagnitude", 0x7fffffff)
	magic := c.constant("quantizeMagic", 12582912)
	most := c.constant("quantizeMost", 127)
	tiny := c.constant("quantizeTiny", 1e-30)
	c.function("quantizeRow", "func(records *byte, x *float32, blocks, t, slot int)", "writes row slot of a tile of t rows.")
	values, words, x, t, step := reg.RAX, reg.RBX, reg.RSI, reg.R8, reg.R9
	t3 := reg.R10
	c.param("records", values)
	c.param("x", x)
	c.param("blocks", reg.RCX)
	c.param("t", t)
	c.param("slot", step)
	// The words of the row begin behind the values of all rows.
	c.MOVQ(t, words)
	c.SHLQ(imm(5), words)
	c.ADDQ(values, words)
	c.LEAQ(index(words, step, 4), words)
	c.SHLQ(imm(5), step)
	c.ADDQ(step, values)
	c.IMUL3Q(imm(recordBytes), t, step)
	c.SHLQ(imm(2), t) // bytes from a word of a row to its next
	c.LEAQ(index(t, t, 2), t3)
	q, m, tmp, scale, inverse := r[:parts], r[8], r[9], r[10], r[11]
	c.loop(reg.RCX, func() {
		c.largest(magnitude, x, q, m, tmp)
		// Below the bound both factors are 0. The comparison is not less, so a NaN stays.
		c.VMOVSS(most, xmm(tmp))
		c.VDIVSS(xmm(tmp), xmm(m), xmm(scale))
		c.VDIVSS(xmm(m), xmm(tmp), xmm(inverse))
		c.VCMPSS(imm(5), tiny, xmm(m), xmm(tmp))
		c.VANDPS(xmm(tmp), xmm(scale), xmm(scale))
		c.VANDPS(xmm(tmp), xmm(inverse), xmm(inverse))
		c.VBROADCASTSS(xmm(inverse), inverse)
		for _, v := range q {
			c.VMULPS(v, inverse, v)
			c.VADDPS(magic, v, v)
			c.VPSLLD(imm(24), v, v)
			c.VPSRAD(imm(24), v, v)
		}
		// Pack to bytes, and sum the two halves of the block.
		if c.width == 64 {
			for i, v := range q {
				c.VPMOVDB(v, at(values, 16*i))
			}
			for i := range q {
				c.VEXTRACTI64X4(imm(1), q[i], ymm(tmp))
				c.VPADDD(ymm(tmp), ymm(q[i]), ymm(q[i]))
			}
			for i := range q {
				c.VEXTRACTI128(imm(1), ymm(q[i]), xmm(tmp))
				c.VPADDD(xmm(tmp), xmm(q[i]), xmm(q[i]))
			}
		} else {
			for i := 0; i < 4; i += 2 {
				c.VPACKSSDW(q[i+1], q[i], tmp)
				c.VPERMQ(imm(0xd8), tmp, tmp)
				c.VEXTRACTI128(imm(1), tmp, xmm(m))
				c.VPACKSSWB(xmm(m), xmm(tmp), xmm(tmp))
				c.VMOVDQU(xmm(tmp), at(values, 8*i))
				c.VPADDD(q[i+1], q[i], q[i/2])
			}
			for i := range 2 {
				c.VEXTRACTI128(imm(1), q[i], xmm(tmp))
				c.VPADDD(xmm(tmp), xmm(q[i]), xmm(q[i]))
			}
		}
		a, b := xmm(q[0]), xmm(q[1])
		c.VPHADDD(b, a, a)
		c.VPHADDD(a, a, a) // first, last, first, last
		c.VPHADDD(a, a, b) // both
		c.VMOVSS(xmm(scale), at(words, 0))
		c.VPXOR(xmm(tmp), xmm(tmp), xmm(tmp))
		c.VCVTDQ2PS(b, xmm(m))
		c.VPSUBD(b, xmm(tmp), b)
		c.VPSUBD(a, xmm(tmp), a)
		c.VMOVD(b, index(words, t, 1))
		c.VMOVD(a, index(words, t, 2))
		c.VPEXTRD(imm(1), a, index(words, t3, 1))
		c.VMOVSS(xmm(m), index(words, t, 4))
		c.add(128, x)
		c.ADDQ(step, values)
		c.ADDQ(step, words)
	})
	c.end()
}

// largest loads a block of 32 values at x into q and, with a mask of all bits but the sign, leaves their largest magnitude in m. It is found as an integer, so
// a NaN is above all.
func (c *vector) largest(magnitude operand.Mem, x reg.Register, q []reg.Register, m, tmp reg.Register) {
	for i, v := range q {
		c.VMOVUPS(at(x, i*c.width), v)
		c.VANDPS(magnitude, v, tmp)
		if i == 0 {
			c.VMOVUPS(tmp, m)
		} else {
			c.VPMAXUD(tmp, m, m)
		}
	}
	if c.width == 64 {
		c.VEXTRACTI64X4(imm(1), m, ymm(tmp))
		c.VPMAXUD(ymm(tmp), ymm(m), ymm(m))
	}
	c.VEXTRACTI128(imm(1), ymm(m), xmm(tmp))
	c.VPMAXUD(xmm(tmp), xmm(m), xmm(m))
	c.VPSHUFD(imm(0x4e), xmm(m), xmm(tmp))
	c.VPMAXUD(xmm(tmp), xmm(m), xmm(m))
	c.VPSHUFD(imm(0xb1), xmm(m), xmm(tmp))
	c.VPMAXUD(xmm(tmp), xmm(m), xmm(m))
}

// index is memory at base + scale*i.
func index(base, i reg.Register, scale uint8) operand.Mem {
	return operand.Mem{Base: base, Index: i, Scale: scale}
}

// ceilings writes what shows how fast the machine can be: a loop that only reads, and one that only multiplies.
func (c *vector) ceilings() {
	p := reg.RAX
	c.function("readBytes", "func(p *byte, n int)", "reads n bytes, a multiple of 512.")
	c.param("p", p)
	c.param("n", reg.RCX)
	c.SHRQ(imm(9), reg.RCX)
	c.loop(reg.RCX, func() {
		for i := range 512 / c.width {
			c.VORPS(at(p, i*c.width), c.r[i%8], c.r[i%8])
		}
		c.add(512, p)
	})
	c.end()

	c.function("multiplyBytes", "func(n int)", "multiplies 12 registers of bytes n times and adds up the products.")
	c.param("n", reg.RCX)
	for _, r := range c.r {
		c.VXORPS(r, r, r)
	}
	c.loop(reg.RCX, func() {
		for _, r := range c.r[:12] {
			if c.width == 64 {
				c.VPDPBUSD(c.r[12], c.r[13], r)
				continue
			}
			c.VPMADDUBSW(c.r[12], c.r[13], c.r[14])
			c.VPADDW(c.r[14], r, r)
		}
	})
	c.end()
}
