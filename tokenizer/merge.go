package tokenizer

import (
	"math"
	"slices"
	"unicode/utf8"
)

// noRank is the rank of a pair that does not merge.
const noRank = math.MaxUint32

// A symbol is a stretch of text while pairs are being merged.
type symbol struct {
	id         int32 // -1: text that is no token
	start      int32 // of its text; it ends where the next one starts
	prev, next int32 // neighbours; 0 and len(symbols)-1 are fences
	rank       uint32
	into       int32 // what merging with next, at rank, gives
}

// A joiner knows which pairs of neighbours merge.
type joiner interface {
	// join returns the rank of a pair, the lowest to be merged first, and the
	// id of what it becomes; noRank if it does not merge. The pair's text is
	// text[l.start:end].
	join(text string, l, r *symbol, end int32) (rank uint32, into int32)
}

// A merger does byte pair encoding: of all neighbours it merges the pair of
// the lowest rank, the leftmost among equals, until none merges. It takes
// O(n log n) time for n symbols, and is kept to use its memory again.
type merger struct {
	symbols []symbol
	heap    []uint64 // rank<<32 | index of the left symbol; some are out of date
}

// reset prepares the merger for at most n symbols.
func (m *merger) reset(n int) {
	m.symbols = append(slices.Grow(m.symbols[:0], n+2), symbol{id: -1, rank: noRank})
	m.heap = slices.Grow(m.heap[:0], n)
}

// add adds a symbol that starts at start.
func (m *merger) add(id int32, start int) {
	i := int32(len(m.symbols))
	m.symbols = append(m.symbols, symbol{id: id, start: int32(start), prev: i - 1, next: i + 1})
}

// run merges the symbols of text, given all but the closing fence. What is
// left is the chain from symbols[1] to the closing fence, the last symbol.
func (m *merger) run(text string, j joiner) {
	last := int32(len(m.symbols))
	m.symbols = append(m.symbols, symbol{id: -1, start: int32(len(text)), rank: noRank})
	for i := int32(1); i < last; i++ {
		if m.pair(text, j, i); m.symbols[i].rank != noRank {
			m.heap = append(m.heap, uint64(m.symbols[i].rank)<<32|uint64(i))
		}
	}
	m.order()
	for len(m.heap) > 0 {
		top := m.pop()
		i := int32(top & math.MaxUint32)
		left := &m.symbols[i]
		if left.rank != uint32(top>>32) {
			continue // merged away, or its neighbour changed: the pair has another entry if it still merges
		}
		right := &m.symbols[left.next]
		left.id, left.next = left.into, right.next
		right.rank = noRank
		m.symbols[right.next].prev = i
		m.renew(text, j, i)
		m.renew(text, j, left.prev)
	}
}

// pair works out how the pair at symbol i merges.
func (m *merger) pair(text string, j joiner, i int32) {
	l := &m.symbols[i]
	if l.rank = noRank; int(l.next) < len(m.symbols)-1 {
		r := &m.symbols[l.next]
		l.rank, l.into = j.join(text, l, r, m.symbols[r.next].start)
	}
}

// renew works out the pair at symbol i anew and queues it.
func (m *merger) renew(text string, j joiner, i int32) {
	if i == 0 {
		return
	}
	if m.pair(text, j, i); m.symbols[i].rank != noRank {
		m.push(uint64(m.symbols[i].rank)<<32 | uint64(i))
	}
}

// order makes a heap of the queue.
func (m *merger) order() {
	for i := len(m.heap)/2 - 1; i >= 0; i-- {
		m.sink(i, m.heap[i])
	}
}

func (m *merger) push(v uint64) {
	m.heap = append(m.heap, v)
	i := len(m.heap) - 1
	for i > 0 {
		up := (i - 1) / 2
		if m.heap[up] <= v {
			break
		}
		m.heap[i] = m.heap[up]
		i = up
	}
	m.heap[i] = v
}

func (m *merger) pop() uint64 {
	top, n := m.heap[0], len(m.heap)-1
	v := m.heap[n]
	if m.heap = m.heap[:n]; n > 0 {
		m.sink(0, v)
	}
	return top
}

// sink puts v at place i or below.
func (m *merger) sink(i int, v uint64) {
	h := m.heap
	for {
		down := 2*i + 1
		if down >= len(h) {
			break
		}
		if down+1 < len(h) && h[down+1] < h[down] {
			down++
		}
		if v <= h[down] {
			break
		}
		h[i] = h[down]
		i = down
	}
	h[i] = v
}

// A bridgeSet holds the pairs of characters that stand side by side within
// some mergeable token. Between two characters that do not, no merge can ever
// happen, so text may be cut there and its parts merged one by one, with the
// same result. It may hold a few pairs too many, which costs a cut only.
type bridgeSet struct{ bits []uint64 }

const bridgeBits = 20

func newBridgeSet() bridgeSet { return bridgeSet{make([]uint64, 1<<bridgeBits/64)} }

func bridgeHash(a, b rune) uint32 {
	return (uint32(a)*0x9e3779b1 ^ uint32(b)*0x85ebca6b) * 0xc2b2ae35 >> (32 - bridgeBits)
}

// add adds the pairs within a token's text.
func (s bridgeSet) add(text string) {
	prev := rune(-1)
	for _, r := range text {
		if prev >= 0 {
			h := bridgeHash(prev, r)
			s.bits[h/64] |= 1 << (h % 64)
		}
		prev = r
	}
}

func (s bridgeSet) has(a, b rune) bool {
	h := bridgeHash(a, b)
	return s.bits[h/64]>>(h%64)&1 != 0
}

// part returns the length of the first part of text that merges can be worked
// out for alone; text is not empty.
func (s bridgeSet) part(text string) int {
	prev, n := utf8.DecodeRuneInString(text)
	for n < len(text) {
		r, size := utf8.DecodeRuneInString(text[n:])
		if !s.has(prev, r) {
			break
		}
		prev, n = r, n+size
	}
	return n
}
