package main

import (
	"fmt"
	"slices"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The record of a tile of activations, as package kernel lays it out.
const (
	recordScale = 32
	recordSum   = 36
	recordFirst = 40
	recordLast  = 44
	recordFloat = 48
	recordBytes = 52
)

var tileSizes = []int{16, 8, 4, 2, 1}

// aheadSizes are the tiles that have a form that prefetches: those that wait for memory.
var aheadSizes = []int{1, 2, 4}

// integerKind is one panel format: what package kernel has in its table, and how to take it apart.
type integerKind struct {
	name   string
	bytes  int // of a block
	shift  int // the offset of the codes is 1<<shift; 0 means none
	split  bool
	min    bool
	negate bool // mins are subtracted
	// steps runs, for all sub-blocks of a block in order, prepare and then dot. It may emit a loop.
	steps func(k *kernel512, t int)
}

var integerKinds = []integerKind{
	{name: "Q4_0", bytes: 288, shift: 3, steps: func(k *kernel512, t int) {
		k.fetchBlock(k.bytes)
		k.half(0, k.src, 0)
		k.nibbles(32)
		k.use(t)
	}},
	{name: "Q4_1", bytes: 320, min: true, steps: func(k *kernel512, t int) {
		k.fetchBlock(k.bytes)
		k.half(0, k.src, 0)
		k.half(1, k.src, 32)
		k.nibbles(64)
		k.use(t)
	}},
	{name: "Q5_0", bytes: 352, shift: 4, steps: func(k *kernel512, t int) {
		k.fetchBlock(k.bytes)
		k.half(0, k.src, 0)
		k.nibbles(96)
		for g := range 8 {
			k.high(g, at(k.src, 32), g, 0x10)
		}
		k.use(t)
	}},
	{name: "Q5_1", bytes: 384, min: true, steps: func(k *kernel512, t int) {
		k.fetchBlock(k.bytes)
		k.half(0, k.src, 0)
		k.half(1, k.src, 32)
		k.nibbles(128)
		for g := range 8 {
			k.high(g, at(k.src, 64), g, 0x10)
		}
		k.use(t)
	}},
	{name: "Q8_0", bytes: 544, shift: 7, steps: func(k *kernel512, t int) {
		k.fetchBlock(k.bytes)
		k.half(0, k.src, 0)
		for g := range 8 {
			k.VMOVDQU64(at(k.src, 32+64*g), k.w[g])
		}
		k.use(t)
	}},
	{name: "Q4_K", bytes: 2368, min: true, negate: true, steps: func(k *kernel512, t int) {
		k.pairs(t, nil)
	}},
	{name: "Q5_K", bytes: 2880, min: true, negate: true, steps: func(k *kernel512, t int) {
		k.pairs(t, func(sub int) {
			for g := range 8 {
				k.VMOVDQU64(at(k.src, 320+128*g), k.tmp)
				k.VPRORVD_BCST(at(k.table, 4*sub), k.tmp, k.tmp)
				k.VPTERNLOGD_BCST(imm(0xf8), k.bit, k.tmp, k.w[g])
			}
		})
	}},
	{name: "Q6_K", bytes: 3360, shift: 5, split: true, steps: func(k *kernel512, t int) {
		k.fetchBlock(288)
		k.MOVQ(k.src, k.inner)
		k.MOVQ(k.src, k.scales)
		k.MOVQ(operand.U32(2), k.count)
		k.loop(k.count, func() {
			for part := range 4 {
				k.VCVTPH2PS(at(k.src, 0), k.isum[0])
				for i := range 2 {
					k.VPMOVSXBD(at(k.scales, 32+32*part+16*i), k.ds[i])
					k.VCVTDQ2PS(k.ds[i], k.ds[i])
					k.VMULPS(k.isum[0], k.ds[i], k.ds[i])
				}
				for g := range 8 {
					low := 288 + 128*g
					if part%2 == 1 {
						low = 288 + 1024 + 64*g
					}
					if line := 8*part + g; line < 24 {
						k.fetch(k.inner, 288+64*line)
					}
					k.nibble(g, at(k.inner, low), part/2)
					k.high(g, at(k.inner, 288+128*g+64), 2*part, 0x30)
				}
				k.use(t)
			}
			k.add(1536, k.inner)
			k.add(128, k.scales)
		})
	}},
}

// kernel512 is the state of one AVX-512 product kernel while it is written.
type kernel512 struct {
	*asm
	integerKind
	acc  []reg.Register // a row of activations each
	w    [8]reg.Register
	ds   [2]reg.Register // scales of the two halves, or scale and min
	isum [4]reg.Register
	mask reg.Register // 0x0f in each byte
	tmp  reg.Register
	consts512

	src, rec, inner, scales, table, count reg.Register

	use      func(t int)  // takes the sub-block in w and ds
	ahead    reg.Register // how far ahead of src to prefetch
	fetching bool         // the loop being written prefetches
}

// vendor writes the reading of the processor's maker.
func vendor(c *asm) {
	c.begin("vendor", "func() (b, d, c uint32)", "returns the twelve letters of the processor's maker.")
	c.XORL(reg.EAX, reg.EAX)
	c.XORL(reg.ECX, reg.ECX)
	c.CPUID()
	c.Store(reg.EBX, c.Return("b"))
	c.Store(reg.EDX, c.Return("d"))
	c.Store(reg.ECX, c.Return("c"))
	c.end()
}

// prefetch writes the prefetching of a run of memory into the second cache.
func prefetch(c *asm) {
	c.begin("prefetchLines", "func(p *byte, n int)", "prefetches n lines of 64 bytes into the second cache.")
	c.param("p", reg.RAX)
	c.param("n", reg.RCX)
	c.loop(reg.RCX, func() {
		c.PREFETCHT1(at(reg.RAX, 0))
		c.ADDQ(imm(64), reg.RAX)
	})
	c.end()
}

func mulAVX512(c *asm) {
	vendor(c)
	prefetch(c)
	consts := newConsts512(c)
	for _, kind := range integerKinds {
		k := newKernel512(c, kind, consts)
		k.use = k.dot
		c.begin("mul"+kind.name+"AVX512", "func(dst *float32, stride int, panels *byte, n, blocks int, records *byte, t, ahead int)",
			fmt.Sprintf("multiplies n panels of %s with a tile of t activation rows. A tile of few rows prefetches what lies ahead bytes further on, unless that is 0.", kind.name))
		dst, stride, panels, blocks, records, out := reg.RAX, reg.RBX, reg.RCX, reg.RDX, reg.R13, reg.R15
		c.param("dst", dst)
		c.param("stride", stride)
		c.SHLQ(imm(2), stride)
		c.param("panels", k.src)
		c.param("n", panels)
		c.param("records", records)
		c.VPBROADCASTD(k.nibbleMask, k.mask)
		c.param("t", k.count)
		c.param("ahead", k.ahead)
		c.TESTQ(k.ahead, k.ahead)
		c.JZ(operand.LabelRef("plain"))
		for _, t := range aheadSizes {
			c.CMPQ(k.count, imm(t))
			c.JEQ(operand.LabelRef(fmt.Sprintf("ahead%d", t)))
		}
		c.Label("plain")
		for _, t := range tileSizes[:len(tileSizes)-1] {
			c.CMPQ(k.count, imm(t))
			c.JEQ(operand.LabelRef(fmt.Sprintf("tile%d", t)))
		}
		tile := func(label string, t int) {
			c.Label(fmt.Sprintf("%s%d", label, t))
			c.loop(panels, func() {
				for r := range t {
					c.VPXORD(k.acc[r], k.acc[r], k.acc[r])
				}
				c.MOVQ(records, k.rec)
				c.param("blocks", blocks)
				c.loop(blocks, func() {
					k.steps(k, t)
					k.add(k.bytes, k.src)
				})
				c.MOVQ(dst, out)
				for r := range t {
					c.VMOVUPS(k.acc[r], at(out, 0))
					c.ADDQ(stride, out)
				}
				c.add(64, dst)
			})
			c.end()
		}
		for _, t := range slices.Backward(tileSizes) {
			tile("tile", t)
		}
		k.fetching = true
		for _, t := range aheadSizes {
			tile("ahead", t)
		}
	}
}

// consts512 are words in memory.
type consts512 struct {
	nibbleMask operand.Mem // 0x0f in each byte
	bit        operand.Mem // 0x10
	bits       operand.Mem // 0x30
	rotation   operand.Mem
}

func newConsts512(c *asm) consts512 {
	return consts512{
		nibbleMask: c.words("nibbleMask512", 0x0f0f0f0f),
		bit:        c.words("fifthBit512", 0x10101010),
		bits:       c.words("upperBits512", 0x30303030),
		rotation:   c.words("rotations512", 28, 29, 30, 31, 0, 1, 2, 3),
	}
}

// newKernel512 gives a kernel its registers.
func newKernel512(c *asm, kind integerKind, consts consts512) *kernel512 {
	k := &kernel512{asm: c, integerKind: kind, consts512: consts,
		src: reg.RSI, rec: reg.RDI, inner: reg.R8, scales: reg.R9, table: reg.R10, count: reg.R12,
		ahead: reg.R11, mask: reg.Z30, tmp: reg.Z31}
	z := []reg.Register{reg.Z0, reg.Z1, reg.Z2, reg.Z3, reg.Z4, reg.Z5, reg.Z6, reg.Z7, reg.Z8, reg.Z9, reg.Z10, reg.Z11,
		reg.Z12, reg.Z13, reg.Z14, reg.Z15, reg.Z16, reg.Z17, reg.Z18, reg.Z19, reg.Z20, reg.Z21, reg.Z22, reg.Z23,
		reg.Z24, reg.Z25, reg.Z26, reg.Z27, reg.Z28, reg.Z29}
	k.acc = z[:16]
	copy(k.w[:], z[16:24])
	copy(k.ds[:], z[24:26])
	copy(k.isum[:], z[26:30])
	return k
}

// fetch prefetches the line that lies ahead of base + disp.
func (k *kernel512) fetch(base reg.Register, disp int) {
	if !k.fetching {
		return
	}
	m := index(base, k.ahead, 1)
	m.Disp = disp
	k.PREFETCHT0(m)
}

// fetchBlock prefetches n bytes from src on, at once.
func (k *kernel512) fetchBlock(n int) {
	for i := 0; i < n; i += 64 {
		k.fetch(k.src, i)
	}
}

// half loads 16 halves as scale i.
func (k *kernel512) half(i int, base reg.Register, disp int) { k.VCVTPH2PS(at(base, disp), k.ds[i]) }

// nibble takes group g from the low (0) or high (1) halves of the bytes at m.
func (k *kernel512) nibble(g int, m operand.Mem, half int) {
	if half == 0 {
		k.VPANDD(m, k.mask, k.w[g])
		return
	}
	k.VPSRLW(imm(4), m, k.w[g])
	k.VPANDD(k.mask, k.w[g], k.w[g])
}

// nibbles takes groups 0 to 3 from low halves and 4 to 7 from high ones.
func (k *kernel512) nibbles(disp int) {
	for i := range 4 {
		k.nibble(i, at(k.src, disp+64*i), 0)
		k.nibble(i+4, at(k.src, disp+64*i), 1)
	}
}

// high adds the bits of m from bit on to group g as its bits from 4 on, as far as mask keeps them.
func (k *kernel512) high(g int, m operand.Mem, bit, mask int) {
	switch {
	case bit < 4:
		k.VPSLLW(imm(4-bit), m, k.tmp)
	case bit > 4:
		k.VPSRLW(imm(bit-4), m, k.tmp)
	default:
		k.VMOVDQU64(m, k.tmp)
	}
	c := k.bit
	if mask == 0x30 {
		c = k.bits
	}
	k.VPTERNLOGD_BCST(imm(0xf8), c, k.tmp, k.w[g]) // w | tmp & c
}

// pairs runs the eight sub-blocks of Q4_K and Q5_K, two for each eight registers of codes. In Q5_K the first eight
// alternate with the registers that hold the high bits.
func (k *kernel512) pairs(t int, high func(sub int)) {
	pair := func(codes, stride int) {
		for sub := range 2 {
			for i := range 2 {
				k.VCVTPH2PS(at(k.src, 32*i), k.isum[i])
				k.VPMOVZXBD(at(k.scales, 64+128*i+16*sub), k.ds[i])
				k.VCVTDQ2PS(k.ds[i], k.ds[i])
				k.VMULPS(k.isum[i], k.ds[i], k.ds[i])
			}
			for g := range 8 {
				if line := codes + stride*g + 64*sub; stride == 128 || sub == 0 {
					k.fetch(k.inner, line)
				}
				k.nibble(g, at(k.inner, codes+stride*g), sub)
			}
			if high != nil {
				high(sub)
			}
			k.use(t)
		}
		k.add(32, k.scales)
		if high != nil {
			k.add(8, k.table)
		}
	}
	header := 320
	if high != nil {
		header = 384
	}
	k.fetchBlock(header)
	k.MOVQ(k.src, k.inner)
	k.MOVQ(k.src, k.scales)
	count, codes := 4, 320
	if high != nil {
		k.LEAQ(k.rotation, k.table)
		pair(384, 128)
		count, codes = 3, 1344
	}
	k.MOVQ(operand.U32(count), k.count)
	k.loop(k.count, func() {
		pair(codes, 64)
		k.add(512, k.inner)
	})
}

// dot multiplies the sub-block in w with t rows of activations, adds to acc, and goes to the next record. Rows go in
// groups, so that several chains of dot products are under way.
func (k *kernel512) dot(t int) {
	chains := 1 // of a row
	if k.split || t <= 2 {
		chains = 2
	}
	group := min(t, len(k.isum)/chains)
	for first := 0; first < t; first += group {
		sum := func(r, chain int) reg.Register { return k.isum[(r-first)*chains+chain] }
		each := func(f func(r int)) {
			for r := first; r < first+group; r++ {
				f(r)
			}
		}
		each(func(r int) {
			for i := range chains {
				from := recordSum
				switch {
				case k.split:
					from = recordFirst + 4*i
				case i == 1:
					from = 0
				}
				if k.shift == 0 || from == 0 {
					k.VPXORD(sum(r, i), sum(r, i), sum(r, i))
				} else {
					k.VPSLLD_BCST(imm(k.shift), at(k.rec, from*t+4*r), sum(r, i))
				}
			}
		})
		for g := range 8 / chains {
			each(func(r int) {
				for i := range chains {
					w := g + 4*i
					k.VPDPBUSD_BCST(at(k.rec, 32*r+4*w), k.w[w], sum(r, i))
				}
			})
		}
		if chains == 2 && !k.split {
			each(func(r int) { k.VPADDD(sum(r, 1), sum(r, 0), sum(r, 0)) })
		}
		each(func(r int) { k.VCVTDQ2PS(sum(r, 0), sum(r, 0)) })
		each(func(r int) { k.VMULPS(sum(r, 0), k.ds[0], sum(r, 0)) })
		if k.split {
			each(func(r int) { k.VCVTDQ2PS(sum(r, 1), sum(r, 1)) })
			each(func(r int) { k.VFMADD231PS(k.ds[1], sum(r, 1), sum(r, 0)) })
		}
		if k.min {
			each(func(r int) {
				if m := at(k.rec, recordFloat*t+4*r); k.negate {
					k.VFNMADD231PS_BCST(m, k.ds[1], sum(r, 0))
				} else {
					k.VFMADD231PS_BCST(m, k.ds[1], sum(r, 0))
				}
			})
		}
		each(func(r int) { k.VFMADD231PS_BCST(at(k.rec, recordScale*t+4*r), sum(r, 0), k.acc[r]) })
	}
	k.add(recordBytes*t, k.rec)
}
