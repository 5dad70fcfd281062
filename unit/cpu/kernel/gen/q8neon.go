package main

import "math"

// q8NEON writes the conversion of cache rows to and from blocks of Q8_0: a scale in half precision and 32 bytes.
func q8NEON(a *arm) {
	q8RowNEON(a)
	q8ValuesNEON(a)
}

func q8RowNEON(a *arm) {
	const dst, p, blocks, tmp, bits, bound = x(0), x(1), x(2), x(3), x(4), x(5)
	a.begin("q8RowNEON", "rounds blocks of 32 values to Q8_0.", 0, "dst *byte", "src *float32", "blocks int")
	a.param("dst", dst)
	a.param("src", p)
	a.param("blocks", blocks)
	a.op("MOVW $0x%x, %v", math.Float32bits(1e-30), bound)
	a.number(16, 1, tmp)
	a.number(17, 127, tmp)
	a.loop(blocks, func() {
		a.largest(p, bits)
		below, ready := a.label("below"), a.label("ready")
		a.op("CMPW %v, %v", bound, bits)
		a.op("BLO %s", below)
		a.op("FDIVS F17, F8, F18")  // scale
		a.op("FDIVS F18, F16, F19") // its inverse
		a.op("B %s", ready)
		a.place(below)
		a.zero(18)
		a.zero(19)
		a.place(ready)
		a.two(0x1e23c000, "fcvt h, s", 20, 18)
		a.word(0x7d000000|uint32(dst)<<5|20, "str h20, [x%d]", dst)
		a.op("ADD $2, %v, %v", dst, dst)
		for i := range 8 {
			a.fmulElement(v(i), v(i), 19, 0)
			a.two(0x4e21c800, "fcvtas.4s", v(i), v(i)) // halves away from zero, and a NaN to 0
		}
		for i := range 2 {
			a.narrow(22, v(4*i))
			a.store(16, 22, dst, 16*i)
		}
		a.op("ADD $32, %v, %v", dst, dst)
		a.op("ADD $128, %v, %v", p, p)
	})
	a.op("RET")
}

// narrow keeps the low bytes of the words of q to q+3, with v20 and v21.
func (a *arm) narrow(d, q v) {
	a.two(0x0e612800, "xtn.4h", 20, q)
	a.two(0x4e612800, "xtn2.8h", 20, q+1)
	a.two(0x0e612800, "xtn.4h", 21, q+2)
	a.two(0x4e612800, "xtn2.8h", 21, q+3)
	a.two(0x0e212800, "xtn.8b", d, 20)
	a.two(0x4e212800, "xtn2.16b", d, 21)
}

// largest loads a block of 32 values at p into v0 to v7 and leaves their largest magnitude in v8 and its bits in a
// general register. It is found as an integer, so a NaN is above all.
func (a *arm) largest(p, bits x) {
	for i := range 8 {
		a.load(16, v(i), p, 16*i)
		a.two(0x4ea0f800, "fabs.4s", v(8+i), v(i))
	}
	for n := 4; n > 0; n /= 2 {
		for i := range n {
			a.maxUnsigned(v(8+i), v(8+i), v(8+i+n))
		}
	}
	a.two(0x6eb0a800, "umaxv.4s", 8, 8)
	a.op("FMOVS F8, %v", bits)
}

func q8ValuesNEON(a *arm) {
	const dst, src, blocks = x(0), x(1), x(2)
	a.begin("q8ValuesNEON", "writes the values of blocks of Q8_0.", 0, "dst *float32", "src *byte", "blocks int")
	a.param("dst", dst)
	a.param("src", src)
	a.param("blocks", blocks)
	a.loop(blocks, func() {
		a.word(0x7d400000|uint32(src)<<5|16, "ldr h16, [x%d]", src)
		a.two(0x1ee24000, "fcvt s, h", 16, 16)
		a.op("ADD $2, %v, %v", src, src)
		for i := range 2 {
			a.load(16, 0, src, 16*i)
			a.widenBytes(true, 1, 0)
			a.two(0x4f08a400, "sxtl2.8h", 2, 0)
			for j := range 4 {
				w := v(4 + j)
				a.widenHalves(true, j%2 == 1, w, v(1+j/2))
				a.toFloat(w, w)
				a.fmulElement(w, w, 16, 0)
				a.store(16, w, dst, 64*i+16*j)
			}
		}
		a.op("ADD $32, %v, %v", src, src)
		a.op("ADD $128, %v, %v", dst, dst)
	})
	a.op("RET")
}
