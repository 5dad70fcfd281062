package tokenizer

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"
)

// An spm is the model of kind "llama": SentencePiece's byte pair encoding.
// Neighbours merge if their text together is a token, the highest score first.
type spm struct {
	t       *Tokenizer
	ranks   []uint32 // by id: 0 for the highest score, equal for equal scores
	longest int      // bytes of the longest token
	bytes   fallback
	bridges bridgeSet
}

func newSPM(t *Tokenizer, scores []float32) (*spm, error) {
	s := &spm{t: t, ranks: make([]uint32, len(scores)), bridges: newBridgeSet()}
	if err := s.bytes.fromByteTokens(t); err != nil {
		return nil, err
	}
	order := make([]int32, len(scores))
	for id, score := range scores {
		if math.IsNaN(float64(score)) {
			return nil, fmt.Errorf("%s: entry %d is not a number", keyScores, id)
		}
		order[id] = int32(id)
	}
	slices.SortFunc(order, func(a, b int32) int { return cmp.Compare(scores[b], scores[a]) })
	for i, id := range order[1:] {
		s.ranks[id] = s.ranks[order[i]]
		if scores[id] != scores[order[i]] {
			s.ranks[id]++
		}
	}
	for piece := range t.ids {
		s.longest = max(s.longest, len(piece))
		s.bridges.add(piece)
	}
	return s, nil
}

// join makes an spm a joiner.
func (s *spm) join(text string, l, _ *symbol, end int32) (uint32, int32) {
	piece := text[l.start:end]
	if len(piece) > s.longest {
		return noRank, 0
	}
	id := s.t.lookup(piece)
	if id < 0 {
		return noRank, 0
	}
	return s.ranks[id], id
}

func (s *spm) append(dst []int32, text string, m *merger) []int32 {
	begin := len(dst)
	for text != "" {
		part := text[:s.bridges.part(text)]
		text = text[len(part):]
		m.reset(len(part))
		for i := 0; i < len(part); {
			_, size := utf8.DecodeRuneInString(part[i:])
			m.add(s.t.lookup(part[i:i+size]), i)
			i += size
		}
		m.run(part, s)
		dst = s.bytes.append(dst, part, m, s.t)
	}
	if s.bytes.unknown >= 0 { // SentencePiece gives one unknown token for a stretch of unknown text
		ids := slices.CompactFunc(dst[begin:], func(a, b int32) bool { return a == b && a == s.bytes.unknown })
		dst = dst[:begin+len(ids)]
	}
	return dst
}
