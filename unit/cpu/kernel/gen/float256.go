package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// mulFloatAVX2 writes the products of floating point weights: four activation rows with a panel, two with two or one
// with four at once, so that eight sums are under way.
func mulFloatAVX2(c *asm) {
	for _, kind := range floatKinds {
		c.begin("mul"+kind.name+"AVX2", "func(dst *float32, stride int, panels *byte, n, cols int, x *float32, xstride int, t int)",
			fmt.Sprintf("multiplies n panels of %s with t activation rows.", kind.name))
		dst, stride, src, panels, cols, count := reg.RAX, reg.RBX, reg.RSI, reg.RCX, reg.RDX, reg.R15
		row, s, s3, panel, panel3, out := reg.RDI, reg.R9, reg.R10, reg.R11, reg.R12, reg.R13
		left := reg.R8
		y := []reg.Register{reg.Y0, reg.Y1, reg.Y2, reg.Y3, reg.Y4, reg.Y5, reg.Y6, reg.Y7}
		w, a := []reg.Register{reg.Y8, reg.Y9}, reg.Y10
		rowAt := func(r, column int) operand.Mem {
			m := operand.Mem{Base: row, Disp: 4 * column}
			switch r {
			case 1, 2:
				m.Index, m.Scale = s, uint8(r)
			case 3:
				m.Index, m.Scale = s3, 1
			}
			return m
		}
		weight := func(p, column, half int) operand.Mem {
			m := operand.Mem{Base: src, Disp: kind.bytes*column + kind.bytes/2*half}
			switch p {
			case 1, 2:
				m.Index, m.Scale = panel, uint8(p)
			case 3:
				m.Index, m.Scale = panel3, 1
			}
			return m
		}
		load := func(m operand.Mem, y reg.Register) {
			switch kind.name {
			case "F32":
				c.VMOVUPS(m, y)
			case "F16":
				c.VCVTPH2PS(m, y)
			default:
				c.VPMOVZXWD(m, y)
				c.VPSLLD(imm(16), y, y)
			}
		}
		// multiply goes down the columns of p panels with t rows from x on, and stores the sums at out.
		multiply := func(p, t int) {
			sum := func(i, r, half int) reg.Register { return y[(i*t+r)*2+half] }
			for i := range 2 * p * t {
				c.VXORPS(y[i], y[i], y[i])
			}
			step := func(columns int) {
				for column := range columns {
					for i := range p {
						for half := range 2 {
							load(weight(i, column, half), w[half])
						}
						for r := range t {
							if t > 1 || i == 0 {
								c.VBROADCASTSS(rowAt(r, column), a)
							}
							for half := range 2 {
								c.VFMADD231PS(a, w[half], sum(i, r, half))
							}
						}
					}
				}
				c.add(kind.bytes*columns, src)
				c.add(4*columns, row)
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
			for r := range t {
				for i := range p {
					for half := range 2 {
						c.VMOVUPS(sum(i, r, half), at(out, 64*i+32*half))
					}
				}
				c.ADDQ(stride, out)
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
		c.LEAQ(index(s, s, 2), s3)
		c.IMUL3Q(operand.U32(kind.bytes), cols, panel)
		c.LEAQ(index(panel, panel, 2), panel3)
		c.param("t", left)
		for _, t := range []int{1, 2} {
			c.CMPQ(left, imm(t))
			c.JEQ(operand.LabelRef(fmt.Sprintf("rows%d", t)))
		}
		// Tiles of four and more rows go in fours.
		c.loop(panels, func() {
			c.param("t", left)
			c.MOVQ(dst, out)
			c.param("x", row)
			groups := c.label("groups")
			c.Label(groups)
			multiply(1, 4)
			c.SUBQ(panel, src)
			// row stands at the end of the columns.
			c.MOVQ(cols, count)
			c.SHLQ(imm(2), count)
			c.SUBQ(count, row)
			c.LEAQ(index(row, s, 4), row)
			c.SUBQ(imm(4), left)
			c.JNZ(operand.LabelRef(groups))
			c.ADDQ(panel, src)
			c.add(64, dst)
		})
		c.end()
		for _, t := range []int{2, 1} {
			c.Label(fmt.Sprintf("rows%d", t))
			together := 4 / t
			many, few, end := c.label("many"), c.label("few"), c.label("end")
			c.Label(many)
			c.CMPQ(panels, imm(together))
			c.JLT(operand.LabelRef(few))
			c.param("x", row)
			c.MOVQ(dst, out)
			multiply(together, t)
			c.ADDQ(map[int]reg.Register{2: panel, 4: panel3}[together], src)
			c.add(64*together, dst)
			c.SUBQ(imm(together), panels)
			c.JMP(operand.LabelRef(many))
			c.Label(few)
			c.TESTQ(panels, panels)
			c.JZ(operand.LabelRef(end))
			c.loop(panels, func() {
				c.param("x", row)
				c.MOVQ(dst, out)
				multiply(1, t)
				c.add(64, dst)
			})
			c.Label(end)
			c.end()
		}
	}
}
