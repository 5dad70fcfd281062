package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// pack writes the transposition of 16 rows: words of 32 bits, halves, one half a block, and the high bits of a block.
func (c *vector) pack() {
	c.packWords()
	c.packHalves()
	if c.width == 32 { // wider registers would not help
		c.packColumn()
	}
	c.packBits()
}

// rows16 addresses 16 rows of a stride through four bases.
type rows16 struct {
	base            [4]reg.Register
	stride, stride3 reg.Register
}

// at is memory of row r.
func (p *rows16) at(r int) operand.Mem {
	m := operand.Mem{Base: p.base[r/4]}
	switch r % 4 {
	case 1, 2:
		m.Index, m.Scale = p.stride, uint8(r%4)
	case 3:
		m.Index, m.Scale = p.stride3, 1
	}
	return m
}

// start sets the bases from row 0's address in base[0].
func (c *vector) start(p *rows16) {
	for i := 1; i < 4; i++ {
		c.LEAQ(index(p.base[i-1], p.stride, 4), p.base[i])
	}
}

// transpose leaves word i of the rows from first on, as many as a register has words, in out[i]. It reads 16 bytes of
// each row.
func (c *vector) transpose(p *rows16, first int) (out [4]reg.Register) {
	in, t := c.r[0:4], c.r[4:8]
	groups := c.width / 16 // of four rows
	for i := range 4 {
		c.VMOVDQU(p.at(first+i), xmm(in[i]))
		for g := 1; g < groups; g++ {
			m := p.at(first + 4*g + i)
			if c.width == 64 {
				c.VINSERTI32X4(imm(g), m, in[i], in[i])
			} else {
				c.VINSERTI128(imm(g), m, in[i], in[i])
			}
		}
	}
	c.VPUNPCKLDQ(in[1], in[0], t[0]) // a0 b0 a1 b1
	c.VPUNPCKHDQ(in[1], in[0], t[1]) // a2 b2 a3 b3
	c.VPUNPCKLDQ(in[3], in[2], t[2])
	c.VPUNPCKHDQ(in[3], in[2], t[3])
	c.VPUNPCKLQDQ(t[2], t[0], in[0])
	c.VPUNPCKHQDQ(t[2], t[0], in[1])
	c.VPUNPCKLQDQ(t[3], t[1], in[2])
	c.VPUNPCKHQDQ(t[3], t[1], in[3])
	copy(out[:], in)
	return out
}

func (c *vector) packWords() {
	c.function("packWords", "func(dst, src *byte, stride, blocks, dstBlock, srcBlock, quads, step int, flip uint32)",
		"transposes, in each block, four words of 16 rows for each quad.")
	p := &rows16{base: [4]reg.Register{reg.RSI, reg.RDI, reg.R8, reg.R9}, stride: reg.R10, stride3: reg.R11}
	dst, src, to, step, blocks, quads := reg.RAX, reg.RBX, reg.RDX, reg.R12, reg.R13, reg.RCX
	flip := c.r[8]
	c.param("flip", reg.R15L)
	c.VMOVD(reg.R15L, xmm(flip))
	c.VPBROADCASTD(xmm(flip), flip)
	c.param("dst", dst)
	c.param("src", src)
	c.param("stride", p.stride)
	c.LEAQ(index(p.stride, p.stride, 2), p.stride3)
	c.param("step", step)
	c.param("blocks", blocks)
	c.loop(blocks, func() {
		c.MOVQ(src, p.base[0])
		c.start(p)
		c.MOVQ(dst, to)
		c.param("quads", quads)
		c.loop(quads, func() {
			for first := 0; first < 16; first += c.width / 4 {
				out := c.transpose(p, first)
				for _, r := range out {
					c.xor(flip, r)
				}
				c.LEAQ(index(step, step, 2), reg.R15)
				for i, scale := range []uint8{0, 1, 2, 0} {
					m := operand.Mem{Base: to, Disp: 4 * first}
					switch {
					case scale > 0:
						m.Index, m.Scale = step, scale
					case i == 3:
						m.Index, m.Scale = reg.R15, 1
					}
					c.VMOVUPS(out[i], m)
				}
			}
			c.LEAQ(index(to, step, 4), to)
			for _, b := range p.base {
				c.add(16, b)
			}
		})
		c.ADDQ(c.stackParam("dstBlock"), dst)
		c.ADDQ(c.stackParam("srcBlock"), src)
	})
	c.end()
}

// xor computes b ^= a.
func (c *vector) xor(a, b reg.Register) {
	if c.width == 64 {
		c.VPXORD(a, b, b)
	} else {
		c.VPXOR(a, b, b)
	}
}

