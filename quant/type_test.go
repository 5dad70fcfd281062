package quant

import (
	"math"
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	for typ, want := range map[Type]string{
		Q4_0: "Q4_0", IQ2_XXS: "IQ2_XXS", TQ1_0: "TQ1_0", MXFP4: "MXFP4", BF16: "BF16", 31: "Q4_0_4_4", 77: "type(77)",
		1<<32 - 1: "type(4294967295)",
	} {
		if got := typ.String(); got != want {
			t.Errorf("type %d is named %q, want %q", uint32(typ), got, want)
		}
		if typ < 77 {
			if got, err := ParseType(strings.ToLower(want)); got != typ || err != nil {
				t.Errorf("ParseType(%q) = %v, %v", strings.ToLower(want), got, err)
			}
		}
	}
	for _, name := range []string{"", "Q9_9", "type(77)", "Q4_0 "} {
		if got, err := ParseType(name); err == nil {
			t.Errorf("ParseType(%q) = %v", name, got)
		}
	}
}

func TestTypesHaveBothOrNoSize(t *testing.T) {
	for id := range layouts {
		typ := Type(id)
		if (typ.BlockSize() == 0) != (typ.BlockBytes() == 0) || typ.Supported() && typ.BlockSize() == 0 || typ.Quantizable() && !typ.Supported() {
			t.Errorf("%v: %d elements, %d bytes, supported %v, quantizable %v", typ, typ.BlockSize(), typ.BlockBytes(), typ.Supported(), typ.Quantizable())
		}
	}
}

func TestRowBytes(t *testing.T) {
	if n, err := Q4_0.RowBytes(64); n != 36 || err != nil {
		t.Errorf("RowBytes(64) of Q4_0 = %d, %v", n, err)
	}
	for _, c := range []struct {
		typ Type
		n   int
	}{{Q4_0, 33}, {Q4_0, -32}, {Type(77), 32}, {31, 32}, {F64, math.MaxInt}} {
		if n, err := c.typ.RowBytes(c.n); err == nil {
			t.Errorf("RowBytes(%d) of %v = %d, want an error", c.n, c.typ, n)
		}
	}
}

func TestWrongLengthsAndTypesAreErrors(t *testing.T) {
	for id := range len(layouts) + 2 {
		typ := Type(id)
		size, bytes := max(typ.BlockSize(), 1), typ.BlockBytes()
		for _, c := range [][2]int{{size, bytes + 1}, {size, bytes - 1}, {size + 1, bytes}, {0, bytes}, {2 * size, bytes}} {
			if c[1] < 0 || size == 1 && c[0]*bytes == c[1] {
				continue
			}
			x, b := make([]float32, c[0]), make([]byte, c[1])
			if err := typ.Dequantize(x, b); err == nil {
				t.Errorf("%v: Dequantize of %d elements from %d bytes is no error", typ, c[0], c[1])
			}
			if err := typ.Quantize(b, x); err == nil {
				t.Errorf("%v: Quantize of %d elements to %d bytes is no error", typ, c[0], c[1])
			}
		}
		if err := typ.Dequantize(nil, nil); (err == nil) != typ.Supported() {
			t.Errorf("%v: Dequantize of nothing: %v", typ, err)
		}
	}
}

func TestHalfConversionIsExactBothWays(t *testing.T) {
	for h := range 1 << 16 {
		h := uint16(h)
		f := F16ToF32(h)
		// The definition: sign, exponent less 15 and fraction of ten bits.
		exp, fraction := int(h>>10&31), float64(h&0x3ff)
		want := math.Ldexp(1024+fraction, exp-25)
		switch {
		case exp == 0:
			want = math.Ldexp(fraction, -24)
		case exp == 31 && fraction == 0:
			want = math.Inf(1)
		case exp == 31:
			want = math.NaN()
		}
		if h&0x8000 != 0 {
			want = math.Copysign(want, -1)
		}
		if f != f && want != want {
			if back := F32ToF16(f); back&0x7c00 != 0x7c00 || back&0x3ff == 0 {
				t.Errorf("NaN %#x comes back as %#x", h, back)
			}
			continue
		}
		if math.Float32bits(f) != math.Float32bits(float32(want)) {
			t.Fatalf("F16ToF32(%#x) = %v, want %v", h, f, want)
		}
		if back := F32ToF16(f); back != h {
			t.Fatalf("%#x comes back as %#x", h, back)
		}
	}
}

