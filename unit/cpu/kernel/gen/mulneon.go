package main

import "fmt"

// neon is the state of one NEON product kernel while it is written. A register holds four rows, so a panel has four
// quarters. With the dot product instructions four rows of activations go at once; without, two; else
// one.
type neon struct {
	*arm
	integerKind
	dotProduct bool
	rows       int

	dst, stride, src, panels, blocks, t, left, out, first    x
	values, words, inner, scales, count, acc, tmp, t4, panel x
}

const (
	neonMask  v = 29 // 0x0f in each byte
	neonHigh  v = 30 // the bits above the low four, or the sign
	neonShift v = 31
	neonTemp  v = 28
)

func neonWeight(q int) v { return v(24 + q) }

func mulNEON(a *arm) {
	for _, dotProduct := range []bool{false, true} {
		for _, kind := range integerKinds {
			k := &neon{arm: a, integerKind: kind, dotProduct: dotProduct,
				dst: 0, stride: 1, src: 2, panels: 3, blocks: 4, t: 6, left: 7, out: 8, first: 10,
				values: 11, words: 12, inner: 13, scales: 14, count: 15, acc: 19, tmp: 20, t4: 22, panel: 24}
			k.write()
		}
	}
	floatNEON(a)
}

func (k *neon) write() {
	suffix, most := "NEON", 2
	if k.dotProduct {
		suffix, most = "NEONDot", 4
	}
	if k.split {
		most = 2
	}
	frame := 64 * most
	if k.split {
		frame *= 2 // see finishFirst
	}
	k.begin("mul"+k.name+suffix, fmt.Sprintf("multiplies n panels of %s with a tile of t activation rows.", k.name), frame,
		"dst *float32", "stride int", "panels *byte", "n int", "blocks int", "records *byte", "t int")
	k.param("dst", k.dst)
	k.param("stride", k.stride)
	k.op("LSL $2, %v, %v", k.stride, k.stride)
	k.param("panels", k.panel)
	k.param("n", k.panels)
	k.param("t", k.t)
	k.op("MOVD $sums-%d(SP), %v", frame, k.acc)
	k.arm.bytes(neonMask, 0x0f)
	k.arm.bytes(neonHigh, map[bool]uint32{false: 0x10, true: 0x30}[k.split])
	if k.name == "Q8_0" {
		k.arm.bytes(neonHigh, 0x80)
	}
	k.op("LSL $2, %v, %v", k.t, k.t4)
	k.op("CMP $%d, %v", most, k.t)
	k.op("BLT rows1")
	for _, rows := range []int{most, 1} {
		k.rows = rows
		k.place(fmt.Sprintf("rows%d", rows))
		k.loop(k.panels, func() {
			k.op("MOVD %v, %v", k.t, k.left)
			k.op("MOVD %v, %v", k.dst, k.out)
			groups := k.label("groups")
			k.place(groups)
			k.op("MOVD %v, %v", k.panel, k.src)
			k.op("SUB %v, %v, %v", k.left, k.t, k.first)
			k.param("records", k.values)
			k.op("ADD %v<<3, %v, %v", k.t4, k.values, k.words)
			k.op("ADD %v<<2, %v, %v", k.first, k.words, k.words)
			k.op("ADD %v<<5, %v, %v", k.first, k.values, k.values)
			k.zero(0)
			for i := range 4 * rows {
				k.store(16, 0, k.acc, 16*i)
			}
			k.param("blocks", k.blocks)
			k.loop(k.blocks, func() {
				k.block()
				k.op("ADD $%d, %v, %v", k.integerKind.bytes, k.src, k.src)
			})
			for r := range rows {
				for q := range 4 {
					k.load(16, 0, k.acc, 64*r+16*q)
					k.store(16, 0, k.out, 16*q)
				}
				k.op("ADD %v, %v, %v", k.stride, k.out, k.out)
			}
			k.op("SUBS $%d, %v, %v", rows, k.left, k.left)
			k.op("BNE %s", groups)
			k.op("MOVD %v, %v", k.src, k.panel)
			k.op("ADD $64, %v, %v", k.dst, k.dst)
		})
		k.op("RET")
	}
}

