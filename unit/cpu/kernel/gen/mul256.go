package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// kernel256 is the state of one AVX2 product kernel while it is written. A register holds eight rows, so a panel has
// two halves. VPMADDUBSW adds pairs of products in 16 bits without saturating as long as the codes have up to 7 bits;
// two of its results still fit. The codes of Q8_0 are made signed again, and their signs moved to the activations.
type kernel256 struct {
	*asm
	name   string
	shift  int // the offset of the codes is 1<<shift; 0 means none
	signed bool
	split  bool
	min    bool
	negate bool

	rows int // activation rows at once
	acc  func(r, half int) operand.Op
	sum  func(r, half int) reg.Register
	y    func(r, half int) reg.Register
	consts256

	src, inner, scales, table, count reg.Register
	values, words, t4, t12           reg.Register // of the record
}

type consts256 struct{ nibble, bit, low, bits, ones, sign, shifts operand.Mem }

var (
	weight256 = [2][2]reg.Register{{reg.Y8, reg.Y9}, {reg.Y10, reg.Y11}}
	act256    = [2]reg.Register{reg.Y12, reg.Y13}
	tmp256    = [2]reg.Register{reg.Y14, reg.Y15}
)

// kind256 is one panel format. steps runs, for all sub-blocks of a block, dot and scale.
type kind256 struct {
	integerKind
	steps func(k *kernel256)
}

func kinds256() (kinds []kind256) {
	steps := map[string]func(k *kernel256){
		"Q4_0": func(k *kernel256) {
			k.dot(0, 8, func(g, h int, w reg.Register) { k.nibbles(32, g, h, w) })
			k.scale(k.halves(0), nil)
		},
		"Q4_1": func(k *kernel256) {
			k.dot(0, 8, func(g, h int, w reg.Register) { k.nibbles(64, g, h, w) })
			k.scale(k.halves(0), k.halves(32))
		},
		"Q5_0": func(k *kernel256) {
			k.dot(0, 8, func(g, h int, w reg.Register) {
				k.nibbles(96, g, h, w)
				k.high(at(k.src, 32+32*h), g, k.bit, w)
			})
			k.scale(k.halves(0), nil)
		},
		"Q5_1": func(k *kernel256) {
			k.dot(0, 8, func(g, h int, w reg.Register) {
				k.nibbles(128, g, h, w)
				k.high(at(k.src, 64+32*h), g, k.bit, w)
			})
			k.scale(k.halves(0), k.halves(32))
		},
		"Q8_0": func(k *kernel256) {
			k.dotSigned(func(g, h int, w reg.Register) {
				k.VMOVDQU(at(k.src, 32+64*g+32*h), w)
				k.VPXOR(k.sign, w, w)
			})
			k.scale(k.halves(0), nil)
		},
		"Q4_K": func(k *kernel256) { k.pairs(nil) },
		"Q5_K": func(k *kernel256) {
			k.pairs(func(sub, g, h int, w reg.Register) {
				t := tmp256[0]
				k.VMOVDQU(at(k.src, 320+128*g+32*h), t)
				k.VPSRLW(at(k.table, 16*sub), t, t)
				k.VPAND(k.low, t, t)
				k.VPSLLW(imm(4), t, t)
				k.VPOR(t, w, w)
			})
		},
		"Q6_K": func(k *kernel256) {
			k.MOVQ(k.src, k.inner)
			k.MOVQ(k.src, k.scales)
			k.MOVQ(operand.U32(2), k.count)
			k.loop(k.count, func() {
				for part := range 4 {
					for i := range 2 {
						k.dot(4*i, 4*i+4, func(g, h int, w reg.Register) {
							low := 288 + 128*g
							if part%2 == 1 {
								low = 288 + 1024 + 64*g
							}
							k.half(at(k.inner, low+32*h), part/2, w)
							k.high(at(k.inner, 288+128*g+64+32*h), 2*part, k.bits, w)
						})
						scale := func(h int, d reg.Register) {
							k.VPMOVSXBD(at(k.scales, 32+32*part+16*i+8*h), d)
							k.VCVTDQ2PS(d, d)
							k.VCVTPH2PS(at(k.src, 16*h), tmp256[0])
							k.VMULPS(tmp256[0], d, d)
						}
						if i == 0 {
							k.scaleFirst(scale)
						} else {
							k.scale(scale, nil)
						}
					}
				}
				k.add(1536, k.inner)
				k.add(128, k.scales)
			})
		},
	}
	for _, kind := range integerKinds {
		kinds = append(kinds, kind256{kind, steps[kind.name]})
	}
	return kinds
}

