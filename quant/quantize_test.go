package quant

import (
	"math"
	"math/rand/v2"
	"testing"
)

// roundTrip quantises x and returns what the blocks stand for.
func roundTrip(t testing.TB, typ Type, x []float32) []float32 {
	t.Helper()
	n, err := typ.RowBytes(len(x))
	if err != nil {
		t.Fatal(err)
	}
	data, y := make([]byte, n), make([]float32, len(x))
	if err := typ.Quantize(data, x); err != nil {
		t.Fatal(err)
	}
	if err := typ.Dequantize(y, data); err != nil {
		t.Fatal(err)
	}
	return y
}

func rms(x, y []float32) float64 {
	sum := 0.0
	for i := range x {
		d := float64(x[i]) - float64(y[i])
		sum += d * d
	}
	return math.Sqrt(sum / float64(len(x)))
}

// naiveK packs each group of size elements from its extremes, with scale and minimum rounded as the format rounds them,
// and returns what that stands for. low tells whether the format has minima.
func naiveK(x []float32, size, levels, scaleTop int, low bool) []float32 {
	y := make([]float32, len(x))
	for at := 0; at < len(x); at += 256 {
		block := x[at : at+256]
		var scales, lows []float64
		var peakScale, peakLow float64
		for g := 0; g < 256; g += size {
			lo, hi := bounds(block[g : g+size])
			s, m := (float64(hi)-math.Min(float64(lo), 0))/float64(levels-1), math.Max(0, -float64(lo))
			if !low {
				s, m = float64(abs(peak(block[g:g+size])))/float64(levels/2-1), 0
			}
			scales, lows = append(scales, s), append(lows, m)
			peakScale, peakLow = math.Max(peakScale, s), math.Max(peakLow, m)
		}
		d := float64(F16ToF32(F32ToF16(float32(peakScale / float64(scaleTop)))))
		dmin := float64(F16ToF32(F32ToF16(float32(peakLow / float64(scaleTop)))))
		for i, v := range block {
			s := d * math.Round(ratio(scales[i/size], d))
			m := dmin * math.Round(ratio(lows[i/size], dmin))
			lo, hi := 0, levels-1
			if !low {
				lo, hi = -levels/2, levels/2-1
			}
			y[at+i] = float32(s*float64(level(ratio(float64(v)+m, s), lo, hi)) - m)
		}
	}
	return y
}

// weights returns values as a trained matrix has them: gaussian, with a few outliers.
func weights(n int) []float32 {
	r := rand.New(rand.NewPCG(1, 2))
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64() * 0.02)
		if r.IntN(200) == 0 {
			x[i] *= 5
		}
	}
	return x
}

func TestKQuantsLoseLessThanTheExtremesWould(t *testing.T) {
	cases := []struct {
		typ           Type
		size, levels  int
		scaleTop      int
		low           bool
		ratioAtMost   float64 // of our error to the naive one
		weightsAtMost float64 // our error relative to the weights' own root mean square
	}{
		{Q4_K, 32, 16, 63, true, 0.93, 0.080},
		{Q5_K, 32, 32, 63, true, 0.93, 0.040},
		{Q6_K, 16, 64, 127, false, 0.93, 0.020},
	}
	x := weights(1 << 16)
	zero := make([]float32, len(x))
	for _, c := range cases {
		ours, naive := rms(x, roundTrip(t, c.typ, x)), rms(x, naiveK(x, c.size, c.levels, c.scaleTop, c.low))
		relative := ours / rms(x, zero)
		t.Logf("%v: error %.5f of the weights, naive %.5f, ratio %.3f", c.typ, relative, naive/rms(x, zero), ours/naive)
		if ours > c.ratioAtMost*naive {
			t.Errorf("%v: ratio to the naive error is %.3f, at most %v is expected", c.typ, ours/naive, c.ratioAtMost)
		}
		if relative > c.weightsAtMost {
			t.Errorf("%v: relative error %.4f, at most %v is expected", c.typ, relative, c.weightsAtMost)
		}
	}
	// The shapes of the golden input: nowhere worse than naive, save for the rounding of a scale in the block that is
	// one spike.
	input := floats(read(t, "input.f32"))
	for _, c := range cases {
		ours, naive := roundTrip(t, c.typ, input), naiveK(input, c.size, c.levels, c.scaleTop, c.low)
		for at := 0; at < len(input); at += 256 {
			a, b := rms(input[at:at+256], ours[at:at+256]), rms(input[at:at+256], naive[at:at+256])
			if a > b+1e-5*float64(abs(peak(input[at:at+256]))) {
				t.Errorf("%v: block %d has error %g, naive %g", c.typ, at/256, a, b)
			}
		}
	}
}

// TestUnitReaches checks the half that scales are multiples of, also where halves are subnormal.
func TestUnitReaches(t *testing.T) {
	for _, top := range []int{63, 128} {
		for peak := 1e-12; peak < 1e8; peak *= 1.37 {
			h, u := unit(peak, top)
			if float64(F16ToF32(h)) != u || math.IsInf(u, 0) {
				t.Fatalf("unit(%g, %d) = %#x, %g", peak, top, h, u)
			}
			if reach := u * (float64(top) + 0.5); reach < peak && u < 65504 {
				t.Errorf("unit(%g, %d) = %g reaches only %g", peak, top, u, reach)
			}
		}
	}
}

// TestQuantizeTakesAnyValues gives every quantiser values that have no sensible block: it must neither panic nor depend
// on anything but its input.
func TestQuantizeTakesAnyValues(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	fills := map[string]func(i int) float32{
		"nan":       func(int) float32 { return nan },
		"inf":       func(i int) float32 { return inf * float32(1-i%2*2) },
		"one nan":   func(i int) float32 { return map[bool]float32{true: nan, false: 1}[i == 5] },
		"largest":   func(i int) float32 { return math.MaxFloat32 * float32(1-i%2*2) },
		"subnormal": func(i int) float32 { return math.SmallestNonzeroFloat32 * float32(i%5-2) },
		"constant":  func(int) float32 { return -3 },
		"positive":  func(i int) float32 { return 1 + float32(i) },
		"zero":      func(i int) float32 { return float32(math.Copysign(0, float64(i%2)-0.5)) },
	}
	for name, fill := range fills {
		x := make([]float32, 512)
		for i := range x {
			x[i] = fill(i)
		}
		for id := range layouts {
			typ := Type(id)
			if !typ.Quantizable() {
				continue
			}
			first, second := roundTrip(t, typ, x), roundTrip(t, typ, x)
			compareBits(t, first, second)
			if name == "zero" || name == "constant" || name == "positive" {
				largest := float64(abs(peak(x)))
				if err := rms(x, first); err > largest/12 {
					t.Errorf("%v of %s: error %g", typ, name, err)
				}
			}
		}
	}
}

func BenchmarkQuantize(b *testing.B) {
	x := weights(1 << 14)
	for id := range layouts {
		typ := Type(id)
		if !typ.Quantizable() {
			continue
		}
		b.Run(typ.String(), func(b *testing.B) {
			n, _ := typ.RowBytes(len(x))
			dst := make([]byte, n)
			b.SetBytes(int64(4 * len(x)))
			for b.Loop() {
				if err := typ.Quantize(dst, x); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
