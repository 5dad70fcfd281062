package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Products with AMX: a tile register multiplies 16 rows of activations with 32 columns of a panel at once, and vector
// registers scale and add what comes out. The assembler knows no AMX, so its instructions are written as bytes (Intel
// 64 and IA-32 Architectures Software Developer's Manual, volume 2).

// The tile registers, as package kernel configures them: sums of 16 rows x 16 outputs, activations of 16 rows, and codes
// of 16 outputs. A kind with two scales multiplies each half of a sub-block with registers of half the columns. The
// ceiling uses sums from tileSums on and then registers of full size.
const (
	tileSums  = 0
	tileRows  = 1
	tileCodes = 2
)

func number(r reg.Register) uint8 { return uint8(r.(reg.Physical).PhysicalIndex()) }

// raw writes an instruction that the assembler does not know.
func (c *asm) raw(code ...uint8) {
	for _, b := range code {
		c.Instruction(&ir.Instruction{Opcode: "BYTE", Operands: []operand.Op{operand.U8(b)}})
	}
}

// vex writes the three-byte prefix of an instruction of map 0F38, and its opcode.
func (c *asm) vex(index, base, other, prefix, opcode uint8) {
	c.raw(0xc4, 0x82|(^index>>3&1)<<6|(^base>>3&1)<<5, (^other&15)<<3|prefix, opcode)
}

// memory writes the operand base + index<<shift + disp with tile or 0 as the register.
func (c *asm) memory(tile, index, shift, base uint8, disp int) {
	c.raw(0x84|tile<<3, shift<<6|(index&7)<<3|base&7, uint8(disp), uint8(disp>>8), uint8(disp>>16), uint8(disp>>24))
}

func (c *asm) tileConfig(base reg.Register) {
	b := number(base)
	c.vex(0, b, 0, 0, 0x49)
	c.raw(b & 7) // a base that needs neither SIB nor displacement
}

func (c *asm) tileRelease()        { c.raw(0xc4, 0xe2, 0x78, 0x49, 0xc0) }
func (c *asm) tileZero(tile uint8) { c.raw(0xc4, 0xe2, 0x7b, 0x49, 0xc0|tile<<3) }

// tileLoad loads rows that lie stride<<shift bytes apart.
func (c *asm) tileLoad(tile uint8, base reg.Register, disp int, stride reg.Register, shift uint8) {
	c.vex(number(stride), number(base), 0, 3, 0x4b)
	c.memory(tile, number(stride), shift, number(base), disp)
}

// tileLine loads the same line into each row.
func (c *asm) tileLine(tile uint8, base reg.Register, disp int) {
	c.vex(0, number(base), 0, 3, 0x4b)
	c.memory(tile, 4, 0, number(base), disp) // no index
}

func (c *asm) tileStore(tile uint8, base reg.Register, disp int, stride reg.Register, shift uint8) {
	c.vex(number(stride), number(base), 0, 2, 0x4b)
	c.memory(tile, number(stride), shift, number(base), disp)
}

// tileDot adds the products of signed bytes of a and b to sums.
func (c *asm) tileDot(sums, a, b uint8) {
	c.vex(0, 0, b, 3, 0x5e)
	c.raw(0xc0 | sums<<3 | a)
}

// The unpacked form of a panel: for each sub-block of 32 columns eight registers of signed codes, the scales, and
// the second scales or the mins of kinds that have them.
const (
	openScale = 512
	openMore  = 576
	openBytes = 640
)

// unpackAMX writes the unpacking of a panel.
func unpackAMX(c *asm) {
	consts := newConsts512(c)
	sign := c.words("signAMX", 0x80000000)
	offset := map[int]operand.Mem{}
	for _, shift := range []int{3, 4, 5, 7} {
		b := uint32(1) << shift
		offset[shift] = c.words(fmt.Sprintf("offset%dAMX", shift), b|b<<8|b<<16|b<<24)
	}
	for _, kind := range integerKinds {
		k := newKernel512(c, kind, consts)
		c.begin("unpack"+kind.name+"AMX", "func(dst, panel *byte, blocks int)",
			fmt.Sprintf("unpacks a panel of %s for mulAMX.", kind.name))
		out, blocks, subtract, flip := reg.RAX, reg.RDX, reg.Z0, reg.Z1
		c.param("dst", out)
		c.param("panel", k.src)
		c.param("blocks", blocks)
		c.VPBROADCASTD(k.nibbleMask, k.mask)
		c.VPBROADCASTD(sign, flip)
		if kind.shift > 0 {
			c.VPBROADCASTD(offset[kind.shift], subtract)
		}
		k.use = func(int) {
			for g, w := range k.w {
				if kind.shift > 0 {
					c.VPSUBB(subtract, w, w)
				}
				c.VMOVDQU64(w, at(out, 64*g))
			}
			c.VMOVUPS(k.ds[0], at(out, openScale))
			if kind.negate {
				c.VPXORD(flip, k.ds[1], k.ds[1])
			}
			if kind.min || kind.split {
				c.VMOVUPS(k.ds[1], at(out, openMore))
			}
			c.add(openBytes, out)
		}
		c.loop(blocks, func() {
			k.steps(k, 16)
			k.add(k.bytes, k.src)
		})
		c.end()
	}
}