func mulAVX2(c *asm) {
	consts := consts256{
		nibble: c.repeated("nibbleMask256", 0x0f0f0f0f), bit: c.repeated("fifthBit256", 0x10101010), low: c.repeated("lowBit256", 0x01010101),
		bits: c.repeated("upperBits256", 0x30303030), ones: c.repeated("ones256", 0x00010001), sign: c.repeated("signBit256", 0x80808080),
	}
	var shifts []uint32
	for s := range uint32(8) {
		shifts = append(shifts, s, 0, 0, 0)
	}
	consts.shifts = c.words("shifts256", shifts...)
	y := []reg.Register{reg.Y0, reg.Y1, reg.Y2, reg.Y3, reg.Y4, reg.Y5, reg.Y6, reg.Y7}
	for _, kind := range kinds256() {
		k := &kernel256{asm: c, name: kind.name, shift: kind.shift, signed: kind.name == "Q8_0", split: kind.split, min: kind.min, negate: kind.negate, consts256: consts,
			src: reg.RSI, inner: reg.R8, scales: reg.R9, table: reg.R10, count: reg.R12, values: reg.RDI, words: reg.R13, t4: reg.R15, t12: reg.R11}
		c.begin("mul"+kind.name+"AVX2", "func(dst *float32, stride int, panels *byte, n, blocks int, records *byte, t int)",
			fmt.Sprintf("multiplies n panels of %s with a tile of t activation rows.", kind.name))
		most := 4
		if kind.split {
			most = 2
		}
		local := c.AllocLocal(most*64 + 16)
		panel, next := offset(local, most*64), offset(local, most*64+8)
		dst, out, left, blocks, step := reg.RAX, reg.RBX, reg.RCX, reg.RDX, reg.R12
		c.param("panels", out)
		c.MOVQ(out, panel)
		c.param("t", k.t4)
		c.CMPQ(k.t4, imm(1))
		c.JEQ(operand.LabelRef("rows1"))
		if most > 2 {
			c.CMPQ(k.t4, imm(2))
			c.JEQ(operand.LabelRef("rows2"))
		}
		for rows := most; rows > 0; rows /= 2 {
			k.rows = rows
			k.sum = func(r, half int) reg.Register { return y[2*r+half] }
			k.y = func(r, half int) reg.Register { return y[4+2*r+half] }
			k.acc = func(r, half int) operand.Op { return offset(local, 64*r+32*half) }
			inRegisters := rows <= 2 && !kind.split
			if inRegisters {
				k.acc = func(r, half int) operand.Op { return y[4+2*r+half] }
			}
			each := func(f func(r, half int)) {
				for r := range rows {
					for half := range 2 {
						f(r, half)
					}
				}
			}
			c.Label(fmt.Sprintf("rows%d", rows))
			c.param("t", k.t4)
			c.MOVQ(k.t4, left)
			c.SHLQ(imm(2), k.t4)
			c.LEAQ(index(k.t4, k.t4, 2), k.t12)
			c.param("dst", dst)
			panels := c.label("panels")
			c.Label(panels)
			c.param("t", left)
			c.MOVQ(dst, out)
			groups := c.label("groups")
			c.Label(groups)
			// values and words of the first row: what is left tells how many rows were before.
			c.param("records", k.values)
			c.param("t", step)
			c.SUBQ(left, step)
			c.LEAQ(index(k.values, k.t4, 8), k.words)
			c.LEAQ(index(k.words, step, 4), k.words)
			c.SHLQ(imm(5), step)
			c.ADDQ(step, k.values)
			c.MOVQ(panel, k.src)
			if inRegisters {
				each(func(r, half int) { c.VXORPS(k.acc(r, half), k.acc(r, half), k.acc(r, half)) })
			} else {
				c.VXORPS(y[0], y[0], y[0])
				each(func(r, half int) { c.VMOVUPS(y[0], k.acc(r, half)) })
			}
			c.param("blocks", blocks)
			c.loop(blocks, func() {
				kind.steps(k)
				c.add(kind.bytes, k.src)
			})
			c.MOVQ(k.src, next)
			c.param("stride", step)
			for r := range rows {
				for half := range 2 {
					if inRegisters {
						c.VMOVUPS(k.acc(r, half), at(out, 32*half))
					} else {
						c.VMOVUPS(k.acc(r, half), y[0])
						c.VMOVUPS(y[0], at(out, 32*half))
					}
				}
				c.LEAQ(index(out, step, 4), out)
			}
			c.SUBQ(imm(rows), left)
			c.JNZ(operand.LabelRef(groups))
			c.add(64, dst)
			c.MOVQ(next, out)
			c.MOVQ(out, panel)
			c.DECQ(c.stackParam("n"))
			c.JNZ(operand.LabelRef(panels))
			c.end()
		}
	}
}