// block runs the sub-blocks of a block.
func (k *neon) block() {
	simple := func(codes, high int) {
		k.dots(0, 8, func(g, q int, w v) {
			k.half(k.src, codes+64*(g%4)+16*q, g/4, w)
			if high > 0 {
				k.addHigh(k.src, high+16*q, g, w)
			}
		})
		k.finish(k.halves(0), k.halves(32))
	}
	switch k.name {
	case "Q4_0":
		simple(32, 0)
	case "Q4_1":
		simple(64, 0)
	case "Q5_0":
		simple(96, 32)
	case "Q5_1":
		simple(128, 64)
	case "Q8_0":
		k.dots(0, 8, func(g, q int, w v) {
			k.load(16, w, k.src, 32+64*g+16*q)
			k.xor(w, w, neonHigh)
		})
		k.finish(k.halves(0), nil)
	case "Q4_K", "Q5_K":
		k.superBlock()
	case "Q6_K":
		k.op("MOVD %v, %v", k.src, k.inner)
		k.op("MOVD %v, %v", k.src, k.scales)
		k.op("MOVD $2, %v", k.count)
		k.loop(k.count, func() {
			for part := range 4 {
				for i := range 2 {
					k.dots(4*i, 4*i+4, func(g, q int, w v) {
						low := 288 + 128*g
						if part%2 == 1 {
							low = 288 + 1024 + 64*g
						}
						k.half(k.inner, low+16*q, part/2, w)
						k.addHigh(k.inner, 288+128*g+64+16*q, 2*part, w)
					})
					scale := k.widened(true, 32+32*part+16*i, 0)
					if i == 0 {
						k.finishFirst(scale)
					} else {
						k.finish(scale, nil)
					}
				}
			}
			k.op("ADD $1536, %v, %v", k.inner, k.inner)
			k.op("ADD $128, %v, %v", k.scales, k.scales)
		})
	}
}

// superBlock runs the eight sub-blocks of Q4_K and Q5_K.
func (k *neon) superBlock() {
	five := k.name == "Q5_K"
	pair := func(codes, stride int) {
		for sub := range 2 {
			k.dots(0, 8, func(g, q int, w v) {
				k.half(k.inner, codes+stride*g+16*q, sub, w)
				if five {
					k.load(16, neonTemp, k.src, 320+128*g+16*q)
					k.shiftBytes(neonTemp, neonTemp, neonShift)
					k.and(neonTemp, neonTemp, neonHigh)
					k.or(w, w, neonTemp)
				}
			})
			if five { // the next sub-block's bit is one to the left
				k.arm.bytes(neonTemp, 0xff)
				k.three(0x4e208400, "add.16b", neonShift, neonShift, neonTemp)
			}
			k.finish(k.widened(false, 64+16*sub, 0), k.widened(false, 64+128+16*sub, 32))
		}
		k.op("ADD $32, %v, %v", k.scales, k.scales)
	}
	k.op("MOVD %v, %v", k.src, k.inner)
	k.op("MOVD %v, %v", k.src, k.scales)
	count, codes := 4, 320
	if five {
		k.arm.bytes(neonShift, 4) // left by 4 brings bit 0 to bit 4
		pair(384, 128)
		count, codes = 3, 1344
	}
	k.op("MOVD $%d, %v", count, k.count)
	k.loop(k.count, func() {
		pair(codes, 64)
		k.op("ADD $512, %v, %v", k.inner, k.inner)
	})
}

// half takes the low (0) or high (1) halves of 16 bytes.
func (k *neon) half(base x, disp, half int, w v) {
	k.load(16, w, base, disp)
	if half == 1 {
		k.bytesRight(w, w, 4)
	} else {
		k.and(w, w, neonMask)
	}
}

// addHigh adds bits from bit on as bits from 4 on, as far as the mask keeps them.
func (k *neon) addHigh(base x, disp, bit int, w v) {
	k.load(16, neonTemp, base, disp)
	switch {
	case bit < 4:
		k.bytesLeft(neonTemp, neonTemp, 4-bit)
	case bit > 4:
		k.bytesRight(neonTemp, neonTemp, bit-4)
	}
	k.and(neonTemp, neonTemp, neonHigh)
	k.or(w, w, neonTemp)
}

// sum is the register of a sum of products; without the dot product there are two of two rows each.
func (k *neon) sum(r, q int) v {
	if k.dotProduct {
		return v(4*r + q)
	}
	return v(8*r + 2*q)
}

// activation holds the values of row r of group g.
func (k *neon) activation(r, g int) v { return v(16 + 2*r + g/4) }

