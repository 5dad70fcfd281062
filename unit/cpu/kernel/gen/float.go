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

// float is the state of one product kernel of floating point weights while it is written. At most four rows of
// activations go at once: rows are often a multiple of 4096 bytes apart, and so share the few places that such
// addresses have in the first cache.
type float struct {
	*vector
	name  string
	bytes int

	dst, stride, src, panels, cols, count, out reg.Register
	row, s, s3, panel, panel3                  reg.Register
}

// mulFloat writes the products of floating point weights. Several panels go at once, so that eight sums are under way.
func (c *vector) mulFloat() {
	together := map[int]int{4: 2 / c.parts(), 2: 4 / c.parts(), 1: 4}
	for _, kind := range floatKinds {
		k := &float{vector: c, name: kind.name, bytes: kind.bytes,
			dst: reg.RAX, stride: reg.RBX, src: reg.RSI, panels: reg.RCX, cols: reg.RDX, count: reg.R15, out: reg.R13,
			row: reg.RDI, s: reg.R9, s3: reg.R10, panel: reg.R11, panel3: reg.R12}
		left := reg.R8
		c.function("mul"+kind.name, "func(dst *float32, stride int, panels *byte, n, cols int, x *float32, xstride int, t int)",
			fmt.Sprintf("multiplies n panels of %s with t activation rows.", kind.name))
		c.param("dst", k.dst)
		c.param("stride", k.stride)
		c.SHLQ(imm(2), k.stride)
		c.param("panels", k.src)
		c.param("n", k.panels)
		c.param("cols", k.cols)
		c.param("xstride", k.s)
		c.SHLQ(imm(2), k.s)
		c.LEAQ(index(k.s, k.s, 2), k.s3)
		c.IMUL3Q(operand.U32(kind.bytes), k.cols, k.panel)
		c.LEAQ(index(k.panel, k.panel, 2), k.panel3)
		c.param("t", left)
		for _, t := range []int{1, 2} {
			c.CMPQ(left, imm(t))
			c.JEQ(operand.LabelRef(fmt.Sprintf("rows%d", t)))
		}
		for _, t := range []int{4, 2, 1} {
			// run multiplies p panels with all rows.
			run := func(p int) {
				c.MOVQ(k.dst, k.out)
				c.param("x", k.row)
				if t < 4 {
					k.multiply(p, t)
				} else {
					c.param("t", left)
					groups := c.label("groups")
					c.Label(groups)
					k.multiply(p, t)
					// src and row stand at the end of the columns.
					c.SUBQ(k.panel, k.src)
					c.MOVQ(k.cols, k.count)
					c.SHLQ(imm(2), k.count)
					c.SUBQ(k.count, k.row)
					c.LEAQ(index(k.row, k.s, 4), k.row)
					c.SUBQ(imm(t), left)
					c.JNZ(operand.LabelRef(groups))
					c.ADDQ(k.panel, k.src)
				}
				switch p {
				case 2:
					c.ADDQ(k.panel, k.src)
				case 4:
					c.ADDQ(k.panel3, k.src)
				}
				c.add(64*p, k.dst)
			}
			c.Label(fmt.Sprintf("rows%d", t))
			many, few, end := c.label("many"), c.label("few"), c.label("end")
			if p := together[t]; p > 1 {
				c.Label(many)
				c.CMPQ(k.panels, imm(p))
				c.JLT(operand.LabelRef(few))
				run(p)
				c.SUBQ(imm(p), k.panels)
				c.JMP(operand.LabelRef(many))
			}
			c.Label(few)
			c.TESTQ(k.panels, k.panels)
			c.JZ(operand.LabelRef(end))
			c.loop(k.panels, func() { run(1) })
			c.Label(end)
			c.end()
		}
	}
}

// multiply goes down the columns of p panels with t rows of activations and stores the sums at out.
func (k *float) multiply(p, t int) {
	parts := k.parts()
	sum := func(i, r, part int) reg.Register { return k.r[(i*t+r)*parts+part] }
	w, x := k.r[8:12], k.r[12]
	for i := range p * t * parts {
		k.VXORPS(k.r[i], k.r[i], k.r[i])
	}
	step := func(columns int) {
		for column := range columns {
			for i := range p {
				for part := range parts {
					k.load(k.weight(i, k.bytes*column+k.bytes/parts*part), w[(i*parts+part)%4])
				}
				if p*parts <= 4 && i < p-1 {
					continue // all weights are loaded before the rows
				}
				first := i
				if p*parts <= 4 {
					first = 0
				}
				for r := range t {
					if t > 1 || first == 0 {
						k.VBROADCASTSS(k.activation(r, column), x)
					}
					for j := first; j <= i; j++ {
						for part := range parts {
							k.VFMADD231PS(x, w[(j*parts+part)%4], sum(j, r, part))
						}
					}
				}
			}
		}
		k.add(k.bytes*columns, k.src)
		k.add(4*columns, k.row)
	}
	const unroll = 4
	tail, done := k.label("tail"), k.label("done")
	k.MOVQ(k.cols, k.count)
	k.SHRQ(imm(2), k.count)
	k.JZ(operand.LabelRef(tail))
	k.loop(k.count, func() { step(unroll) })
	k.Label(tail)
	k.MOVQ(k.cols, k.count)
	k.ANDQ(imm(unroll-1), k.count)
	k.JZ(operand.LabelRef(done))
	k.loop(k.count, func() { step(1) })
	k.Label(done)
	for r := range t {
		for i := range p {
			for part := range parts {
				k.VMOVUPS(sum(i, r, part), at(k.out, 64*i+k.width*part))
			}
		}
		k.ADDQ(k.stride, k.out)
	}
}

// activation is a column of row r.
func (k *float) activation(r, column int) operand.Mem {
	m := operand.Mem{Base: k.row, Disp: 4 * column}
	switch r {
	case 1, 2:
		m.Index, m.Scale = k.s, uint8(r)
	case 3:
		m.Index, m.Scale = k.s3, 1
	}
	return m
}

// weight is memory of panel p.
func (k *float) weight(p, disp int) operand.Mem {
	m := operand.Mem{Base: k.src, Disp: disp}
	switch p {
	case 1, 2:
		m.Index, m.Scale = k.panel, uint8(p)
	case 3:
		m.Index, m.Scale = k.panel3, 1
	}
	return m
}

// load loads weights as float32.
func (k *float) load(m operand.Mem, r reg.Register) {
	switch k.name {
	case "F32":
		k.VMOVUPS(m, r)
	case "F16":
		k.VCVTPH2PS(m, r)
	default:
		k.VPMOVZXWD(m, r)
		k.VPSLLD(imm(16), r, r)
	}
}
