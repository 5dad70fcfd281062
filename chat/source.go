package chat

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of templates. The largest published ones have some 40 kB and nest
// brackets and blocks less than ten deep.
const (
	maxSource  = 256 << 10 // bytes
	maxNesting = 100       // brackets in a tag, blocks in each other
	maxTokens  = 10000     // tokens in a tag
)

// A source is a template taken apart. The engine gets it put together again in
// a form that leaves it no choice in what it does differently from Jinja2, the
// language's reference: white space around tags, raw blocks, escapes in
// strings.
type source struct {
	segments []segment
	text     string // as it came
}

type segmentKind int

const (
	text      segmentKind = iota
	output                // {{ … }}
	statement             // {% … %}
)

// A segment is literal text with white space already controlled, or the tokens
// of a tag.
type segment struct {
	kind   segmentKind
	text   string
	tokens []token
	line   int // 1-based, where it begins
}

type tokenKind int

const (
	name tokenKind = iota // names, keywords and numbers
	str                   // string literals; text is their value
	sign                  // operators, brackets, punctuation
)

type token struct {
	kind  tokenKind
	text  string
	space string // white space before the token
}

// is reports whether a token is this name or sign.
func (t token) is(text string) bool { return t.kind != str && t.text == text }

// A scanner reads a template with Jinja2's rules and the options that chat
// templates are written for: trim_blocks and lstrip_blocks.
type scanner struct {
	src       string
	pos       int
	line      int // line of pos
	lineStart bool
	segments  []segment
}

// parseSource takes a template apart.
func parseSource(src string) (*source, error) {
	if len(src) > maxSource {
		return nil, fmt.Errorf("it has %d bytes, more than the %d allowed", len(src), maxSource)
	}
	clean := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(src)
	s := &scanner{src: strings.TrimSuffix(clean, "\n"), line: 1, lineStart: true}
	for s.pos < len(s.src) {
		if err := s.next(); err != nil {
			return nil, fmt.Errorf("line %d: %w", s.line, err)
		}
	}
	return &source{segments: s.segments, text: src}, nil
}

// next reads the text up to a tag and the tag.
func (s *scanner) next() error {
	start := s.pos
	for at := start; ; at++ {
		i := strings.IndexByte(s.src[at:], '{')
		if i < 0 || at+i+1 == len(s.src) {
			s.addText(s.src[start:])
			s.advance(len(s.src))
			return nil
		}
		at += i
		if c := s.src[at+1]; c == '{' || c == '%' || c == '#' {
			s.addText(s.trimLeft(s.src[start:at], at))
			s.advance(at + 2)
			break
		}
	}
	opener := s.src[s.pos-1]
	if s.pos < len(s.src) && (s.src[s.pos] == '-' || s.src[s.pos] == '+') {
		s.advance(s.pos + 1)
	}
	switch opener {
	case '#':
		end := strings.Index(s.src[s.pos:], "#}")
		if end < 0 {
			return fmt.Errorf("a comment is not closed with #}")
		}
		end += s.pos
		// Without a character between them "{#-" and "-#}" do not share it.
		s.closeTag(end, s.pos < end && s.src[end-1] == '-', s.pos < end && s.src[end-1] == '+', true)
		return nil
	case '%':
		return s.tag(statement, "%}")
	}
	return s.tag(output, "}}")
}

// advance moves to a place further on.
func (s *scanner) advance(to int) {
	s.line += strings.Count(s.src[s.pos:to], "\n")
	s.pos = to
}

func (s *scanner) addText(t string) {
	if t != "" {
		s.segments = append(s.segments, segment{kind: text, text: t, line: s.line})
	}
}

// trimLeft returns text as the tag at src[at:] leaves it: without white space
// at its end if the tag begins with a minus, else without the indentation of
// a tag, other than output, that is first on its line.
func (s *scanner) trimLeft(t string, at int) string {
	mark := byte(0)
	if at+2 < len(s.src) {
		mark = s.src[at+2]
	}
	switch {
	case mark == '-':
		return strings.TrimRightFunc(t, unicode.IsSpace)
	case mark == '+' || s.src[at+1] == '{':
		return t
	}
	begin := strings.LastIndexByte(t, '\n') + 1
	if (begin > 0 || s.lineStart) && strings.TrimSpace(t[begin:]) == "" {
		return t[:begin]
	}
	return t
}

// closeTag moves behind the two characters at end that close a tag, and behind
// the white space that it removes.
func (s *scanner) closeTag(end int, minus, plus, block bool) {
	after := end + 2
	switch {
	case minus:
		after = len(s.src) - len(strings.TrimLeftFunc(s.src[after:], unicode.IsSpace))
	case block && !plus && strings.HasPrefix(s.src[after:], "\n"):
		after++
	}
	s.lineStart = s.src[after-1] == '\n'
	s.advance(after)
}