// dots sums the products of groups [lo, hi); afterwards sum(r, q) is complete.
func (k *neon) dots(lo, hi int, load func(g, q int, w v)) {
	for r := range k.rows {
		for half := range 2 {
			k.load(16, v(16+2*r+half), k.values, 32*r+16*half)
		}
		for q := range 4 {
			k.zero(k.sum(r, q))
			if !k.dotProduct {
				k.zero(k.sum(r, q) + 1)
			}
		}
	}
	for g := lo; g < hi; g++ {
		for q := range 4 {
			load(g, q, neonWeight(q))
		}
		for r := range k.rows {
			if k.dotProduct {
				for q := range 4 {
					k.dot(k.sum(r, q), neonWeight(q), k.activation(r, g), g%4)
				}
				continue
			}
			const act, low, high = v(20), v(21), v(22)
			k.broadcast(act, k.activation(r, g), g%4)
			for q := range 4 {
				k.multiplyLow(low, neonWeight(q), act)
				k.multiplyHigh(high, neonWeight(q), act)
				k.addWide(k.sum(r, q), low)
				k.addWide(k.sum(r, q)+1, high)
			}
		}
	}
	at := 1 // word of the record whose multiple the offset of the codes takes away
	switch {
	case hi-lo == 8:
	case lo == 0:
		at = 2
	default:
		at = 3
	}
	k.op("MOVD %v, %v", k.words, k.tmp)
	for range at {
		k.op("ADD %v, %v, %v", k.t4, k.tmp, k.tmp)
	}
	for r := range k.rows {
		offset := k.integerKind.shift > 0 && k.name != "Q8_0"
		if offset {
			k.load(4, neonTemp, k.tmp, 4*r)
			k.broadcast(neonTemp, neonTemp, 0)
			k.wordsLeft(neonTemp, neonTemp, k.integerKind.shift)
		}
		for q := range 4 {
			s := k.sum(r, q)
			if !k.dotProduct {
				k.addPairs(s, s, s+1)
			}
			if offset {
				k.add(s, s, neonTemp)
			}
		}
	}
}

// halves loads 16 scales of half precision into d to d+3.
func (k *neon) halves(disp int) func(d v) {
	return func(d v) {
		for i := range 2 {
			k.load(16, neonTemp, k.src, disp+16*i)
			k.fromHalf(d+v(2*i), neonTemp)
			k.fromHalf2(d+v(2*i)+1, neonTemp)
		}
	}
}

// widened multiplies 16 byte scales with those of half precision at whole.
func (k *neon) widened(signed bool, disp, whole int) func(d v) {
	return func(d v) {
		const low = v(27)
		for i := range 2 {
			k.load(8, low, k.scales, disp+8*i)
			k.widenBytes(signed, low, low)
			k.widenHalves(signed, false, d+v(2*i), low)
			k.widenHalves(signed, true, d+v(2*i)+1, low)
		}
		for q := range v(4) {
			if q%2 == 0 {
				k.load(16, neonTemp, k.src, whole+8*int(q))
				k.fromHalf(low, neonTemp)
			} else {
				k.fromHalf2(low, neonTemp)
			}
			k.toFloat(d+q, d+q)
			k.fmul(d+q, d+q, low)
		}
	}
}

// finishFirst keeps the scaled sums of the first half of a sub-block in the second half of the frame.
func (k *neon) finishFirst(scale func(d v)) {
	scale(20)
	for r := range k.rows {
		for q := range 4 {
			s := k.sum(r, q)
			k.toFloat(s, s)
			k.fmul(s, s, v(20+q))
			k.store(16, s, k.acc, 128+64*r+16*q)
		}
	}
}

// finish scales the sums, adds them up, and goes to the next record.
func (k *neon) finish(scale, min func(d v)) {
	scale(16)
	if k.min {
		min(20)
		k.op("ADD %v<<2, %v, %v", k.t4, k.words, k.tmp)
	}
	const factor, sum, term = v(24), v(25), v(26)
	for r := range k.rows {
		k.load(4, factor, k.words, 4*r)
		if k.min {
			k.load(4, sum, k.tmp, 4*r)
		}
		for q := range 4 {
			s := k.sum(r, q)
			k.toFloat(s, s)
			if k.split {
				k.load(16, term, k.acc, 128+64*r+16*q)
				k.fmla(term, s, v(16+q))
				k.move(s, term)
			} else {
				k.fmul(s, s, v(16+q))
			}
			switch {
			case k.min && k.negate:
				k.fmlsElement(s, v(20+q), sum, 0)
			case k.min:
				k.fmlaElement(s, v(20+q), sum, 0)
			}
			k.load(16, term, k.acc, 64*r+16*q)
			k.fmlaElement(term, s, factor, 0)
			k.store(16, term, k.acc, 64*r+16*q)
		}
	}
	// A record is 13 words a row.
	for _, p := range []x{k.values, k.words} {
		k.op("ADD %v<<3, %v, %v", k.t4, p, p)
		k.op("ADD %v<<2, %v, %v", k.t4, p, p)
		k.op("ADD %v, %v, %v", k.t4, p, p)
	}
}

