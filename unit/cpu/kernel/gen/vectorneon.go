package main

import "math"

// vectorNEON writes the vector operations of arm64: as those of amd64, in steps of 16 elements, so four registers.
func vectorNEON(a *arm) {
	elementwiseNEON(a)
	activationsNEON(a)
	reductionsNEON(a)
	for _, half := range []bool{false, true} {
		dotRowsNEON(a, half)
		addRowsNEON(a, half)
	}
	ropeNEON(a)
	quantizeNEON(a)
	q8NEON(a)
	packNEON(a)
	ceilingsNEON(a)
}

// steps runs body for each register of n elements with the displacement from pointers, which it advances.
func (a *arm) steps(n x, body func(disp int), pointers ...x) {
	a.op("LSR $4, %v, %v", n, n)
	a.loop(n, func() {
		for i := range 4 {
			body(16 * i)
		}
		for _, p := range pointers {
			a.op("ADD $64, %v, %v", p, p)
		}
	})
}

// fillParam fills a register with a float32 parameter.
func (a *arm) fillParam(name string, d v, temporary x) {
	a.op("MOVWU %s+%d(FP), %v", name, a.arguments[name], temporary)
	a.fill(d, temporary)
}

// number fills a register with a number.
func (a *arm) number(d v, f float64, temporary x) {
	a.constant(d, math.Float32bits(float32(f)), temporary)
}

func elementwiseNEON(a *arm) {
	const dst, p, q, n, tmp = x(0), x(1), x(2), x(3), x(4)
	a.begin("scaleMulNEON", "computes dst = x * f * w.", 0, "dst *float32", "x *float32", "w *float32", "n int", "f float32")
	a.param("dst", dst)
	a.param("x", p)
	a.param("w", q)
	a.param("n", n)
	a.fillParam("f", 0, tmp)
	a.steps(n, func(d int) {
		a.load(16, 1, p, d)
		a.load(16, 2, q, d)
		a.fmul(1, 1, 0)
		a.fmul(1, 1, 2)
		a.store(16, 1, dst, d)
	}, dst, p, q)
	a.op("RET")

	a.begin("scaleNEON", "computes dst = x * f.", 0, "dst *float32", "x *float32", "n int", "f float32")
	a.param("dst", dst)
	a.param("x", p)
	a.param("n", n)
	a.fillParam("f", 0, tmp)
	a.steps(n, func(d int) {
		a.load(16, 1, p, d)
		a.fmul(1, 1, 0)
		a.store(16, 1, dst, d)
	}, dst, p)
	a.op("RET")

	a.begin("addNEON", "computes dst = a + b.", 0, "dst *float32", "a *float32", "b *float32", "n int")
	a.param("dst", dst)
	a.param("a", p)
	a.param("b", q)
	a.param("n", n)
	a.steps(n, func(d int) {
		a.load(16, 1, p, d)
		a.load(16, 2, q, d)
		a.fadd(1, 1, 2)
		a.store(16, 1, dst, d)
	}, dst, p, q)
	a.op("RET")

	a.begin("toHalfNEON", "rounds to half precision.", 0, "dst *uint16", "src *float32", "n int")
	a.param("dst", dst)
	a.param("src", p)
	a.param("n", n)
	a.op("LSR $4, %v, %v", n, n)
	a.loop(n, func() {
		for i := range 4 {
			a.load(16, v(i), p, 16*i)
		}
		for i := range 2 {
			a.toHalf(v(4+i), v(2*i))
			a.toHalf2(v(4+i), v(2*i+1))
			a.store(16, v(4+i), dst, 16*i)
		}
		a.op("ADD $32, %v, %v", dst, dst)
		a.op("ADD $64, %v, %v", p, p)
	})
	a.op("RET")

	a.begin("fromHalfNEON", "widens half precision.", 0, "dst *float32", "src *uint16", "n int")
	a.param("dst", dst)
	a.param("src", p)
	a.param("n", n)
	a.op("LSR $4, %v, %v", n, n)
	a.loop(n, func() {
		a.loadHalves(0, p, 4)
		for i := range 4 {
			a.store(16, v(i), dst, 16*i)
		}
		a.op("ADD $64, %v, %v", dst, dst)
		a.op("ADD $32, %v, %v", p, p)
	})
	a.op("RET")
}

// loadHalves loads 16 halves at base as float32 into d to d+3.
func (a *arm) loadHalves(d v, base x, temporary v) {
	for i := range 2 {
		a.load(16, temporary, base, 16*i)
		a.fromHalf(d+v(2*i), temporary)
		a.fromHalf2(d+v(2*i)+1, temporary)
	}
}

