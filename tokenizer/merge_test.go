package tokenizer

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// randomLine makes a lineBPE over a few letters with random merges, some of them
// of parts that are no tokens or that come before their own parts in rank.
func randomLine(t *testing.T, rng *rand.Rand) (*lineBPE, []string) {
	t.Helper()
	tok := &Tokenizer{kind: "gemma4", unknown: -1, ids: map[string]int32{}}
	add := func(token, piece string, typ tokenType) {
		tok.ids[piece] = int32(len(tok.tokens))
		tok.tokens, tok.pieces, tok.types = append(tok.tokens, token), append(tok.pieces, piece), append(tok.types, typ)
	}
	for c := range 256 {
		add(fmt.Sprintf("<0x%02X>", c), string([]byte{byte(c)}), byteValue)
	}
	clear(tok.ids) // byte tokens are not made by merges
	known := []string{"a", "b", "c", "é", "▁"}
	for _, s := range known[:4] {
		add(s, s, normal)
	}
	add("▁", " ", normal)
	var list []string
	for range 12 {
		l, r := known[rng.IntN(len(known))], known[rng.IntN(len(known))]
		known = append(known, l+r)
		list = append(list, l+" "+r)
		if piece := strings.ReplaceAll(l+r, "▁", " "); rng.IntN(4) > 0 && tok.lookup(piece) < 0 {
			add(l+r, piece, normal)
		}
	}
	rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	b, err := newLineBPE(tok, list)
	if err != nil {
		t.Fatal(err)
	}
	return b, list
}

// plainMerge is the definition: it looks for the best pair again after each merge.
func plainMerge(t *Tokenizer, list []string, text string) []string {
	symbols := strings.Split(text, "")
	for {
		best, at := len(list), -1
		for i := range len(symbols) - 1 {
			pair := strings.ReplaceAll(symbols[i], " ", "▁") + " " + strings.ReplaceAll(symbols[i+1], " ", "▁")
			if rank := slices.Index(list, pair); rank >= 0 && rank < best {
				best, at = rank, i
			}
		}
		if at < 0 {
			return symbols
		}
		symbols = slices.Replace(symbols, at, at+2, symbols[at]+symbols[at+1])
	}
}

func TestMergerFollowsTheDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 60 {
		b, list := randomLine(t, rng)
		for range 40 {
			var text strings.Builder
			for range rng.IntN(30) {
				text.WriteString([]string{"a", "b", "c", "é", " ", "x"}[rng.IntN(6)])
			}
			var want []int32
			for _, s := range plainMerge(b.t, list, text.String()) {
				if id := b.t.lookup(s); b.t.valid(id) {
					want = append(want, id)
					continue
				}
				for _, c := range []byte(s) {
					want = append(want, b.bytes.ids[c])
				}
			}
			if got := b.append(nil, text.String(), &merger{}); !slices.Equal(got, want) {
				t.Fatalf("merges %q, text %q: got %v, want %v", list, text.String(), got, want)
			}
		}
	}
}

func TestTextIsCutWhereNoMergeReaches(t *testing.T) {
	s := newBridgeSet()
	s.add("ab")
	s.add("b c")
	for text, want := range map[string]int{"ab": 2, "ba": 1, "ab cd": 4, "c": 1, "éa": 2, "\xffa": 1} {
		if got := s.part(text); got != want {
			t.Errorf("%q: the first part has %d bytes, want %d", text, got, want)
		}
	}
}

func TestFirstOfEqualMergesCounts(t *testing.T) {
	b := newMerges(3)
	b.add(1, 2, 0, 10)
	b.add(1, 2, 1, 11)
	b.add(0, 0, 2, 12)
	l, r := &symbol{id: 1}, &symbol{id: 2}
	if rank, into := b.join("", l, r, 0); rank != 0 || into != 10 {
		t.Errorf("got rank %d into %d, want 0 into 10", rank, into)
	}
	if rank, into := b.join("", &symbol{}, &symbol{}, 0); rank != 2 || into != 12 {
		t.Errorf("got rank %d into %d, want 2 into 12", rank, into)
	}
	if rank, _ := b.join("", r, l, 0); rank != noRank {
		t.Errorf("the pair the other way round has rank %d", rank)
	}
}