func TestHalfRoundsToNearestEven(t *testing.T) {
	for h := range uint16(0x7bff) {
		low, high := float64(F16ToF32(h)), float64(F16ToF32(h+1))
		middle := float32((low + high) / 2) // exact: a half has 13 bits to spare
		even := h + h&1
		for f, want := range map[float32]uint16{
			middle: even, math.Nextafter32(middle, -1): h, math.Nextafter32(middle, math.MaxFloat32): h + 1,
		} {
			if got := F32ToF16(f); got != want {
				t.Fatalf("F32ToF16(%v) = %#x, want %#x", f, got, want)
			}
			if got := F32ToF16(-f); got != want|0x8000 {
				t.Fatalf("F32ToF16(%v) = %#x, want %#x", -f, got, want|0x8000)
			}
		}
	}
	for f, want := range map[float32]uint16{65519: 0x7bff, 65520: 0x7c00, 1e30: 0x7c00, float32(math.Inf(1)): 0x7c00, 1e-30: 0} {
		if got := F32ToF16(f); got != want {
			t.Errorf("F32ToF16(%v) = %#x, want %#x", f, got, want)
		}
	}
}

func TestBF16RoundsToNearestEven(t *testing.T) {
	for bits, want := range map[uint32]uint16{
		0x3f800000: 0x3f80, 0x3f808000: 0x3f80, 0x3f808001: 0x3f81, 0x3f818000: 0x3f82, 0x3f817fff: 0x3f81,
		0x7f7fffff: 0x7f80, 0xff800000: 0xff80, 0x7f800001: 0x7fc0, 0x00000001: 0,
	} {
		if got := F32ToBF16(math.Float32frombits(bits)); got != want {
			t.Errorf("F32ToBF16(%#x) = %#x, want %#x", bits, got, want)
		}
	}
}

// FuzzDequantize gives blocks of arbitrary bytes and arbitrary lengths to every type.
func FuzzDequantize(f *testing.F) {
	f.Add(uint32(2), uint16(32), []byte("a block of eighteen"))
	f.Add(uint32(14), uint16(256), make([]byte, 210))
	f.Add(uint32(39), uint16(64), make([]byte, 34))
	f.Add(uint32(99), uint16(1), []byte{1})
	f.Fuzz(func(t *testing.T, id uint32, n uint16, data []byte) {
		typ, x := Type(id), make([]float32, n)
		want, sizeErr := typ.RowBytes(int(n))
		err := typ.Dequantize(x, data)
		if fits := sizeErr == nil && want == int64(len(data)) && typ.Supported(); fits != (err == nil) {
			t.Fatalf("%v: %d elements from %d bytes: %v", typ, n, len(data), err)
		}
		// As many blocks as there are, of every type: nothing but a panic can go wrong.
		for id := range layouts {
			typ := Type(id)
			if !typ.Supported() {
				continue
			}
			blocks := len(data) / typ.BlockBytes()
			x := make([]float32, blocks*typ.BlockSize())
			if err := typ.Dequantize(x, data[:blocks*typ.BlockBytes()]); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func BenchmarkDequantize(b *testing.B) {
	for id := range layouts {
		typ := Type(id)
		if !typ.Supported() {
			continue
		}
		b.Run(typ.String(), func(b *testing.B) {
			x := make([]float32, 1<<14)
			n, _ := typ.RowBytes(len(x))
			src := make([]byte, n)
			for i := range src {
				src[i] = byte(i * 7)
			}
			b.SetBytes(int64(4 * len(x)))
			for b.Loop() {
				if err := typ.Dequantize(x, src); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