// The constants of exp have registers of their own.
const (
	expHigh v = 16 + iota
	expLow
	expLog2e
	expMagic
	expLn2High
	expLn2Low
	expOne
	expCoef // and five more
	expFree = expCoef + 6
)

func (a *arm) expConstants(temporary x) {
	for i, f := range []float64{88, -87.3, math.Log2E, 12582912, -0.693359375, 2.12194440e-4, 1,
		1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1} {
		a.number(expHigh+v(i), f, temporary)
	}
}

// exp computes v0 = exp(v0) with v1 to v5.
func (a *arm) exp() {
	const x, n, k, t = v(0), v(1), v(2), v(3)
	p, q := v(4), v(5)
	a.three(0x4ea0f400, "fmin.4s", x, x, expHigh)
	a.move(n, expMagic)
	a.fmla(n, x, expLog2e)
	a.wordsLeft(k, n, 23)
	a.fsub(n, n, expMagic)
	a.move(t, x)
	a.fmla(t, n, expLn2High)
	a.fmla(t, n, expLn2Low)
	a.move(p, expCoef)
	for i := range v(5) {
		a.move(q, expCoef+1+i)
		a.fmla(q, p, t)
		p, q = q, p
	}
	a.fadd(n, t, expOne)
	a.fmul(t, t, t)
	a.fmla(n, p, t)
	a.add(n, n, k)
	a.fgreater(k, expLow, x)
	a.three(0x4e601c00, "bic.16b", x, n, k)
}

func activationsNEON(a *arm) {
	const dst, gate, up, n, tmp = x(0), x(1), x(2), x(3), x(4)
	gated := func(name, doc string, constants, argument func()) {
		a.begin(name, doc, 0, "dst *float32", "gate *float32", "up *float32", "n int")
		a.param("dst", dst)
		a.param("gate", gate)
		a.param("up", up)
		a.param("n", n)
		a.expConstants(tmp)
		constants()
		a.steps(n, func(d int) {
			a.load(16, 8, gate, d)
			a.load(16, 9, up, d)
			argument()
			a.exp()
			a.fadd(0, 0, expOne)
			a.fdiv(8, 8, 0)
			a.fmul(8, 8, 9)
			a.store(16, 8, dst, d)
		}, dst, gate, up)
		a.op("RET")
	}
	gated("geluMulNEON", "computes dst = gelu(gate) * up.", func() {
		a.number(expFree, -1.5957691216057308, tmp)
		a.number(expFree+1, -0.07135481627105426, tmp)
	}, func() {
		a.fmul(1, 8, 8)
		a.move(0, expFree)
		a.fmla(0, 1, expFree+1)
		a.fmul(0, 0, 8)
	})
	negate := func(d, n v) { a.two(0x6ea0f800, "fneg.4s", d, n) }
	gated("siluMulNEON", "computes dst = silu(gate) * up.", func() {}, func() { negate(0, 8) })

	const limit, value, near, magnitude, square = v(15), v(8), v(9), v(10), v(11)
	p, q := v(9), v(12)
	a.begin("softcapNEON", "computes x = limit * tanh(x/limit).", 0, "x *float32", "n int", "limit float32")
	a.param("x", dst)
	a.param("n", n)
	a.fillParam("limit", limit, tmp)
	a.expConstants(tmp)
	a.number(expFree, 2, tmp)
	a.number(expFree+1, 0.625, tmp)
	a.constant(14, 0x80000000, tmp)
	// The coefficients of the polynomial are filled in as they are used: registers are short, and this is rare.
	coef := []float64{-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1}
	a.steps(n, func(d int) {
		a.load(16, value, dst, d)
		a.fdiv(value, value, limit)
		a.fmul(square, value, value)
		p, q = near, 12
		a.number(p, coef[0], tmp)
		for _, f := range coef[1:] {
			a.number(q, f, tmp)
			a.fmla(q, p, square)
			p, q = q, p
		}
		a.fmul(p, p, square)
		a.move(13, value)
		a.fmla(13, p, value)
		a.two(0x4ea0f800, "fabs.4s", magnitude, value)
		a.fadd(0, magnitude, magnitude)
		a.exp()
		a.fadd(0, 0, expOne)
		a.fdiv(0, expFree, 0)
		a.fsub(0, expOne, 0)
		a.and(value, value, 14)
		a.or(0, 0, value)
		a.fgreater(1, expFree+1, magnitude)
		a.selects(1, 13, 0)
		a.fmul(1, 1, limit)
		a.store(16, 1, dst, d)
	}, dst)
	a.op("RET")
}

