package chat

import (
	"fmt"
	"slices"
	"strings"
)

// Names of the functions that rewritten templates call.
const (
	enterName = "_chat_enter" // at the beginning of a macro or call body
	leaveName = "_chat_leave" // at its end
	stepName  = "_chat_step"  // at the beginning of each turn of a loop
)

// A rewriter puts a template together again for the engine. All literal text
// becomes string literals, so that the engine controls no white space; trusted
// text is spelled with twins; variables set in a loop's body begin each turn
// with their value from outside, as the language has it; macros count how deep
// they are, loops how often they turn.
type rewriter struct {
	twins  *twins
	out    []string
	line   int // lines written so far
	blocks []block
	saved  int // variables of loops saved so far
}

// A block is a statement whose end has not come yet.
type block struct {
	keyword string
	line    int
	before  int             // index in out of what precedes the block
	body    int             // index in out of what begins its body
	targets map[string]bool // variables of a loop
	sets    []string        // variables that a loop's body sets
}

// rewrite returns the template for the engine. A part that it does not know is
// an error with its line.
func (s *source) rewrite(w *twins) (string, error) {
	r := &rewriter{twins: w}
	for _, seg := range s.segments {
		if err := r.segment(seg); err != nil {
			return "", fmt.Errorf("line %d: %w", seg.line, err)
		}
	}
	if n := len(r.blocks); n > 0 {
		b := r.blocks[n-1]
		return "", fmt.Errorf("line %d: the %s block is not closed", b.line, b.keyword)
	}
	return strings.Join(r.out, ""), nil
}

func (r *rewriter) segment(seg segment) error {
	switch seg.kind {
	case text:
		r.emit(seg.line, "{{", quote(r.twins.spell(seg.text)), "}}")
		return nil
	case output:
		code, err := r.code(seg.tokens)
		r.emit(seg.line, "{{", code, "}}")
		return err
	}
	switch keyword := seg.tokens[0].text; keyword {
	case "if", "for", "macro", "call", "filter", "generation":
		return r.open(seg, keyword)
	case "set":
		return r.set(seg)
	case "elif", "else", "break", "continue":
	case "endif", "endfor", "endmacro", "endcall", "endfilter", "endgeneration", "endset":
		return r.close(seg, strings.TrimPrefix(keyword, "end"))
	default:
		return fmt.Errorf("the statement %q is not supported", keyword)
	}
	return r.statement(seg)
}

func (r *rewriter) statement(seg segment) error {
	code, err := r.code(seg.tokens)
	r.emit(seg.line, "{%", code, "%}")
	return err
}

// emit writes a tag. Empty lines inside it bring it to its line in the
// template, which the engine's errors name.
func (r *rewriter) emit(line int, opener, code, closer string) {
	lead := strings.Repeat("\n", max(line-1-r.line, 0)) + " "
	r.out = append(r.out, opener+lead+code+" "+closer)
	r.line += strings.Count(lead, "\n") + strings.Count(code, "\n")
}

// call writes a call of one of our functions, which gives no text.
func (r *rewriter) call(name string) { r.emit(0, "{{", name+"()", "}}") }

func (r *rewriter) open(seg segment, keyword string) error {
	b := block{keyword: keyword, line: seg.line, targets: map[string]bool{}}
	switch keyword {
	case "for":
		for _, t := range seg.tokens[1:] {
			if t.is("in") {
				break
			}
			if t.is("(") {
				return fmt.Errorf("loop variables in brackets are not supported")
			}
			b.targets[t.text] = true
		}
		b.before = len(r.out)
		r.out = append(r.out, "")
	case "macro":
		if err := checkMacro(seg.tokens); err != nil {
			return err
		}
	case "filter":
		if len(seg.tokens) != 2 {
			return fmt.Errorf("a filter block with arguments or more than one filter is not supported")
		}
	}
	if err := r.statement(seg); err != nil {
		return err
	}
	switch keyword {
	case "for":
		b.body = len(r.out)
		r.out = append(r.out, "")
		r.call(stepName)
	case "macro", "call":
		r.call(enterName)
	}
	return r.push(b)
}

func (r *rewriter) push(b block) error {
	if len(r.blocks) == maxNesting {
		return fmt.Errorf("more than %d blocks in each other", maxNesting)
	}
	r.blocks = append(r.blocks, b)
	return nil
}

func (r *rewriter) close(seg segment, keyword string) error {
	n := len(r.blocks) - 1
	if n < 0 || r.blocks[n].keyword != keyword {
		return fmt.Errorf("%s ends no block", seg.tokens[0].text)
	}
	b := r.blocks[n]
	r.blocks = r.blocks[:n]
	switch keyword {
	case "for":
		for _, v := range b.sets {
			r.saved++
			outer := fmt.Sprintf("_chat_outer_%d", r.saved)
			r.out[b.before] += "{% set " + outer + " = " + v + " %}"
			r.out[b.body] += "{% set " + v + " = " + outer + " %}"
		}
	case "macro", "call":
		r.call(leaveName)
	}
	return r.statement(segment{tokens: seg.tokens[:1], line: seg.line})
}

