package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// tiles writes attention of four queries at once over the same rows, for AVX-512: every row is loaded and widened once.
func (c *vector) tiles() {
	if c.width < 64 {
		return
	}
	for _, half := range []bool{false, true} {
		c.dotTile(half)
		c.addTile(half)
	}
}

// strided is row i, up to 3, of a stride.
func strided(base, stride, stride3 reg.Register, i, disp int) operand.Mem {
	m := operand.Mem{Base: base, Disp: disp}
	switch i {
	case 1, 2:
		m.Index, m.Scale = stride, uint8(i)
	case 3:
		m.Index, m.Scale = stride3, 1
	}
	return m
}

// strides loads a stride in elements as bytes, and three times it.
func (c *vector) strides(name string, shift int, r, r3 reg.Register) {
	c.param(name, r)
	c.SHLQ(imm(shift), r)
	c.LEAQ(index(r, r, 2), r3)
}

func (c *vector) dotTile(half bool) {
	typ, suffix, shift := element(half)
	c.function("dotTile"+suffix, "func(scores, q *float32, k *"+typ+", sstride, qstride, kstride, rows, n int)",
		"computes scores[a*sstride+i] = q[a*qstride:][:n] · k[i*kstride:][:n] for four a; rows is a multiple of 4, n of 16.")
	scores, q, k, rows, n := reg.RAX, reg.RBX, reg.RSI, reg.RDX, reg.RDI
	ss, ss3, qs, qs3, ks, ks3 := reg.R8, reg.R9, reg.R10, reg.R11, reg.R12, reg.R13
	column := reg.R15
	z := []reg.Register{reg.Z0, reg.Z1, reg.Z2, reg.Z3, reg.Z4, reg.Z5, reg.Z6, reg.Z7, reg.Z8, reg.Z9, reg.Z10, reg.Z11, reg.Z12, reg.Z13, reg.Z14, reg.Z15}
	query := []reg.Register{reg.Z16, reg.Z17, reg.Z18, reg.Z19}
	key := reg.Z20
	c.param("scores", scores)
	c.param("q", q)
	c.param("k", k)
	c.strides("sstride", 2, ss, ss3)
	c.strides("qstride", 2, qs, qs3)
	c.strides("kstride", shift, ks, ks3)
	c.param("rows", rows)
	c.param("n", n)
	c.SHRQ(imm(4), n)
	c.SHRQ(imm(2), rows)
	c.loop(rows, func() {
		for _, r := range z {
			c.VPXORD(r, r, r)
		}
		c.MOVQ(n, column)
		c.loop(column, func() {
			for a := range 4 {
				c.VMOVUPS(strided(q, qs, qs3, a, 0), query[a])
			}
			for i := range 4 {
				m := strided(k, ks, ks3, i, 0)
				c.PREFETCHT0(strided(k, ks, ks3, i, tileAhead))
				if half {
					c.VCVTPH2PS(m, key)
				} else {
					c.VMOVUPS(m, key)
				}
				for a := range 4 {
					c.VFMADD231PS(key, query[a], z[4*a+i])
				}
			}
			c.add(64, q)
			c.add(16<<shift, k)
		})
		// Back to the first column, and on to the next rows.
		c.MOVQ(n, column)
		c.SHLQ(imm(6), column)
		c.SUBQ(column, q)
		if half {
			c.SHRQ(imm(1), column)
		}
		c.SUBQ(column, k)
		c.LEAQ(index(k, ks, 4), k)
		c.sumSixteen(z, reg.Z21)
		c.VMOVUPS(xmm(z[0]), strided(scores, ss, ss3, 0, 0))
		for a := 1; a < 4; a++ {
			c.VEXTRACTF32X4(imm(a), z[0], strided(scores, ss, ss3, a, 0))
		}
		c.add(16, scores)
	})
	c.end()
}

