package quant

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"
)

const golden = "../testdata/quant"

type goldenType struct {
	BlockSize int    `json:"block_size"`
	TypeSize  int    `json:"type_size"`
	TypeID    uint32 `json:"type_id"`
	Quantized bool   `json:"quantized"`
}

func goldenTypes(t *testing.T) map[string]goldenType {
	t.Helper()
	var index map[string]goldenType
	if err := json.Unmarshal(read(t, "index.json"), &index); err != nil {
		t.Fatal(err)
	}
	return index
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(golden, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func floats(b []byte) []float32 {
	x := make([]float32, len(b)/4)
	for i := range x {
		x[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return x
}

func TestLayoutsMatchGolden(t *testing.T) {
	for name, g := range goldenTypes(t) {
		typ := Type(g.TypeID)
		if typ.String() != name || typ.BlockSize() != g.BlockSize || typ.BlockBytes() != g.TypeSize {
			t.Errorf("type %d is %v with %d elements in %d bytes, want %s with %d in %d", g.TypeID, typ, typ.BlockSize(), typ.BlockBytes(), name, g.BlockSize, g.TypeSize)
		}
	}
}

func TestDequantizeMatchesGoldenBitForBit(t *testing.T) {
	for name, g := range goldenTypes(t) {
		typ := Type(g.TypeID)
		if !typ.Supported() {
			continue
		}
		kinds := []string{"random"}
		if g.Quantized {
			kinds = append(kinds, "quantized")
		}
		for _, kind := range kinds {
			t.Run(name+"/"+kind, func(t *testing.T) {
				want := floats(read(t, name+"."+kind+".f32"))
				got := make([]float32, len(want))
				if err := typ.Dequantize(got, read(t, name+"."+kind+".bin")); err != nil {
					t.Fatal(err)
				}
				compareBits(t, got, want)
			})
		}
	}
}

func compareBits(t *testing.T, got, want []float32) {
	t.Helper()
	bad := 0
	for i := range want {
		if got[i] != got[i] && want[i] != want[i] {
			continue
		}
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			if bad++; bad <= 5 {
				t.Errorf("element %d is %v (%#x), want %v (%#x)", i, got[i], math.Float32bits(got[i]), want[i], math.Float32bits(want[i]))
			}
		}
	}
	if bad > 5 {
		t.Errorf("%d of %d elements differ", bad, len(want))
	}
}

func TestQuantizeMatchesGoldenByteForByte(t *testing.T) {
	input := floats(read(t, "input.f32"))
	for name, g := range goldenTypes(t) {
		typ := Type(g.TypeID)
		if !g.Quantized || !typ.Quantizable() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			want := read(t, name+".quantized.bin")
			got := make([]byte, len(want))
			if err := typ.Quantize(got, input); err != nil {
				t.Fatal(err)
			}
			for i := 0; i < len(want); i += g.TypeSize {
				if a, b := got[i:i+g.TypeSize], want[i:i+g.TypeSize]; !bytes.Equal(a, b) {
					t.Errorf("block %d is\n%x, want\n%x", i/g.TypeSize, a, b)
				}
			}
		})
	}
}
