package tokenizer

import (
	"fmt"
	"math/bits"
	"strings"
	"unicode/utf8"
)

// merges are byte pair merges by rank: a hash table with open addressing, from
// pairs of ids. They are a joiner.
type merges struct {
	slots []merge // a power of two, at least half of them free
	shift int
}

type merge struct {
	pair uint64 // pairOf the ids; 0: free
	rank uint32
	into int32
}

func newMerges(n int) *merges {
	width := max(bits.Len(uint(n)), 3) + 1
	return &merges{make([]merge, 1<<width), 64 - width}
}

func pairOf(left, right int32) uint64 { return (uint64(left)<<32 | uint64(right)) + 1 }

// find returns the slot of a pair: its own or the free one where it belongs.
func (b *merges) find(pair uint64) *merge {
	for i := int(pair * 0x9e3779b97f4a7c15 >> b.shift); ; i++ {
		s := &b.slots[i&(len(b.slots)-1)]
		if s.pair == pair || s.pair == 0 {
			return s
		}
	}
}

// add adds a pair, unless it is there.
func (b *merges) add(left, right int32, rank uint32, into int32) {
	pair := pairOf(left, right)
	if s := b.find(pair); s.pair == 0 {
		*s = merge{pair, rank, into}
	}
}

func (b *merges) join(_ string, l, r *symbol, _ int32) (uint32, int32) {
	if l.id < 0 || r.id < 0 {
		return noRank, 0
	}
	if s := b.find(pairOf(l.id, r.id)); s.pair != 0 {
		return s.rank, s.into
	}
	return noRank, 0
}

// readMerges reads a list of merges, "left right" each, in order of rank. Parts
// and results that are no tokens are given ids from len(t.tokens) on: they may
// be merged further, and fall back to bytes if they stay.
func (t *Tokenizer) readMerges(list []string) (*merges, error) {
	b := newMerges(len(list))
	spelling, next := t.alphabet(), int32(len(t.tokens))
	intern := func(piece string) int32 {
		id, ok := t.ids[piece]
		if !ok {
			id = next
			next++
			t.ids[piece] = id
		}
		return id
	}
	var text []byte
	for rank, entry := range list {
		left, right, ok := strings.Cut(entry, " ")
		if !ok || left == "" || right == "" || strings.IndexByte(right, ' ') >= 0 {
			return nil, fmt.Errorf("%s: entry %d is %q, want two pieces with one space between them", keyMerges, rank, entry)
		}
		if !spelling.reachable(left) || !spelling.reachable(right) {
			continue // no text has these parts
		}
		l, r := spelling.piece(left), spelling.piece(right)
		text = append(append(text[:0], l...), r...)
		into, ok := t.ids[string(text)]
		if !ok {
			if id, ok := t.special[left+right]; ok && t.types[id].hidden() {
				continue // plain text never becomes a control token
			}
			into = intern(string(text))
		}
		b.add(intern(l), intern(r), uint32(rank), into) // of equal entries the first counts
	}
	return b, nil
}

// A lineBPE is the model of kind "gemma4": merges run over whole lines and
// over runs of newlines, on characters.
type lineBPE struct {
	*merges
	t       *Tokenizer
	ascii   [utf8.RuneSelf]int32 // ids of the ASCII characters, -1 for none
	bytes   fallback
	bridges bridgeSet
}

func newLineBPE(t *Tokenizer, list []string) (*lineBPE, error) {
	b := &lineBPE{t: t, bridges: newBridgeSet()}
	if err := b.bytes.fromByteTokens(t); err != nil {
		return nil, err
	}
	var err error
	if b.merges, err = t.readMerges(list); err != nil {
		return nil, err
	}
	// Every result of a merge is in ids by now, and what else is there costs no more than a cut.
	for piece := range t.ids {
		b.bridges.add(piece)
	}
	for c := range b.ascii {
		b.ascii[c] = t.lookup(string(rune(c)))
	}
	return b, nil
}

func (b *lineBPE) append(dst []int32, text string, m *merger) []int32 {
	for text != "" {
		n := newlines(text)
		if n == 0 {
			if n = strings.IndexByte(text, '\n'); n < 0 {
				n = len(text)
			}
			dst = b.line(dst, text[:n], m)
		} else if id := b.t.lookup(text[:n]); b.t.valid(id) {
			dst = append(dst, id)
		} else {
			dst = b.line(dst, text[:n], m)
		}
		text = text[n:]
	}
	return dst
}

// newlines returns the number of newlines that text begins with.
func newlines(text string) int {
	n := 0
	for n < len(text) && text[n] == '\n' {
		n++
	}
	return n
}

