//go:build !noasm

package kernel

import (
	"encoding/binary"
	"math"
)

// tilesFrom is the least rows of activations that tile registers pay for: panels are unpacked first.
const tilesFrom = 2 * maxTile

// Parts of tilePanels panels and tileBlocks sub-blocks are unpacked at a time: with the records that meet them they fit
// the first cache. The records of tileBlocks sub-blocks of all rows and the outputs of tileRun panels fit the second.
const (
	tilePanels = 2
	tileBlocks = 16
	tileRun    = 16
)

const (
	tileRoomBytes = 128 + 2048 // see mulScaleAMX
	openBytes     = 640        // an unpacked sub-block
)

// tileConfig describes tile registers by the bytes of a row and the rows of each (Intel 64 and IA-32 Architectures
// Software Developer's Manual, volume 1, chapter 18: palette 1).
func tileConfig(shapes ...[2]byte) (c [64]byte) {
	c[0] = 1
	for i, shape := range shapes {
		c[16+2*i], c[48+i] = shape[0], shape[1]
	}
	return c
}

// tileScratch is a room and unpacked parts of panels.
type tileScratch struct{ room, codes []byte }

func newTileScratch() *tileScratch {
	b := aligned(tileRoomBytes + tilePanels*tileBlocks*openBytes)
	return &tileScratch{room: b[:tileRoomBytes], codes: b[tileRoomBytes:]}
}

// panelRun is how many panels are best multiplied in one call.
func (s *Set) panelRun() int {
	if s.tiles {
		return tileRun
	}
	return 1
}

// mulTiles computes the outputs of n whole panels of the rows of activations that fill tiles of 16, and returns how many
// rows these are.
func (s *Set) mulTiles(dst []float32, stride int, m *Matrix, panels []byte, n int, in *Input) int {
	if !s.tiles || !formats[m.kind].int8 || in.n < tilesFrom || n == 0 {
		return 0
	}
	tiles, all := in.n/maxTile, m.Cols/32
	_ = dst[(tiles*maxTile-1)*stride+n*lanes-1]
	x, _ := s.tileScratch.Get().(*tileScratch)
	if x == nil {
		x = newTileScratch()
	}
	f := &formats[m.kind]
	sums, rows, codes := [2]byte{64, 16}, [2]byte{32, 16}, [2]byte{64, 8}
	if f.split { // half a sub-block at a time
		rows[0], codes[1] = 16, 4
	}
	config := tileConfig(sums, rows, codes)
	copy(x.room, config[:])
	for i := range lanes {
		binary.LittleEndian.PutUint32(x.room[64+4*i:], math.Float32bits(roundMagic))
	}
	records := in.tile(0, tiles*maxTile)
	for run := 0; run < n; run += tileRun {
		for from := 0; from < all; from += tileBlocks {
			blocks := min(tileBlocks, all-from)
			part := records[from*maxTile*recordBytes:]
			for p := run; p < min(run+tileRun, n); p += tilePanels {
				group := min(tilePanels, n-p)
				for i := range group {
					panel := panels[(p+i)*m.panel:][:m.panel]
					unpackTiles(x.codes[i*blocks*openBytes:], m.kind, panel[from*32/f.columns*f.bytes:], blocks*32/f.columns)
				}
				multiplyTiles(dst[p*lanes:], stride, f, x, group, blocks, part, all*maxTile*recordBytes, tiles, from > 0)
			}
		}
	}
	s.tileScratch.Put(x)
	return tiles * maxTile
}

//go:noinline
func unpackTiles(codes []byte, k kind, panel []byte, n int) {
	dst, src := &codes[0], &panel[0]
	switch k {
	case kindQ4_0:
		unpackQ4_0AMX(dst, src, n)
	case kindQ4_1:
		unpackQ4_1AMX(dst, src, n)
	case kindQ5_0:
		unpackQ5_0AMX(dst, src, n)
	case kindQ5_1:
		unpackQ5_1AMX(dst, src, n)
	case kindQ8_0:
		unpackQ8_0AMX(dst, src, n)
	case kindQ4_K:
		unpackQ4_KAMX(dst, src, n)
	case kindQ5_K:
		unpackQ5_KAMX(dst, src, n)
	case kindQ6_K:
		unpackQ6_KAMX(dst, src, n)
	}
}

//go:noinline
func multiplyTiles(dst []float32, stride int, f *format, x *tileScratch, panels, blocks int, records []byte, recordStride, tiles int, add bool) {
	codes, room := &x.codes[0], &x.room[0]
	switch {
	case f.split:
		mulSplitAMX(&dst[0], stride, codes, panels, blocks, &records[0], recordStride, tiles, add, room)
	case f.min:
		mulMinAMX(&dst[0], stride, codes, panels, blocks, &records[0], recordStride, tiles, add, room)
	default:
		mulScaleAMX(&dst[0], stride, codes, panels, blocks, &records[0], recordStride, tiles, add, room)
	}
}

// multiplyTileBytes takes about a microsecond and returns the operations done.
func multiplyTileBytes() int64 {
	const n = 32
	full := [2]byte{64, 16}
	config := tileConfig(full, full, full, full, full, full)
	multiplyBytesAMX(n, &config[0])
	return n * 4 * 16 * 16 * 64 * 2
}
