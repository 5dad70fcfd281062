package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// attention writes the products of one query with rows of keys and the weighted sums of rows of values, in float32 and
// half precision.
func (c *vector) attention() {
	for _, half := range []bool{false, true} {
		c.dotRows(half)
		c.addRows(half)
	}
}

// element is the type of cache elements, the suffix of routines on them and the shift that makes bytes of elements.
func element(half bool) (typ, suffix string, shift int) {
	if half {
		return "uint16", "F16", 1
	}
	return "float32", "", 2
}

// dotRows takes four rows at a time; each row has 16 partial sums.
func (c *vector) dotRows(half bool) {
	typ, suffix, shift := element(half)
	c.function("dotRows"+suffix, "func(scores, q *float32, k *"+typ+", rows, stride, n int)",
		"computes scores[i] = q · k[i*stride:][:n]; n is a multiple of 16.")
	scores, q, k, rows, stride, stride3, n := reg.RAX, reg.RBX, reg.RSI, reg.RDX, reg.R8, reg.R9, reg.R10
	qp, kp := reg.R11, reg.R12
	parts := c.parts()
	acc := func(row, part int) reg.Register { return c.r[row*parts+part] }
	query := func(part int) reg.Register { return c.r[8+part] }
	key := c.r[10]
	rowsAt := func(count int) {
		for i := range count * parts {
			c.VXORPS(c.r[i], c.r[i], c.r[i])
		}
		c.MOVQ(q, qp)
		c.MOVQ(k, kp)
		c.MOVQ(n, reg.RCX)
		c.SHRQ(imm(4), reg.RCX)
		c.loop(reg.RCX, func() {
			for p := range parts {
				c.VMOVUPS(at(qp, p*c.width), query(p))
			}
			for row := range count {
				for p := range parts {
					m := at(kp, p*c.width*(1<<shift)/4)
					switch row {
					case 1, 2:
						m.Index, m.Scale = stride, uint8(row)
					case 3:
						m.Index, m.Scale = stride3, 1
					}
					if half {
						c.VCVTPH2PS(m, key)
						c.VFMADD231PS(key, query(p), acc(row, p))
					} else {
						c.VFMADD231PS(m, query(p), acc(row, p))
					}
				}
			}
			c.add(64, qp)
			c.add(16<<shift, kp)
		})
		// Lanes i and i+8, then i and i+4.
		t := c.r[11]
		for row := range count {
			lo := acc(row, 0)
			if parts == 1 {
				c.VEXTRACTF64X4(imm(1), lo, ymm(t))
			} else {
				c.VMOVUPS(acc(row, 1), ymm(t))
			}
			c.VADDPS(ymm(t), ymm(lo), ymm(lo))
			c.VEXTRACTF128(imm(1), ymm(lo), xmm(t))
			c.VADDPS(xmm(t), xmm(lo), xmm(lo))
		}
		if count == 1 {
			a := xmm(acc(0, 0))
			c.VMOVHLPS(a, a, xmm(t))
			c.VADDPS(xmm(t), a, a)
			c.VMOVSHDUP(a, xmm(t))
			c.VADDSS(xmm(t), a, a)
			c.VMOVSS(a, at(scores, 0))
			return
		}
		// The last two additions of four rows at once.
		u := xmm(c.r[12])
		for row := 0; row < 4; row += 2 {
			a, b := xmm(acc(row, 0)), xmm(acc(row+1, 0))
			c.VMOVLHPS(b, a, u)
			c.VMOVHLPS(a, b, xmm(t))
			c.VADDPS(xmm(t), u, a)
		}
		a, b := xmm(acc(0, 0)), xmm(acc(2, 0))
		c.VSHUFPS(imm(0x88), b, a, u)
		c.VSHUFPS(imm(0xdd), b, a, xmm(t))
		c.VADDPS(xmm(t), u, u)
		c.VMOVUPS(u, at(scores, 0))
	}
	c.param("scores", scores)
	c.param("q", q)
	c.param("k", k)
	c.param("rows", rows)
	c.param("stride", stride)
	c.SHLQ(imm(shift), stride)
	c.LEAQ(operand.Mem{Base: stride, Index: stride, Scale: 2}, stride3)
	c.param("n", n)
	c.Label("four")
	c.CMPQ(rows, imm(4))
	c.JLT(operand.LabelRef("one"))
	rowsAt(4)
	c.LEAQ(operand.Mem{Base: k, Index: stride, Scale: 4}, k)
	c.add(16, scores)
	c.SUBQ(imm(4), rows)
	c.JMP(operand.LabelRef("four"))
	c.Label("one")
	c.TESTQ(rows, rows)
	c.JZ(operand.LabelRef("end"))
	rowsAt(1)
	c.ADDQ(stride, k)
	c.add(4, scores)
	c.DECQ(rows)
	c.JMP(operand.LabelRef("one"))
	c.Label("end")
	c.end()
}

// addRows keeps up to eight registers of the result while it goes down the rows.
func (c *vector) addRows(half bool) {
	typ, suffix, shift := element(half)
	c.function("addRows"+suffix, "func(dst, w *float32, v *"+typ+", rows, stride, n int)",
		"computes dst += Σ w[i]*v[i*stride:][:n], i ascending; n is a multiple of 16.")
	dst, w, v, rows, stride, n := reg.RAX, reg.RBX, reg.RSI, reg.RDX, reg.R8, reg.R10
	wp, vp := reg.R11, reg.R12
	weight, value := c.r[8], c.r[9]
	columns := func(registers int) {
		for i := range registers {
			c.VMOVUPS(at(dst, i*c.width), c.r[i])
		}
		c.MOVQ(w, wp)
		c.MOVQ(v, vp)
		c.MOVQ(rows, reg.RCX)
		c.loop(reg.RCX, func() {
			c.VBROADCASTSS(at(wp, 0), weight)
			for i := range registers {
				m := at(vp, i*c.width*(1<<shift)/4)
				if half {
					c.VCVTPH2PS(m, value)
					c.VFMADD231PS(value, weight, c.r[i])
				} else {
					c.VFMADD231PS(m, weight, c.r[i])
				}
			}
			c.add(4, wp)
			c.ADDQ(stride, vp)
		})
		for i := range registers {
			c.VMOVUPS(c.r[i], at(dst, i*c.width))
		}
		c.add(registers*c.width, dst)
		c.add(registers*c.width*(1<<shift)/4, v)
	}
	c.param("dst", dst)
	c.param("w", w)
	c.param("v", v)
	c.param("rows", rows)
	c.param("stride", stride)
	c.SHLQ(imm(shift), stride)
	c.param("n", n)
	c.SHRQ(imm(4), n)
	many := 8 / c.parts()
	c.Label("many")
	c.CMPQ(n, imm(many))
	c.JLT(operand.LabelRef("few"))
	columns(8)
	c.SUBQ(imm(many), n)
	c.JMP(operand.LabelRef("many"))
	c.Label("few")
	c.TESTQ(n, n)
	c.JZ(operand.LabelRef("end"))
	columns(c.parts())
	c.DECQ(n)
	c.JMP(operand.LabelRef("few"))
	c.Label("end")
	c.end()
}