// tag reads the inside of a tag and what closes it.
func (s *scanner) tag(kind segmentKind, closer string) error {
	seg := segment{kind: kind, line: s.line}
	var open []byte // closing brackets that are due
	for at := s.pos; ; {
		begin := at
		for at < len(s.src) && strings.IndexByte(" \t\n\v\f", s.src[at]) >= 0 {
			at++
		}
		if at == len(s.src) {
			return fmt.Errorf("a tag is not closed with %s", closer)
		}
		if rest := s.src[at:]; len(open) == 0 {
			minus := strings.HasPrefix(rest, "-"+closer)
			plus := kind == statement && strings.HasPrefix(rest, "+"+closer)
			if minus || plus || strings.HasPrefix(rest, closer) {
				if minus || plus {
					at++
				}
				return s.endTag(seg, at, minus, plus)
			}
		}
		t, size, err := scanToken(s.src[at:])
		if err != nil {
			return err
		}
		t.space = s.src[begin:at]
		if t.kind == sign {
			switch t.text {
			case "(", "[", "{":
				open = append(open, map[string]byte{"(": ')', "[": ']', "{": '}'}[t.text])
			case ")", "]", "}":
				if len(open) == 0 || open[len(open)-1] != t.text[0] {
					return fmt.Errorf("%q closes no bracket", t.text)
				}
				open = open[:len(open)-1]
			}
		}
		seg.tokens = append(seg.tokens, t)
		if len(open) > maxNesting || len(seg.tokens) > maxTokens {
			return fmt.Errorf("a tag has more than %d brackets in each other or %d parts", maxNesting, maxTokens)
		}
		at += size
	}
}

// endTag adds a tag that closes at end. A raw tag makes text of all up to the
// endraw tag.
func (s *scanner) endTag(seg segment, end int, minus, plus bool) error {
	raw := seg.kind == statement && len(seg.tokens) == 1 && seg.tokens[0].is("raw")
	s.closeTag(end, minus, plus, seg.kind == statement && !raw)
	if !raw {
		if len(seg.tokens) == 0 {
			return fmt.Errorf("a tag is empty")
		}
		s.segments = append(s.segments, seg)
		return nil
	}
	for at := s.pos; ; at += 2 {
		i := strings.Index(s.src[at:], "{%")
		if i < 0 {
			return fmt.Errorf("a raw block is not closed with {%% endraw %%}")
		}
		at += i
		inside, _, found := strings.Cut(s.src[at+2:], "%}")
		word := strings.TrimSpace(strings.Trim(inside, "+-"))
		if found && word == "endraw" {
			s.addText(s.trimLeft(s.src[s.pos:at], at))
			s.closeTag(at+2+len(inside), strings.HasSuffix(inside, "-"), strings.HasSuffix(inside, "+"), true)
			return nil
		}
	}
}

// scanToken reads the token that code begins with, and its size.
func scanToken(code string) (token, int, error) {
	switch c := code[0]; {
	case c == '\'' || c == '"':
		for i := 1; i < len(code); i++ {
			if code[i] == '\\' {
				i++
			} else if code[i] == c {
				value, err := unescape(code[1:i])
				return token{kind: str, text: value}, i + 1, err
			}
		}
		return token{}, 0, fmt.Errorf("a string is not closed with %c", c)
	case isNamePart(c):
		n := 1
		for n < len(code) && (isNamePart(code[n]) || code[n] == '.' && isDigit(c) && n+1 < len(code) && isDigit(code[n+1])) {
			n++
		}
		return token{kind: name, text: code[:n]}, n, nil
	}
	for _, s := range []string{"**", "//", "==", "!=", "<=", ">="} {
		if strings.HasPrefix(code, s) {
			return token{kind: sign, text: s}, 2, nil
		}
	}
	if strings.IndexByte("+-*/%~<>=.,:|()[]{}", code[0]) >= 0 {
		return token{kind: sign, text: code[:1]}, 1, nil
	}
	r, _ := utf8.DecodeRuneInString(code)
	return token{}, 0, fmt.Errorf("the character %q has no meaning in a tag", r)
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isNamePart(c byte) bool {
	return c == '_' || isDigit(c) || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// unescape returns the value of a string literal, by Python's rules. Names of
// characters, \N{…}, are not known.
func unescape(s string) (string, error) {
	if !strings.Contains(s, `\`) {
		return s, nil
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		i++
		if at := strings.IndexByte(`abfnrtv\'"`, s[i]); at >= 0 {
			b.WriteByte("\a\b\f\n\r\t\v\\'\""[at])
			continue
		}
		digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[s[i]]
		var r rune
		switch {
		case s[i] == '\n': // a line joined to the next
		case digits > 0 && i+digits < len(s):
			n, err := strconv.ParseUint(s[i+1:i+1+digits], 16, 32)
			if err != nil || n > utf8.MaxRune {
				return "", fmt.Errorf("\\%s in a string is no character", s[i:i+1+digits])
			}
			b.WriteRune(rune(n))
			i += digits
		case digits > 0 || s[i] == 'N':
			return "", fmt.Errorf("the escape \\%c in a string is not complete or not supported", s[i])
		case '0' <= s[i] && s[i] <= '7':
			n := 0
			for ; n < 3 && i+n < len(s) && '0' <= s[i+n] && s[i+n] <= '7'; n++ {
				r = r*8 + rune(s[i+n]-'0')
			}
			b.WriteRune(r)
			i += n - 1
		default: // any other stays, with its backslash
			b.WriteByte('\\')
			b.WriteByte(s[i])
		}
	}
	return b.String(), nil
}
