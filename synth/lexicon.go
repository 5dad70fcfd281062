package synth

import "strings"

// A lexicon is words, each of two shorter ones or symbols, in the order in which they are merged.
type lexicon struct {
	ranks map[string]int // place in words; -1 for symbols
	words []pair
}

type pair struct{ left, right string }

func newLexicon() *lexicon { return &lexicon{ranks: map[string]int{}} }

// symbol adds what words are made of.
func (l *lexicon) symbol(s string) { l.ranks[s] = -1 }

func (l *lexicon) known(w string) bool { _, ok := l.ranks[w]; return ok }

// join adds the word of two known parts, and reports whether it is new.
func (l *lexicon) join(left, right string) bool {
	w := left + right
	if l.known(w) || !l.known(left) || !l.known(right) {
		return false
	}
	l.ranks[w] = len(l.words)
	l.words = append(l.words, pair{left, right})
	return true
}

// learn adds a word of ASCII as merging would come to it: what its letters are merged to so far is joined from the left.
// It stops when there are n words.
func (l *lexicon) learn(word string, n int) {
	parts := strings.Split(word, "")
	for len(parts) > 1 {
		at, best := 0, len(l.words)
		for i := range parts[1:] {
			rank, ok := l.ranks[parts[i]+parts[i+1]]
			if ok && rank < best && l.words[rank] == (pair{parts[i], parts[i+1]}) {
				at, best = i, rank
			}
		}
		if best == len(l.words) && (best >= n || !l.join(parts[0], parts[1])) {
			return
		}
		parts[at] += parts[at+1]
		parts = append(parts[:at+1], parts[at+2:]...)
	}
}

// runs adds a symbol repeated up to n times, powers of two first, and returns the number of words.
func (l *lexicon) runs(s string, n int) int {
	before := len(l.words)
	for k := 1; 2*k <= n; k *= 2 {
		l.join(strings.Repeat(s, k), strings.Repeat(s, k))
	}
	for k, power := 3, 2; k <= n; k++ {
		if k == 2*power {
			power = k
			continue
		}
		l.join(strings.Repeat(s, power), strings.Repeat(s, k-power))
	}
	return len(l.words) - before
}

// spelling adds a character of several bytes, where bytes are the symbols.
func (l *lexicon) spelling(s string) {
	for i := 1; i < len(s); i++ {
		l.join(s[:i], s[i:i+1])
	}
}

// frequent is the letters in about the order of their frequency in English.
const frequent = "etaoinsrhldcumfpgwybvkxjqz"

// common is some of the words that English has most of.
const common = `the of and to in is that it was for on are as with his they at be this from have or by one had not but what
	all were when we there can an your which their said if do will each about how up out them then she many some so these
	would other into has more her two like him see time could no make than first been its who now people my made over did down
	only way find use may water long little very after words called just where most know`

const longestWord = 12 // letters

// fill adds words until there are n.
func (l *lexicon) fill(n int) {
	join := func(left, right string) bool { return len(l.words) < n && l.join(left, right) }
	// Pairs of letters, the frequent ones first; with a capital, and after a space.
	var tails, stems []string // what words may end and begin with
	for sum := range 2*len(frequent) - 1 {
		for i := max(0, sum-len(frequent)+1); i <= min(sum, len(frequent)-1); i++ {
			a, b := frequent[i:i+1], frequent[sum-i:sum-i+1]
			if join(a, b) {
				tails = append(tails, a+b)
			}
		}
	}
	for _, upper := range []bool{false, true} {
		for i := range frequent {
			a := frequent[i : i+1]
			if upper {
				a = strings.ToUpper(a)
			}
			if join(" ", a) {
				stems = append(stems, " "+a)
			}
		}
	}
	for _, t := range tails {
		if join(" ", t) {
			stems = append(stems, " "+t)
		}
		if capital := strings.ToUpper(t[:1]); join(capital, t[1:]) {
			stems = append(stems, capital+t[1:])
		}
	}
	stems = append(stems, tails...)
	for _, w := range strings.Fields(common) {
		l.learn(" "+w, n)
	}
	// All of three letters, so that other words take few pieces.
	for sum := range 3*len(frequent) - 2 {
		for i := range frequent {
			for j := range frequent {
				if k := sum - i - j; k >= 0 && k < len(frequent) {
					w := frequent[i:i+1] + frequent[j:j+1] + frequent[k:k+1]
					l.learn(w, n)
					l.learn(" "+w, n)
				}
			}
		}
	}
	// Then words at random, short ones more often the beginning of others. Half of their seams lie between a vowel and
	// a consonant, or the other way round, so that they can be pronounced.
	r := source(0)
	for i := range frequent {
		tails = append(tails, frequent[i:i+1])
	}
	for len(l.words) < n {
		u := r.below(1 << 15)
		left := stems[(u*u>>15)*len(stems)>>15]
		right := tails[r.below(len(tails))]
		if len(left)+len(right) > longestWord || vowel(left[len(left)-1]) == vowel(right[0]) && r.below(2) == 0 {
			continue
		}
		if join(left, right) {
			stems = append(stems, left+right)
		}
	}
}

func vowel(c byte) bool { return strings.IndexByte("aeiouy", c) >= 0 }

// characters returns the n characters that are most likely needed, or all that are known here if they are fewer:
// ASCII first.
func characters(n int) []rune {
	var out []rune
	for _, block := range [][2]rune{
		{' ', '~'}, {'\t', '\t'}, {'\r', '\r'},
		{0xa1, 0xac}, {0xae, 0x17f}, // Latin
		{0x2010, 0x2027}, {0x2030, 0x205e}, {0x20a0, 0x20bf}, {0x2190, 0x21ff}, {0x2200, 0x22ff}, // signs
		{0x391, 0x3a1}, {0x3a3, 0x3ce}, {0x400, 0x45f}, // Greek, Cyrillic
		{0x5d0, 0x5ea}, {0x621, 0x64a}, {0x905, 0x939}, {0xe01, 0xe3a}, // Hebrew, Arabic, Devanagari, Thai
		{0x3001, 0x3011}, {0x3041, 0x3096}, {0x30a1, 0x30fc}, {0xff01, 0xff5e}, // Japanese
		{0x1f300, 0x1f64f}, {0x1f680, 0x1f6c5}, {0x1f900, 0x1f9ff}, // pictures
		{0x4e00, 0x9fa5}, {0xac00, 0xd7a3}, // Chinese, Korean
	} {
		for r := block[0]; r <= block[1] && len(out) < n; r++ {
			out = append(out, r)
		}
	}
	return out
}