func reductionsNEON(a *arm) {
	const p, sums, n, tmp = x(0), x(1), x(2), x(3)
	lane := func(d int) v { return v(8 + d/16) }
	move := func(f func(size int, d v, base x, disp int)) {
		for i := range 4 {
			f(16, v(8+i), sums, 16*i)
		}
	}
	begin := func(name, doc string, more ...string) {
		a.begin(name, doc, 0, append([]string{"x *float32", "n int", "lanes *float32"}, more...)...)
		a.param("x", p)
		a.param("n", n)
		a.param("lanes", sums)
		move(a.load)
	}
	begin("sumSquaresNEON", "adds x² to 16 lanes.")
	a.steps(n, func(d int) {
		a.load(16, 0, p, d)
		a.fmla(lane(d), 0, 0)
	}, p)
	move(a.store)
	a.op("RET")

	begin("maximumNEON", "raises 16 lanes to the largest of x.")
	a.steps(n, func(d int) {
		a.load(16, 0, p, d)
		a.fgreater(1, 0, lane(d)) // a NaN in x is not greater
		a.three(0x6ea01c00, "bit.16b", lane(d), 0, 1)
	}, p)
	move(a.store)
	a.op("RET")

	begin("expSumNEON", "computes x = exp(x-most) and adds it to 16 lanes.", "most float32")
	a.fillParam("most", 6, tmp)
	a.expConstants(tmp)
	a.steps(n, func(d int) {
		a.load(16, 0, p, d)
		a.fsub(0, 0, 6)
		a.exp()
		a.store(16, 0, p, d)
		a.fadd(lane(d), lane(d), 0)
	}, p)
	move(a.store)
	a.op("RET")
}

// dotRowsNEON takes four rows at a time; each has 16 partial sums.
func dotRowsNEON(a *arm, half bool) {
	typ, suffix, shift := element(half)
	const scores, q, k, rows, stride, n, qp, count, kp = x(0), x(1), x(2), x(3), x(4), x(5), x(6), x(7), x(8)
	a.begin("dotRows"+suffix+"NEON", "computes scores[i] = q · k[i*stride:][:n]; n is a multiple of 16.", 0,
		"scores *float32", "q *float32", "k *"+typ, "rows int", "stride int", "n int")
	a.param("scores", scores)
	a.param("q", q)
	a.param("k", k)
	a.param("rows", rows)
	a.param("stride", stride)
	a.op("LSL $%d, %v, %v", shift, stride, stride)
	a.param("n", n)
	rowsAt := func(together int) {
		for i := range 4 * together {
			a.zero(v(i))
		}
		a.op("MOVD %v, %v", q, qp)
		a.op("MOVD %v, %v", k, kp)
		for r := 1; r < together; r++ {
			a.op("ADD %v, %v, %v", stride, kp+x(r)-1, kp+x(r))
		}
		a.op("LSR $4, %v, %v", n, count)
		a.loop(count, func() {
			for i := range 4 {
				a.load(16, v(16+i), qp, 16*i)
			}
			for r := range together {
				if half {
					a.loadHalves(20, kp+x(r), 24)
				} else {
					for i := range 4 {
						a.load(16, v(20+i), kp+x(r), 16*i)
					}
				}
				for i := range 4 {
					a.fmla(v(4*r+i), v(16+i), v(20+i))
				}
				a.op("ADD $%d, %v, %v", 16<<shift, kp+x(r), kp+x(r))
			}
			a.op("ADD $64, %v, %v", qp, qp)
		})
		for r := range together {
			s := v(4 * r)
			a.fadd(s, s, s+2) // lanes i and i+8
			a.fadd(s+1, s+1, s+3)
			a.fadd(s, s, s+1)                                 // i and i+4
			a.three(0x6e004000|8<<11, "ext.16b #8", 20, s, s) // i and i+2
			a.fadd(s, s, 20)
			a.two(0x7e30d800, "faddp.2s", s, s)
			a.store(4, s, scores, 4*r)
		}
		a.op("ADD $%d, %v, %v", 4*together, scores, scores)
		a.op("MOVD $%d, %v", together, count)
		a.op("MADD %v, %v, %v, %v", stride, k, count, k)
		a.op("SUB $%d, %v, %v", together, rows, rows)
	}
	a.place("four")
	a.op("CMP $4, %v", rows)
	a.op("BLT one")
	rowsAt(4)
	a.op("B four")
	a.place("one")
	a.op("CBZ %v, end", rows)
	rowsAt(1)
	a.op("B one")
	a.place("end")
	a.op("RET")
}