// packHalves transposes columns of halves, eight at a time.
func (c *vector) packHalves() {
	var even operand.Mem
	if c.width == 64 {
		words := make([]uint32, 16)
		for i := range words {
			lo := 4 * (i % 8) // word 2j of the register is the even column's of row j
			words[i] = uint32(lo+i/8) | uint32(lo+2+i/8)<<16
		}
		even = c.words("evenFirst"+c.suffix, words...)
	} else {
		even = c.words("evenFirst"+c.suffix, 0x05040100, 0x0d0c0908, 0x07060302, 0x0f0e0b0a, 0x05040100, 0x0d0c0908, 0x07060302, 0x0f0e0b0a)
	}
	c.function("packHalves", "func(dst, src *byte, stride, n int)", "transposes n times eight columns of 16 rows of halves.")
	p := &rows16{base: [4]reg.Register{reg.RSI, reg.RDI, reg.R8, reg.R9}, stride: reg.R10, stride3: reg.R11}
	dst := reg.RAX
	order := c.r[8]
	c.VMOVUPS(even, order)
	c.param("dst", dst)
	c.param("src", p.base[0])
	c.param("stride", p.stride)
	c.LEAQ(index(p.stride, p.stride, 2), p.stride3)
	c.start(p)
	c.param("n", reg.RCX)
	c.loop(reg.RCX, func() {
		for first := 0; first < 16; first += c.width / 4 {
			for i, r := range c.transpose(p, first) {
				if c.width == 64 {
					c.VPERMW(r, order, r)
					c.VMOVUPS(r, at(dst, 64*i))
					continue
				}
				c.VPSHUFB(order, r, r)
				c.VPERMQ(imm(0xd8), r, r)
				c.VMOVDQU(xmm(r), at(dst, 64*i+2*first))
				c.VEXTRACTI128(imm(1), r, at(dst, 64*i+32+2*first))
			}
		}
		c.add(256, dst)
		for _, b := range p.base {
			c.add(16, b)
		}
	})
	c.end()
}

// packColumn collects one half of 16 rows in each block.
func (c *vector) packColumn() {
	c.function("packColumn", "func(dst, src *byte, stride, blocks, dstBlock, srcBlock int)", "collects one half of 16 rows in each block.")
	p := &rows16{base: [4]reg.Register{reg.RSI, reg.RDI, reg.R8, reg.R9}, stride: reg.R10, stride3: reg.R11}
	dst, blocks, dstBlock, srcBlock := reg.RAX, reg.RCX, reg.RBX, reg.RDX
	c.param("dst", dst)
	c.param("src", p.base[0])
	c.param("stride", p.stride)
	c.param("blocks", blocks)
	c.param("dstBlock", dstBlock)
	c.param("srcBlock", srcBlock)
	c.LEAQ(index(p.stride, p.stride, 2), p.stride3)
	c.start(p)
	c.VPXOR(reg.X0, reg.X0, reg.X0)
	c.VPXOR(reg.X1, reg.X1, reg.X1)
	c.loop(blocks, func() {
		for r := range 16 {
			x := xmm(c.r[r/8])
			c.VPINSRW(imm(r%8), p.at(r), x, x)
		}
		c.VMOVDQU(reg.X0, at(dst, 0))
		c.VMOVDQU(reg.X1, at(dst, 16))
		c.ADDQ(dstBlock, dst)
		for _, b := range p.base {
			c.ADDQ(srcBlock, b)
		}
	})
	c.end()
}

// packBits collects the 32 high bits of 16 rows in each block and moves bit 4g+j to bit g of byte j.
func (c *vector) packBits() {
	every, pairs := c.bits("everyFourth", 0x11111111), c.bits("everyPair", 0x03030303)
	nibbles, bytes := c.bits("everyNibble", 0x000f000f), c.bits("lowByte", 0xff)
	c.function("packBits", "func(dst, src *byte, stride, blocks, dstBlock, srcBlock int)", "collects the high bits of 16 rows in each block.")
	p := &rows16{base: [4]reg.Register{reg.RSI, reg.RDI, reg.R8, reg.R9}, stride: reg.R10, stride3: reg.R11}
	dst, blocks, dstBlock, srcBlock := reg.RAX, reg.RCX, reg.RBX, reg.RDX
	c.param("dst", dst)
	c.param("src", p.base[0])
	c.param("stride", p.stride)
	c.param("blocks", blocks)
	c.param("dstBlock", dstBlock)
	c.param("srcBlock", srcBlock)
	c.LEAQ(index(p.stride, p.stride, 2), p.stride3)
	c.start(p)
	h, out, t, u := c.r[0], c.r[1], c.r[2], c.r[3]
	and := func(m operand.Mem, r reg.Register) { c.VANDPS(m, r, r) }
	or := func(a, r reg.Register) { c.VORPS(a, r, r) }
	c.loop(blocks, func() {
		for first := 0; first < 16; first += c.width / 4 {
			for g := range c.width / 16 {
				q := xmm(c.r[4+g])
				for i := range 4 {
					m := p.at(first + 4*g + i)
					if i == 0 {
						c.VMOVD(m, q)
						continue
					}
					c.VPINSRD(imm(i), m, q, q)
				}
			}
			c.VINSERTI128(imm(1), xmm(c.r[5]), ymm(c.r[4]), ymm(h))
			if c.width == 64 {
				c.VINSERTI128(imm(1), xmm(c.r[7]), ymm(c.r[6]), ymm(c.r[6]))
				c.VINSERTI64X4(imm(1), ymm(c.r[6]), h, h)
			}
			for j := range 4 {
				if j == 0 {
					c.VMOVUPS(h, t)
				} else {
					c.VPSRLD(imm(j), h, t)
				}
				and(every, t)
				for i, mask := range []operand.Mem{pairs, nibbles, bytes} {
					c.VPSRLD(imm(3<<i), t, u)
					or(u, t)
					and(mask, t)
				}
				if j == 0 {
					c.VMOVUPS(t, out)
					continue
				}
				c.VPSLLD(imm(8*j), t, t)
				or(t, out)
			}
			c.VMOVUPS(out, at(dst, 4*first))
		}
		c.ADDQ(dstBlock, dst)
		for _, b := range p.base {
			c.ADDQ(srcBlock, b)
		}
	})
	c.end()
}
