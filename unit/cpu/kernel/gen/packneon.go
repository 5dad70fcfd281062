package main

import "math"

// quantizeNEON writes one row of a tile's int8 form.
func quantizeNEON(a *arm) {
	const values, words, p, blocks, t, step, tmp, bits, sum, bound = x(0), x(1), x(2), x(3), x(4), x(5), x(6), x(7), x(8), x(9)
	a.begin("quantizeRowNEON", "writes row slot of a tile of t rows.", 0, "records *byte", "x *float32", "blocks int", "t int", "slot int")
	a.param("records", values)
	a.param("x", p)
	a.param("blocks", blocks)
	a.param("t", t)
	a.param("slot", step)
	a.op("ADD %v<<5, %v, %v", t, values, words)
	a.op("ADD %v<<2, %v, %v", step, words, words)
	a.op("ADD %v<<5, %v, %v", step, values, values)
	a.op("MOVD $%d, %v", recordBytes, tmp)
	a.op("MUL %v, %v, %v", tmp, t, step)
	a.op("LSL $2, %v, %v", t, t)
	a.op("MOVW $0x%x, %v", math.Float32bits(1e-30), bound)
	a.number(16, 12582912, tmp)
	a.number(17, 127, tmp)
	a.loop(blocks, func() {
		a.largest(p, bits)
		below, ready := a.label("below"), a.label("ready")
		a.op("CMPW %v, %v", bound, bits)
		a.op("BLO %s", below)
		a.op("FDIVS F17, F8, F18") // scale
		a.op("FDIVS F8, F17, F19") // its inverse
		a.op("B %s", ready)
		a.place(below)
		a.zero(18)
		a.zero(19)
		a.place(ready)
		for i := range 8 {
			a.fmulElement(v(i), v(i), 19, 0)
			a.fadd(v(i), v(i), 16)
			a.wordsLeft(v(i), v(i), 24)
			a.wordsRight(v(i), v(i), 24)
		}
		for i := range 2 {
			q := v(4 * i)
			a.narrow(22, q)
			a.store(16, 22, values, 16*i)
			a.add(q, q, q+1)
			a.add(q+2, q+2, q+3)
			a.add(q, q, q+2)
			a.two(0x4eb1b800, "addv.4s", v(23+i), q)
		}
		a.add(25, 23, 24)
		a.toFloat(26, 25)
		a.op("MOVD %v, %v", words, sum)
		store := func(r v) {
			a.store(4, r, sum, 0)
			a.op("ADD %v, %v, %v", t, sum, sum)
		}
		store(18)
		for _, r := range []v{25, 23, 24} {
			a.two(0x6ea0b800, "neg.4s", r, r)
			store(r)
		}
		store(26)
		a.op("ADD $128, %v, %v", p, p)
		a.op("ADD %v, %v, %v", step, values, values)
		a.op("ADD %v, %v, %v", step, words, words)
	})
	a.op("RET")
}

// packNEON writes the transposition of words of 16 rows, four rows at a time.
func packNEON(a *arm) {
	const dst, src, stride, blocks, to, step, quads, groups, row, count = x(0), x(1), x(2), x(3), x(4), x(5), x(6), x(7), x(8), x(12)
	const dstBlock, srcBlock, block, flip, toBlock = x(13), x(14), x(15), v(16), x(19)
	a.begin("packWordsNEON", "transposes, in each block, four words of 16 rows for each quad.", 0,
		"dst *byte", "src *byte", "stride int", "blocks int", "dstBlock int", "srcBlock int", "quads int", "step int", "flip uint32")
	a.param("dst", dst)
	a.param("src", src)
	a.param("stride", stride)
	a.param("dstBlock", dstBlock)
	a.param("srcBlock", srcBlock)
	a.param("quads", quads)
	a.param("step", step)
	a.fillParam("flip", flip, count)
	a.op("MOVD $4, %v", groups)
	a.loop(groups, func() {
		a.op("MOVD %v, %v", dst, toBlock)
		a.op("MOVD %v, %v", src, block)
		a.param("blocks", blocks)
		a.loop(blocks, func() {
			a.op("MOVD %v, %v", block, row)
			for r := range x(3) {
				a.op("ADD %v, %v, %v", stride, row+r, row+r+1)
			}
			a.op("MOVD %v, %v", toBlock, to)
			a.op("MOVD %v, %v", quads, count)
			a.loop(count, func() {
				for r := range 4 {
					a.load(16, v(r), row+x(r), 0)
					a.op("ADD $16, %v, %v", row+x(r), row+x(r))
				}
				for i := range v(2) {
					a.three(0x4e803800, "zip1.4s", 4+2*i, 2*i, 2*i+1) // a0 b0 a1 b1
					a.three(0x4e807800, "zip2.4s", 5+2*i, 2*i, 2*i+1)
				}
				a.three(0x4ec03800, "zip1.2d", 0, 4, 6)
				a.three(0x4ec07800, "zip2.2d", 1, 4, 6)
				a.three(0x4ec03800, "zip1.2d", 2, 5, 7)
				a.three(0x4ec07800, "zip2.2d", 3, 5, 7)
				for i := range v(4) {
					a.xor(i, i, flip)
					a.store(16, i, to, 0)
					a.op("ADD %v, %v, %v", step, to, to)
				}
			})
			a.op("ADD %v, %v, %v", dstBlock, toBlock, toBlock)
			a.op("ADD %v, %v, %v", srcBlock, block, block)
		})
		a.op("ADD $16, %v, %v", dst, dst)
		a.op("ADD %v<<2, %v, %v", stride, src, src)
	})
	a.op("RET")
}

func ceilingsNEON(a *arm) {
	const p, n = x(0), x(1)
	a.begin("readBytesNEON", "reads n bytes, a multiple of 512.", 0, "p *byte", "n int")
	a.param("p", p)
	a.param("n", n)
	a.op("LSR $9, %v, %v", n, n)
	a.loop(n, func() {
		for i := range 32 {
			a.load(16, v(i%16), p, 16*i)
		}
		a.op("ADD $512, %v, %v", p, p)
	})
	a.op("RET")
	for _, dot := range []bool{false, true} {
		name := "multiplyBytesNEON"
		if dot {
			name += "Dot"
		}
		a.begin(name, "multiplies 16 registers of bytes n times and adds up the products.", 0, "n int")
		a.param("n", n)
		a.loop(n, func() {
			for i := range v(16) {
				if dot {
					a.dot(i, 16, 17, 0)
					continue
				}
				a.multiplyLow(18, 16, 17)
				a.multiplyHigh(19, 16, 17)
				a.addWide(i, 18)
				a.addWide(i, 19)
			}
		})
		a.op("RET")
	}
}