// offset is memory further on.
func offset(m operand.Mem, disp int) operand.Mem { return m.Offset(disp) }

// repeated is a constant of eight equal words.
func (c *asm) repeated(name string, w uint32) operand.Mem {
	return c.words(name, w, w, w, w, w, w, w, w)
}

// halves loads scales of half precision.
func (k *kernel256) halves(disp int) func(h int, d reg.Register) {
	return func(h int, d reg.Register) { k.VCVTPH2PS(at(k.src, disp+16*h), d) }
}

// half takes the low (0) or high (1) halves of the bytes at m.
func (k *kernel256) half(m operand.Mem, half int, w reg.Register) {
	k.VMOVDQU(m, w)
	if half == 1 {
		k.VPSRLW(imm(4), w, w)
	}
	k.VPAND(k.nibble, w, w)
}

// nibbles takes groups 0 to 3 from low halves and 4 to 7 from high ones.
func (k *kernel256) nibbles(disp, g, h int, w reg.Register) {
	k.half(at(k.src, disp+64*(g%4)+32*h), g/4, w)
}

// high adds the bits of m from bit on as bits from 4 on, as far as mask keeps them.
func (k *kernel256) high(m operand.Mem, bit int, mask operand.Mem, w reg.Register) {
	t := tmp256[0]
	k.VMOVDQU(m, t)
	switch {
	case bit < 4:
		k.VPSLLW(imm(4-bit), t, t)
	case bit > 4:
		k.VPSRLW(imm(bit-4), t, t)
	}
	k.VPAND(mask, t, t)
	k.VPOR(t, w, w)
}

// start sets the sums to what the offset of the codes takes away, from the sum at the given word of the record.
func (k *kernel256) start(word operand.Mem) {
	for r := range k.rows {
		m := word
		m.Disp += 4 * r
		if k.shift == 0 || k.signed {
			k.VPXOR(k.sum(r, 0), k.sum(r, 0), k.sum(r, 0))
		} else {
			k.VPBROADCASTD(m, k.sum(r, 0))
			k.VPSLLD(imm(k.shift), k.sum(r, 0), k.sum(r, 0))
		}
		k.VMOVDQA(k.sum(r, 0), k.sum(r, 1))
	}
}

// dot sums the products of groups [lo, hi), two at a time.
func (k *kernel256) dot(lo, hi int, load func(g, h int, w reg.Register)) {
	switch {
	case hi-lo == 8:
		k.start(index(k.words, k.t4, 1))
	case lo == 0:
		k.start(index(k.words, k.t4, 2))
	default:
		k.start(index(k.words, k.t12, 1))
	}
	for g := lo; g < hi; g += 2 {
		for i := range 2 {
			for h := range 2 {
				load(g+i, h, weight256[i][h])
			}
		}
		for r := range k.rows {
			for i := range 2 {
				k.VPBROADCASTD(at(k.values, 32*r+4*(g+i)), act256[i])
			}
			for h := range 2 {
				for i := range 2 {
					k.VPMADDUBSW(act256[i], weight256[i][h], tmp256[i])
				}
				k.VPADDW(tmp256[1], tmp256[0], tmp256[0])
				k.VPMADDWD(k.ones, tmp256[0], tmp256[0])
				k.VPADDD(tmp256[0], k.sum(r, h), k.sum(r, h))
			}
		}
	}
}