func (r *rewriter) set(seg segment) error {
	seg.tokens = slices.Clone(seg.tokens) // the source is shared
	target := seg.tokens[1:]
	equals := slices.IndexFunc(target, func(t token) bool { return t.is("=") })
	if equals >= 0 {
		target = target[:equals]
	}
	attribute := equals >= 0 && len(target) == 3 && target[1].is(".")
	if len(target) == 0 || target[0].kind != name || len(target) != 1 && !attribute {
		return fmt.Errorf("setting several variables at once, or a block through a filter, is not supported")
	}
	if !attribute {
		r.noteSet(target[0].text)
	}
	// The engine wants no white space around the point.
	for i := range target {
		target[i].space = ""
	}
	target[0].space = " "
	if err := r.statement(seg); err != nil || equals >= 0 {
		return err
	}
	return r.push(block{keyword: "set", line: seg.line})
}

// noteSet remembers a variable with the loop whose turns it belongs to.
func (r *rewriter) noteSet(v string) {
	for i := len(r.blocks) - 1; i >= 0; i-- {
		switch b := &r.blocks[i]; b.keyword {
		case "for":
			if !b.targets[v] && !slices.Contains(b.sets, v) {
				b.sets = append(b.sets, v)
			}
			return
		case "macro", "call":
			return
		}
	}
}

// checkMacro refuses default values that the engine would cut at commas.
func checkMacro(tokens []token) error {
	depth := 0
	for _, t := range tokens {
		switch {
		case t.is("("), t.is("["), t.is("{"):
			depth++
		case t.is(")"), t.is("]"), t.is("}"):
			depth--
		case t.is(",") && depth > 1, t.kind == str && strings.Contains(t.text, ","):
			return fmt.Errorf("a comma in a macro parameter's default value is not supported")
		}
	}
	return nil
}

// code writes the tokens of a tag.
func (r *rewriter) code(tokens []token) (string, error) {
	var b strings.Builder
	for i, t := range tokens {
		b.WriteString(t.space)
		switch {
		case t.kind == str && i+1 < len(tokens) && tokens[i+1].is("%"):
			return "", fmt.Errorf("formatting strings with %% is not supported")
		case t.kind == str && compared(tokens, i):
			b.WriteString(quote(t.text))
		case t.kind == str:
			b.WriteString(quote(r.twins.spell(t.text)))
		case t.is("}"): // two in a row would end the tag
			b.WriteString(" }")
		default:
			b.WriteString(t.text + unsupported(tokens, i))
		}
	}
	return b.String(), nil
}

// unsupported returns an ending that makes a name unknown to the engine where
// the engine would do something else than the language says. So the template
// works as long as it does not come there, and fails with that name if it does.
func unsupported(tokens []token, i int) string {
	if i == 0 || i+2 >= len(tokens) || !tokens[i+1].is("(") {
		return ""
	}
	switch {
	case tokens[i].is("split") && tokens[i-1].is("."):
		depth := 0
		for _, t := range tokens[i+1:] {
			switch {
			case t.is("("), t.is("["), t.is("{"):
				depth++
			case t.is(")"), t.is("]"), t.is("}"):
				depth--
			case t.is(",") && depth == 1:
				return "_with_a_limit"
			}
			if depth == 0 {
				return ""
			}
		}
	case tokens[i].is("map") && tokens[i-1].is("|") && tokens[i+2].kind == str:
		return "_with_a_filter"
	}
	return ""
}

// probes are the methods and filters whose first argument is looked for in
// a text.
var probes = strings.Fields("count endswith find index lstrip partition removeprefix removesuffix replace " +
	"rfind rpartition rsplit rstrip split startswith strip trim")

// compared reports whether a string literal is compared with another text or
// looked for in it, and not written. Such literals are spelled as content is.
func compared(tokens []token, i int) bool {
	at := func(i int) token {
		if i < 0 || i >= len(tokens) {
			return token{}
		}
		return tokens[i]
	}
	next, prev := at(i+1), at(i-1)
	switch {
	case next.is("in"), next.is("not") && at(i+2).is("in"),
		next.is("=="), next.is("!="), prev.is("=="), prev.is("!="):
		return true
	case prev.is("("):
		return slices.Contains(probes, at(i-2).text) && (at(i-3).is(".") || at(i-3).is("|"))
	case prev.is("["): // a key, unless the bracket begins a list
		owner := at(i - 2)
		return owner.kind == str || owner.is(")") || owner.is("]") ||
			owner.kind == name && !owner.is("in") && !owner.is("else") && !owner.is("if") &&
				!owner.is("or") && !owner.is("and") && !owner.is("not")
	}
	return false
}

// quote writes a string literal for the engine, whose only escapes these are.
func quote(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'"
}