// addRowsNEON keeps up to eight registers of the result while it goes down the rows.
func addRowsNEON(a *arm, half bool) {
	typ, suffix, shift := element(half)
	const dst, w, values, rows, stride, n, wp, count, vp = x(0), x(1), x(2), x(3), x(4), x(5), x(6), x(7), x(8)
	a.begin("addRows"+suffix+"NEON", "computes dst += Σ w[i]*v[i*stride:][:n], i ascending; n is a multiple of 16.", 0,
		"dst *float32", "w *float32", "v *"+typ, "rows int", "stride int", "n int")
	a.param("dst", dst)
	a.param("w", w)
	a.param("v", values)
	a.param("rows", rows)
	a.param("stride", stride)
	a.op("LSL $%d, %v, %v", shift, stride, stride)
	a.param("n", n)
	columns := func(steps int) {
		for i := range 4 * steps {
			a.load(16, v(i), dst, 16*i)
		}
		a.op("MOVD %v, %v", w, wp)
		a.op("MOVD %v, %v", values, vp)
		a.op("MOVD %v, %v", rows, count)
		a.loop(count, func() {
			a.load(4, 16, wp, 0)
			a.op("ADD $4, %v, %v", wp, wp)
			for i := range 4 * steps {
				switch {
				case !half:
					a.load(16, v(20+i%4), vp, 16*i)
				case i%2 == 0:
					a.load(16, 24, vp, 8*i)
					a.fromHalf(v(20+i%4), 24)
				default:
					a.fromHalf2(v(20+i%4), 24)
				}
				a.fmlaElement(v(i), v(20+i%4), 16, 0)
			}
			a.op("ADD %v, %v, %v", stride, vp, vp)
		})
		for i := range 4 * steps {
			a.store(16, v(i), dst, 16*i)
		}
		a.op("ADD $%d, %v, %v", 64*steps, dst, dst)
		a.op("ADD $%d, %v, %v", 16*steps<<shift, values, values)
		a.op("SUB $%d, %v, %v", 16*steps, n, n)
	}
	a.place("many")
	a.op("CMP $32, %v", n)
	a.op("BLT few")
	columns(2)
	a.op("B many")
	a.place("few")
	a.op("CBZ %v, end", n)
	columns(1)
	a.op("B few")
	a.place("end")
	a.op("RET")
}

func ropeNEON(a *arm) {
	const p, q, cos, sin, n = x(0), x(1), x(2), x(3), x(4)
	// turn turns the pairs (v0, v1) by the angles of v2 and v3 into (v4, v1).
	turn := func() {
		a.fmul(4, 0, 2)
		a.fmul(5, 1, 3)
		a.fsub(4, 4, 5)
		a.fmul(1, 1, 2)
		a.fmul(0, 0, 3)
		a.fadd(1, 1, 0)
	}
	a.begin("ropeHalvesNEON", "turns the pairs (a[i], b[i]).", 0, "a *float32", "b *float32", "cos *float32", "sin *float32", "n int")
	a.param("a", p)
	a.param("b", q)
	a.param("cos", cos)
	a.param("sin", sin)
	a.param("n", n)
	a.steps(n, func(d int) {
		a.load(16, 0, p, d)
		a.load(16, 1, q, d)
		a.load(16, 2, cos, d)
		a.load(16, 3, sin, d)
		turn()
		a.store(16, 4, p, d)
		a.store(16, 1, q, d)
	}, p, q, cos, sin)
	a.op("RET")

	a.begin("ropePairsNEON", "turns the n pairs (x[2i], x[2i+1]).", 0, "x *float32", "cos *float32", "sin *float32", "n int")
	a.param("x", p)
	a.param("cos", cos)
	a.param("sin", sin)
	a.param("n", n)
	a.steps(n, func(d int) {
		a.load(16, 6, p, 2*d)
		a.load(16, 7, p, 2*d+16)
		a.three(0x4e801800, "uzp1.4s", 0, 6, 7)
		a.three(0x4e805800, "uzp2.4s", 1, 6, 7)
		a.load(16, 2, cos, d)
		a.load(16, 3, sin, d)
		turn()
		a.three(0x4e803800, "zip1.4s", 6, 4, 1)
		a.three(0x4e807800, "zip2.4s", 7, 4, 1)
		a.store(16, 6, p, 2*d)
		a.store(16, 7, p, 2*d+16)
	}, p, p, cos, sin)
	a.op("RET")
}