// dotSigned sums the products of signed weights.
func (k *kernel256) dotSigned(load func(g, h int, w reg.Register)) {
	k.start(operand.Mem{})
	for g := range 8 {
		for h := range 2 {
			load(g, h, weight256[0][h])
			k.VPABSB(weight256[0][h], weight256[1][h])
		}
		for r := range k.rows {
			k.VPBROADCASTD(at(k.values, 32*r+4*g), act256[0])
			for h := range 2 {
				k.VPSIGNB(weight256[0][h], act256[0], tmp256[h])
				k.VPMADDUBSW(tmp256[h], weight256[1][h], tmp256[h])
				k.VPMADDWD(k.ones, tmp256[h], tmp256[h])
				k.VPADDD(tmp256[h], k.sum(r, h), k.sum(r, h))
			}
		}
	}
}

// scaleFirst keeps the scaled sums of the first half of a sub-block in y.
func (k *kernel256) scaleFirst(scale func(h int, d reg.Register)) {
	for h := range 2 {
		scale(h, weight256[0][h])
		for r := range k.rows {
			k.VCVTDQ2PS(k.sum(r, h), k.y(r, h))
			k.VMULPS(weight256[0][h], k.y(r, h), k.y(r, h))
		}
	}
}

// scale scales the sums, adds them up, and goes to the next record.
func (k *kernel256) scale(scale, min func(h int, d reg.Register)) {
	for h := range 2 {
		scale(h, weight256[0][h])
		if k.min {
			min(h, weight256[1][h])
		}
	}
	for r := range k.rows {
		if k.min {
			k.VBROADCASTSS(operand.Mem{Base: k.words, Index: k.t4, Scale: 4, Disp: 4 * r}, act256[1])
		}
		k.VBROADCASTSS(at(k.words, 4*r), act256[0])
		for h := range 2 {
			s := k.sum(r, h)
			k.VCVTDQ2PS(s, s)
			switch {
			case k.split:
				k.VFMADD213PS(k.y(r, h), weight256[0][h], s)
			default:
				k.VMULPS(weight256[0][h], s, s)
			}
			switch {
			case k.min && k.negate:
				k.VFNMADD231PS(act256[1], weight256[1][h], s)
			case k.min:
				k.VFMADD231PS(act256[1], weight256[1][h], s)
			}
			a := k.acc(r, h)
			if _, register := a.(reg.Register); register {
				k.VFMADD231PS(act256[0], s, a)
			} else {
				k.VFMADD213PS(a, act256[0], s)
				k.VMOVUPS(s, a)
			}
		}
	}
	// A record is 13 words a row.
	k.LEAQ(index(k.values, k.t4, 8), k.values)
	k.LEAQ(index(k.values, k.t4, 4), k.values)
	k.ADDQ(k.t4, k.values)
	k.LEAQ(index(k.words, k.t4, 8), k.words)
	k.LEAQ(index(k.words, k.t4, 4), k.words)
	k.ADDQ(k.t4, k.words)
}

// pairs runs the eight sub-blocks of Q4_K and Q5_K, two for each eight registers of codes.
func (k *kernel256) pairs(high func(sub, g, h int, w reg.Register)) {
	pair := func(codes, stride int) {
		for sub := range 2 {
			k.dot(0, 8, func(g, h int, w reg.Register) {
				k.half(at(k.inner, codes+stride*g+32*h), sub, w)
				if high != nil {
					high(sub, g, h, w)
				}
			})
			scale := func(i int) func(h int, d reg.Register) {
				return func(h int, d reg.Register) {
					k.VPMOVZXBD(at(k.scales, 64+128*i+16*sub+8*h), d)
					k.VCVTDQ2PS(d, d)
					k.VCVTPH2PS(at(k.src, 32*i+16*h), tmp256[0])
					k.VMULPS(tmp256[0], d, d)
				}
			}
			k.scale(scale(0), scale(1))
		}
		k.add(32, k.scales)
		if high != nil {
			k.add(32, k.table)
		}
	}
	k.MOVQ(k.src, k.inner)
	k.MOVQ(k.src, k.scales)
	count, codes := 4, 320
	if high != nil {
		k.LEAQ(k.shifts, k.table)
		pair(384, 128)
		count, codes = 3, 1344
	}
	k.MOVQ(operand.U32(count), k.count)
	k.loop(k.count, func() {
		pair(codes, 64)
		k.add(512, k.inner)
	})
}