// sumSixteen adds the lanes of sixteen registers, i and i+8, then i+4, i+2 and i+1, and leaves the sum of z[4*a+i] in lane
// 4*a+i of z[0].
func (c *vector) sumSixteen(z []reg.Register, t reg.Register) {
	// both adds two registers made of parts of a and b, and leaves the sums in a.
	both := func(a, b reg.Register, shuffle func(first bool, b, a, out reg.Register)) {
		shuffle(false, b, a, t)
		shuffle(true, b, a, a)
		c.VADDPS(t, a, a)
	}
	quarters := func(even, odd int) func(bool, reg.Register, reg.Register, reg.Register) {
		return func(first bool, b, a, out reg.Register) {
			if first {
				c.VSHUFF64X2(imm(even), b, a, out)
			} else {
				c.VSHUFF64X2(imm(odd), b, a, out)
			}
		}
	}
	for i := range 4 { // register i becomes four lanes each of the accumulators i, i+4, i+8 and i+12
		for a := 0; a < 16; a += 8 {
			both(z[a+i], z[a+i+4], quarters(0x44, 0xee))
		}
		both(z[i], z[i+8], quarters(0x88, 0xdd))
	}
	for i := 0; i < 4; i += 2 {
		both(z[i], z[i+1], func(first bool, b, a, out reg.Register) {
			if first {
				c.VUNPCKLPD(b, a, out)
			} else {
				c.VUNPCKHPD(b, a, out)
			}
		})
	}
	both(z[0], z[2], func(first bool, b, a, out reg.Register) {
		if first {
			c.VSHUFPS(imm(0x88), b, a, out)
		} else {
			c.VSHUFPS(imm(0xdd), b, a, out)
		}
	})
}

func (c *vector) addTile(half bool) {
	typ, suffix, shift := element(half)
	c.function("addTile"+suffix, "func(dst, w *float32, v *"+typ+", dstride, wstride, vstride, rows, n int)",
		"computes dst[a*dstride:][:n] += Σ w[a*wstride+i]*v[i*vstride:][:n], i ascending, for four a; n is a multiple of 16.")
	dst, w, v, n := reg.RAX, reg.RBX, reg.RSI, reg.RDI
	ds, ds3, ws, ws3, vs := reg.R8, reg.R9, reg.R10, reg.R11, reg.R12
	wp, vp, left := reg.R13, reg.R15, reg.RCX
	sum := []reg.Register{reg.Z0, reg.Z1, reg.Z2, reg.Z3, reg.Z4, reg.Z5, reg.Z6, reg.Z7, reg.Z8, reg.Z9, reg.Z10, reg.Z11, reg.Z12, reg.Z13, reg.Z14, reg.Z15}
	weight := []reg.Register{reg.Z16, reg.Z17, reg.Z18, reg.Z19}
	value := []reg.Register{reg.Z20, reg.Z21, reg.Z22, reg.Z23}
	c.param("dst", dst)
	c.param("w", w)
	c.param("v", v)
	c.strides("dstride", 2, ds, ds3)
	c.strides("wstride", 2, ws, ws3)
	c.param("vstride", vs)
	c.SHLQ(imm(shift), vs)
	c.param("n", n)
	c.SHRQ(imm(4), n)
	columns := func(registers int) {
		for a := range 4 {
			for i := range registers {
				c.VMOVUPS(strided(dst, ds, ds3, a, 64*i), sum[4*a+i])
			}
		}
		c.MOVQ(w, wp)
		c.MOVQ(v, vp)
		c.param("rows", left)
		c.loop(left, func() {
			for i := range registers {
				m := at(vp, i*(16<<shift))
				c.PREFETCHT0(at(vp, i*(16<<shift)+tileAhead))
				if half {
					c.VCVTPH2PS(m, value[i])
				} else {
					c.VMOVUPS(m, value[i])
				}
			}
			for a := range 4 {
				c.VBROADCASTSS(strided(wp, ws, ws3, a, 0), weight[a])
				for i := range registers {
					c.VFMADD231PS(value[i], weight[a], sum[4*a+i])
				}
			}
			c.add(4, wp)
			c.ADDQ(vs, vp)
		})
		for a := range 4 {
			for i := range registers {
				c.VMOVUPS(sum[4*a+i], strided(dst, ds, ds3, a, 64*i))
			}
		}
		c.add(64*registers, dst)
		c.add(registers*(16<<shift), v)
	}
	c.Label("many")
	c.CMPQ(n, imm(4))
	c.JLT(operand.LabelRef("few"))
	columns(4)
	c.SUBQ(imm(4), n)
	c.JMP(operand.LabelRef("many"))
	c.Label("few")
	c.TESTQ(n, n)
	c.JZ(operand.LabelRef("end"))
	columns(1)
	c.DECQ(n)
	c.JMP(operand.LabelRef("few"))
	c.Label("end")
	c.end()
}

// tileAhead is how many bytes ahead rows are fetched. Without it attention of Llama 1B's shape, one token at depth 4096,
// took 1.3 to 1.5 times as long on two cores of a Xeon with AMX (f32: 18.2 to 21.6 ms instead of 14.5 to 14.9).
const tileAhead = 4096