// floatNEON writes the products of floating point weights, with four rows of activations or one.
func floatNEON(a *arm) {
	for _, kind := range floatKinds {
		dst, stride, src, panels, cols, s, t, left, out, count, panel, row := x(0), x(1), x(2), x(3), x(4), x(5), x(6), x(7), x(8), x(9), x(10), x(11)
		rowOf := func(r int) x { return row + x(r) }
		a.begin("mul"+kind.name+"NEON", fmt.Sprintf("multiplies n panels of %s with t activation rows.", kind.name), 0,
			"dst *float32", "stride int", "panels *byte", "n int", "cols int", "x *float32", "xstride int", "t int")
		a.param("dst", dst)
		a.param("stride", stride)
		a.op("LSL $2, %v, %v", stride, stride)
		a.param("panels", panel)
		a.param("n", panels)
		a.param("cols", cols)
		a.param("xstride", s)
		a.op("LSL $2, %v, %v", s, s)
		a.param("t", t)
		weights := func(column int) {
			switch kind.name {
			case "F32":
				for q := range 4 {
					a.load(16, v(16+q), src, 64*column+16*q)
				}
			default:
				for i := range 2 {
					a.load(16, 20, src, 32*column+16*i)
					if kind.name == "F16" {
						a.fromHalf(v(16+2*i), 20)
						a.fromHalf2(v(17+2*i), 20)
					} else {
						a.fromBrain(v(16+2*i), 20)
						a.fromBrain2(v(17+2*i), 20)
					}
				}
			}
		}
		a.op("CMP $4, %v", t)
		a.op("BLT few")
		for _, rows := range []int{4, 1} {
			if rows == 1 {
				a.place("few")
			}
			a.loop(panels, func() {
				a.op("MOVD %v, %v", t, left)
				a.op("MOVD %v, %v", dst, out)
				a.param("x", row)
				groups, tail, done := a.label("groups"), a.label("tail"), a.label("done")
				a.place(groups)
				a.op("MOVD %v, %v", panel, src)
				for r := 1; r < rows; r++ {
					a.op("ADD %v, %v, %v", s, rowOf(r-1), rowOf(r))
				}
				for i := range 4 * rows {
					a.zero(v(i))
				}
				step := func(columns, size int) {
					for r := range rows {
						a.load(size, v(21+r), rowOf(r), 0)
						a.op("ADD $%d, %v, %v", size, rowOf(r), rowOf(r))
					}
					for c := range columns {
						weights(c)
						for r := range rows {
							for q := range 4 {
								a.fmlaElement(v(4*r+q), v(16+q), v(21+r), c)
							}
						}
					}
					a.op("ADD $%d, %v, %v", kind.bytes*columns, src, src)
				}
				a.op("LSR $2, %v, %v", cols, count)
				a.op("CBZ %v, %s", count, tail)
				a.loop(count, func() { step(4, 16) })
				a.place(tail)
				a.op("AND $3, %v, %v", cols, count)
				a.op("CBZ %v, %s", count, done)
				a.loop(count, func() { step(1, 4) })
				a.place(done)
				for r := range rows {
					for q := range 4 {
						a.store(16, v(4*r+q), out, 16*q)
					}
					a.op("ADD %v, %v, %v", stride, out, out)
				}
				// The last row stands at its end: the next follows it by a stride from its start.
				a.op("SUB %v<<2, %v, %v", cols, rowOf(rows-1), row)
				a.op("ADD %v, %v, %v", s, row, row)
				a.op("SUBS $%d, %v, %v", rows, left, left)
				a.op("BNE %s", groups)
				a.op("MOVD %v, %v", src, panel)
				a.op("ADD $64, %v, %v", dst, dst)
			})
			a.op("RET")
		}
	}
}