func (b *lineBPE) line(dst []int32, line string, m *merger) []int32 {
	for line != "" {
		part := line[:b.bridges.part(line)]
		line = line[len(part):]
		m.reset(len(part))
		for i := 0; i < len(part); {
			if c := part[i]; c < utf8.RuneSelf {
				m.add(b.ascii[c], i)
				i++
				continue
			}
			_, size := utf8.DecodeRuneInString(part[i:])
			m.add(b.t.lookup(part[i:i+size]), i)
			i += size
		}
		m.run(part, b)
		dst = b.bytes.append(dst, part, m, b.t)
	}
	return dst
}

// A byteBPE is the model of kind "gpt2": a pre-tokenizer cuts the text into
// pieces, and merges run over the bytes of each.
type byteBPE struct {
	*merges
	t     *Tokenizer
	cut   preTokenizer
	bytes fallback   // the tokens of single bytes, -1 for none
	first [256]int32 // what merges start from: the same, but for bytes that are only parts of merges
}

func newByteBPE(t *Tokenizer, list []string, cut preTokenizer) (*byteBPE, error) {
	b := &byteBPE{t: t, cut: cut}
	b.bytes.unknown = -1
	var missing []byte
	for c := range 256 {
		b.bytes.ids[c] = t.lookup(string([]byte{byte(c)}))
		if b.bytes.ids[c] < 0 {
			missing = append(missing, byte(c))
		}
	}
	if len(missing) == 256 {
		return nil, fmt.Errorf("%s: no token for any single byte; is this a byte-level vocabulary?", keyTokens)
	}
	if len(missing) > 0 {
		t.note("%s has no token for %d of the 256 bytes (% x): encoding leaves them out.", keyTokens, len(missing), missing)
	}
	var err error
	if b.merges, err = t.readMerges(list); err != nil {
		return nil, err
	}
	for c := range b.first {
		b.first[c] = t.lookup(string([]byte{byte(c)}))
	}
	return b, nil
}

func (b *byteBPE) append(dst []int32, text string, m *merger) []int32 {
	b.cut.each(text, func(piece string) {
		if b.cut.whole {
			if id := b.t.lookup(piece); b.t.valid(id) {
				dst = append(dst, id)
				return
			}
		}
		m.reset(len(piece))
		for i := range len(piece) {
			m.add(b.first[piece[i]], i)
		}
		m.run(piece, b)
		dst = b.bytes.append(dst, piece, m, b.t)
	})
	return dst
}

// lookup returns the id of a piece of plain text, -1 for none. It may be the
// id of a part of a merge that is no token.
func (t *Tokenizer) lookup(piece string) int32 {
	if id, ok := t.ids[piece]; ok {
		return id
	}
	return -1
}

// A fallback holds the tokens of text that merges leave without one.
type fallback struct {
	ids     [256]int32 // by byte
	unknown int32      // if not -1, stands for any such text instead
}

// fromByteTokens takes the tokens <0x00> to <0xFF>, or if there is none of
// them the unknown token.
func (f *fallback) fromByteTokens(t *Tokenizer) error {
	for c := range f.ids {
		f.ids[c] = -1
	}
	f.unknown = -1
	found, missing := 0, -1
	for id, typ := range t.types {
		if typ == byteValue {
			if c := t.pieces[id][0]; f.ids[c] < 0 {
				f.ids[c] = int32(id)
				found++
			}
		}
	}
	for c, id := range f.ids {
		if id < 0 {
			missing = c
			break
		}
	}
	switch {
	case missing < 0:
		return nil
	case found == 0 && t.kind == "llama" && t.unknown >= 0:
		f.unknown = t.unknown
		return nil
	case found == 0 && t.kind == "llama":
		return fmt.Errorf("%s: neither the tokens <0x00> to <0xFF> nor an unknown token (%s) for text outside the vocabulary", keyTokens, keyUnknown)
	}
	return fmt.Errorf("%s: no token <0x%02X>; text outside the vocabulary needs all of <0x00> to <0xFF>, and %d are there", keyTokens, missing, found)
}

// append appends the ids of the merged symbols of text.
func (f *fallback) append(dst []int32, text string, m *merger, t *Tokenizer) []int32 {
	last := int32(len(m.symbols) - 1)
	for i := int32(1); i != last; i = m.symbols[i].next {
		s := &m.symbols[i]
		if t.valid(s.id) {
			dst = append(dst, s.id)
			continue
		}
		if f.unknown >= 0 {
			dst = append(dst, f.unknown)
			continue
		}
		for _, c := range []byte(text[s.start:m.symbols[s.next].start]) {
			if id := f.ids[c]; id >= 0 {
				dst = append(dst, id)
			}
		}
	}
	return dst
}
