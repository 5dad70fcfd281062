package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// floatKinds are the panels of floating point weights: a column of 16 rows takes bytes.
var floatKinds = []struct {
	name  string
	bytes int
}{{"F32", 64}, {"F16", 32}, {"BF16", 32}}

// mulFloatAVX512 writes the products of floating point weights. A row of activations, of up to 16, is a broadcast
// memory operand; where there are few rows, several panels go at once, so that four sums or more are under way.
func mulFloatAVX512(c *asm) {
	for _, kind := range floatKinds {
		c.begin("mul"+kind.name+"AVX512", "func(dst *float32, stride int, panels *byte, n, cols int, x *float32, xstride int, t int)",
			fmt.Sprintf("multiplies n panels of %s with t activation rows.", kind.name))
		dst, stride, src, panels, cols, count := reg.RAX, reg.RBX, reg.RSI, reg.RCX, reg.RDX, reg.R15
		row, row8, s, s3, s5, s7 := reg.RDI, reg.R8, reg.R9, reg.R10, reg.R11, reg.R12
		panel, panel3, out := s3, s5, reg.R13
		x := func(r, column int) operand.Mem {
			m := operand.Mem{Base: row, Disp: 4 * column}
			if r >= 8 {
				m.Base, r = row8, r-8
			}
			switch {
			case r == 0:
			case r == 6:
				m.Index, m.Scale = s3, 2
			case r&(r-1) == 0:
				m.Index, m.Scale = s, uint8(r)
			default:
				m.Index, m.Scale = map[int]reg.Register{3: s3, 5: s5, 7: s7}[r], 1
			}
			return m
		}
		weight := func(p, column int) operand.Mem {
			m := operand.Mem{Base: src, Disp: kind.bytes * column}
			switch p {
			case 1, 2:
				m.Index, m.Scale = panel, uint8(p)
			case 3:
				m.Index, m.Scale = panel3, 1
			}
			return m
		}
		load := func(m operand.Mem, z reg.Register) {
			switch kind.name {
			case "F32":
				c.VMOVUPS(m, z)
			case "F16":
				c.VCVTPH2PS(m, z)
			default:
				c.VPMOVZXWD(m, z)
				c.VPSLLD(imm(16), z, z)
			}
		}
		z := []reg.Register{reg.Z0, reg.Z1, reg.Z2, reg.Z3, reg.Z4, reg.Z5, reg.Z6, reg.Z7, reg.Z8, reg.Z9, reg.Z10, reg.Z11,
			reg.Z12, reg.Z13, reg.Z14, reg.Z15, reg.Z16, reg.Z17, reg.Z18, reg.Z19}
		// panelsAt multiplies p panels with t rows and goes on to the next.
		panelsAt := func(p, t int) {
			for i := range p * t {
				c.VPXORD(z[i], z[i], z[i])
			}
			c.param("x", row)
			if t > 8 {
				c.LEAQ(operand.Mem{Base: row, Index: s, Scale: 8}, row8)
			}
			step := func(columns int) {
				for column := range columns {
					for i := range p {
						w := z[16+(column*p+i)%4]
						load(weight(i, column), w)
						for r := range t {
							c.VFMADD231PS_BCST(x(r, column), w, z[i*t+r])
						}
					}
				}
				c.add(kind.bytes*columns, src)
				c.add(4*columns, row)
				if t > 8 {
					c.add(4*columns, row8)
				}
			}
			const unroll = 4
			tail, done := c.label("tail"), c.label("done")
			c.MOVQ(cols, count)
			c.SHRQ(imm(2), count)
			c.JZ(operand.LabelRef(tail))
			c.loop(count, func() { step(unroll) })
			c.Label(tail)
			c.MOVQ(cols, count)
			c.ANDQ(imm(unroll-1), count)
			c.JZ(operand.LabelRef(done))
			c.loop(count, func() { step(1) })
			c.Label(done)
			c.MOVQ(dst, out)
			for r := range t {
				for i := range p {
					c.VMOVUPS(z[i*t+r], at(out, 64*i))
				}
				if r < t-1 {
					c.ADDQ(stride, out)
				}
			}
			c.add(64*p, dst)
			// src stands at the end of the first of the p panels.
			switch p {
			case 2:
				c.ADDQ(panel, src)
			case 4:
				c.ADDQ(panel3, src)
			}
		}
		c.param("dst", dst)
		c.param("stride", stride)
		c.SHLQ(imm(2), stride)
		c.param("panels", src)
		c.param("n", panels)
		c.param("cols", cols)
		c.param("xstride", s)
		c.SHLQ(imm(2), s)
		c.param("t", count)
		for _, t := range tileSizes[:len(tileSizes)-1] {
			c.CMPQ(count, imm(t))
			c.JEQ(operand.LabelRef(fmt.Sprintf("tile%d", t)))
		}
		for i := range tileSizes {
			t := tileSizes[len(tileSizes)-1-i]
			c.Label(fmt.Sprintf("tile%d", t))
			together := max(1, 4/t)
			if together > 1 {
				c.MOVQ(cols, panel)
				c.IMUL3Q(operand.U32(kind.bytes), panel, panel)
				c.LEAQ(operand.Mem{Base: panel, Index: panel, Scale: 2}, panel3)
				many, few, end := c.label("many"), c.label("few"), c.label("end")
				c.Label(many)
				c.CMPQ(panels, imm(together))
				c.JLT(operand.LabelRef(few))
				panelsAt(together, t)
				c.SUBQ(imm(together), panels)
				c.JMP(operand.LabelRef(many))
				c.Label(few)
				c.TESTQ(panels, panels)
				c.JZ(operand.LabelRef(end))
				c.loop(panels, func() { panelsAt(1, t) })
				c.Label(end)
				c.end()
				continue
			}
			c.LEAQ(operand.Mem{Base: s, Index: s, Scale: 2}, s3)
			c.LEAQ(operand.Mem{Base: s, Index: s, Scale: 4}, s5)
			c.LEAQ(operand.Mem{Base: s3, Index: s, Scale: 4}, s7)
			c.loop(panels, func() { panelsAt(1, t) })
			c.end()
		}
	}
}