// mulAMX writes the products of unpacked panels: one for kinds with a scale, one with a min, and one with two scales.
func mulAMX(c *asm) {
	minus := c.words("lessMagicAMX", 0xcb400000)
	lessMagic := reg.Z31
	for _, form := range []struct {
		name       string
		min, split bool
	}{{"Scale", false, false}, {"Min", true, false}, {"Split", false, true}} {
		halves := 1
		if form.split {
			halves = 2
		}
		c.begin("mul"+form.name+"AMX", "func(dst *float32, stride int, codes *byte, panels, blocks int, records *byte, recordStride, tiles int, add bool, room *byte)",
			"multiplies unpacked parts of panels, one behind the other, with tiles of 16 activation rows whose records lie recordStride bytes apart, and adds to what dst has if add. The room is the configuration of the tile registers, 16 times magic, and room for sums.")
		dst, stride, codes, panels, src, rec, tiles, count, room, row, out, tile, begin := reg.RAX, reg.RBX, reg.RCX, reg.R11, reg.RSI, reg.RDI, reg.R8, reg.R9, reg.R10, reg.R12, reg.R13, reg.R14, reg.R15
		c.param("dst", begin)
		c.param("stride", stride)
		c.SHLQ(imm(2), stride)
		c.param("codes", codes)
		c.param("records", tile)
		c.param("tiles", tiles)
		c.param("room", room)
		c.tileConfig(room)
		c.add(64, room)
		c.VBROADCASTSS(minus, lessMagic)
		c.MOVQ(operand.U32(32), row) // bytes of a row of a tile of activations, half those of the others
		// sums multiplies a sub-block from rec and src on and leaves the products in the room: with one scale as the float32
		// that is magic larger, with two as integers, which was faster then.
		sums := func() {
			for half := range halves {
				if form.split {
					c.tileZero(tileSums)
				} else {
					c.tileLine(tileSums, room, 0)
				}
				c.tileLoad(tileRows, rec, 16*half, row, 0)
				c.tileLoad(tileCodes, src, 256*half, row, 1)
				c.tileDot(tileSums, tileRows, tileCodes)
				c.tileStore(tileSums, room, 64+1024*half, row, 1)
			}
		}
		// scaled adds what sums left in the room to the accumulators.
		scaled := func() {
			ds, more, bias := reg.Z16, reg.Z17, reg.Z18
			c.VMOVUPS(at(src, openScale), ds)
			if !form.split {
				c.VMULPS(ds, lessMagic, bias)
			}
			if form.min || form.split {
				c.VMOVUPS(at(src, openMore), more)
			}
			tmp := []reg.Register{reg.Z19, reg.Z20, reg.Z21, reg.Z22, reg.Z23, reg.Z24, reg.Z25, reg.Z26}
			other := []reg.Register{reg.Z27, reg.Z28, reg.Z29, reg.Z30}
			for r := range 16 {
				x, y, sum := tmp[r%8], other[r%4], 64+64*r
				if form.split {
					c.VCVTDQ2PS(at(room, sum), x)
					c.VMULPS(ds, x, x)
					c.VCVTDQ2PS(at(room, 1024+sum), y)
					c.VFMADD231PS(more, y, x)
				} else {
					// The scale has 19 bits at most, so bias is exact, and so is all but the rounding that the product of
					// the sum itself with the scale has.
					c.VMOVUPS(at(room, sum), x)
					c.VFMADD213PS(bias, ds, x)
				}
				if form.min {
					c.VFMADD231PS_BCST(at(rec, recordFloat*16+4*r), more, x)
				}
				c.VFMADD231PS_BCST(at(rec, recordScale*16+4*r), x, accAMX[r])
			}
		}
		c.loop(tiles, func() {
			c.MOVQ(codes, src)
			c.MOVQ(begin, dst)
			c.param("panels", panels)
			c.loop(panels, func() {
				zero, start := c.label("zero"), c.label("start")
				c.param("add", count.As32())
				c.TESTL(count.As32(), count.As32())
				c.JZ(operand.LabelRef(zero))
				c.MOVQ(dst, out)
				for _, a := range accAMX {
					c.VMOVUPS(at(out, 0), a)
					c.ADDQ(stride, out)
				}
				c.JMP(operand.LabelRef(start))
				c.Label(zero)
				for _, a := range accAMX {
					c.VPXORD(a, a, a)
				}
				c.Label(start)
				c.MOVQ(tile, rec)
				c.param("blocks", count)
				c.loop(count, func() {
					sums()
					scaled()
					c.add(openBytes, src)
					c.add(recordBytes*16, rec)
				})
				c.MOVQ(dst, out)
				for _, a := range accAMX {
					c.VMOVUPS(a, at(out, 0))
					c.ADDQ(stride, out)
				}
				c.add(64, dst)
			})
			c.param("recordStride", count)
			c.ADDQ(count, tile)
			c.MOVQ(stride, count)
			c.SHLQ(imm(4), count)
			c.ADDQ(count, begin)
		})
		c.tileRelease()
		c.end()
	}
}

// accAMX are the sums of 16 rows of activations.
var accAMX = []reg.Register{reg.Z0, reg.Z1, reg.Z2, reg.Z3, reg.Z4, reg.Z5, reg.Z6, reg.Z7, reg.Z8, reg.Z9, reg.Z10, reg.Z11, reg.Z12, reg.Z13, reg.Z14, reg.Z15}

// ceilingAMX writes the products in registers: four sums at once, of full tiles.
func ceilingAMX(c *asm) {
	c.begin("multiplyBytesAMX", "func(n int, config *byte)", "multiplies 4n pairs of tiles of 16 rows of 64 bytes.")
	n, config := reg.RCX, reg.RAX
	c.param("n", n)
	c.param("config", config)
	c.tileConfig(config)
	for tile := range uint8(6) {
		c.tileZero(tile)
	}
	c.loop(n, func() {
		for tile := range uint8(4) {
			c.tileDot(tile, 4, 5)
		}
	})
	c.tileRelease()
	c.end()
}
