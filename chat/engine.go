package chat

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ardanlabs/jinja"
)

// Bounds of one rendering.
const (
	maxDepth = 100     // macros in each other
	maxSteps = 1000000 // turns of all loops together, besides a few for each pair of messages
	maxRange = 1000000 // elements of a range
)

// A RefusedError is a template's own refusal of a conversation.
type RefusedError struct {
	Reason string // what the template says
}

func (e *RefusedError) Error() string {
	return "the chat template refuses the conversation: " + e.Reason
}

// A compiled template serves messages without its private runes.
type compiled struct {
	template *jinja.Template
	twins    *twins
}

// compile prepares the template for contents that may use private runes.
func (t *Template) compile(msgs []Message) (c *compiled, err error) {
	defer contain(&err)
	texts := append(slices.Collect(maps.Keys(t.specials.set)), t.source.text, t.bos, t.eos)
	for _, m := range msgs {
		texts = append(texts, m.Content)
	}
	c = &compiled{}
	if c.twins, err = newTwins(t.specials, texts...); err != nil {
		return nil, err
	}
	code, err := t.source.rewrite(c.twins)
	if err != nil {
		return nil, err
	}
	c.template, err = jinja.Compile(code)
	return c, err
}

// execute returns the rendered conversation in twins.
func (c *compiled) execute(msgs []Message, addGenerationPrompt bool, t *Template, now time.Time) (out string, err error) {
	defer contain(&err)
	list := make([]jinja.Value, len(msgs))
	for i, m := range msgs {
		d := jinja.NewDict()
		d.AsDict().Set("role", jinja.NewString(m.Role))
		d.AsDict().Set("content", jinja.NewString(m.Content))
		list[i] = d
	}
	values := c.functions(now, len(msgs))
	maps.Copy(values, map[string]jinja.Value{
		"messages":              jinja.NewList(list),
		"add_generation_prompt": jinja.NewBool(addGenerationPrompt),
		"bos_token":             jinja.NewString(c.twins.spell(t.bos)),
		"eos_token":             jinja.NewString(c.twins.spell(t.eos)),
		"tools":                 jinja.None(),
		"documents":             jinja.None(),
	})
	out, err = c.template.RenderValues(values)
	var refused *RefusedError
	if err != nil && !errors.As(err, &refused) {
		err = fmt.Errorf("the chat template failed: %w", err)
	}
	return out, err
}

// contain makes an error of a panic of the engine.
func contain(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("the template engine failed: %v", p)
	}
}

// functions returns what a template may call. The counts belong to one
// rendering.
func (c *compiled) functions(now time.Time, messages int) map[string]jinja.Value {
	depth, steps := 0, 0
	bound := maxSteps + 4*messages*messages // some templates compare each message with all before
	none := jinja.NewString("")
	calls := map[string]func([]jinja.Value, map[string]jinja.Value) (jinja.Value, error){
		enterName: func([]jinja.Value, map[string]jinja.Value) (jinja.Value, error) {
			if depth++; depth > maxDepth {
				return none, fmt.Errorf("macros call each other more than %d deep", maxDepth)
			}
			return none, nil
		},
		leaveName: func([]jinja.Value, map[string]jinja.Value) (jinja.Value, error) {
			depth--
			return none, nil
		},
		stepName: func([]jinja.Value, map[string]jinja.Value) (jinja.Value, error) {
			if steps++; steps > bound {
				return none, fmt.Errorf("loops turn more than %d times", bound)
			}
			return none, nil
		},
		"raise_exception": func(args []jinja.Value, _ map[string]jinja.Value) (jinja.Value, error) {
			reason := "it gives no reason"
			if len(args) > 0 && args[0].IsString() {
				reason = args[0].AsString()
			}
			return none, &RefusedError{Reason: c.twins.plain(reason)}
		},
		"strftime_now": func(args []jinja.Value, _ map[string]jinja.Value) (jinja.Value, error) {
			if len(args) != 1 || !args[0].IsString() {
				return none, fmt.Errorf("strftime_now wants one format")
			}
			s, err := strftime(now, c.twins.plain(args[0].AsString()))
			return jinja.NewString(s), err
		},
		"range": rangeList,
		"dict": func(_ []jinja.Value, kwargs map[string]jinja.Value) (jinja.Value, error) {
			d := jinja.NewDict()
			for _, k := range slices.Sorted(maps.Keys(kwargs)) {
				d.AsDict().Set(k, kwargs[k])
			}
			return d, nil
		},
	}
	values := map[string]jinja.Value{}
	for name, f := range calls {
		values[name] = jinja.NewCallable(name, f)
	}
	return values
}

// rangeList is range with a bound on its length.
func rangeList(args []jinja.Value, _ map[string]jinja.Value) (jinja.Value, error) {
	n := [3]int64{0, 0, 1} // start, stop, step
	for i, a := range args {
		if !a.IsInt() || i > 2 {
			return jinja.Undefined(), fmt.Errorf("range wants one to three whole numbers")
		}
		n[i] = a.AsInt()
	}
	switch {
	case len(args) == 0:
		return jinja.Undefined(), fmt.Errorf("range wants one to three whole numbers")
	case len(args) == 1:
		n[0], n[1] = 0, n[0]
	}
	if n[2] == 0 {
		return jinja.Undefined(), fmt.Errorf("range wants a step other than 0")
	}
	var items []jinja.Value
	for i := n[0]; n[2] > 0 && i < n[1] || n[2] < 0 && i > n[1]; i += n[2] {
		if len(items) == maxRange {
			return jinja.Undefined(), fmt.Errorf("a range has more than %d elements", maxRange)
		}
		items = append(items, jinja.NewInt(i))
	}
	return jinja.NewList(items), nil
}

// strftime writes a time in the format of C's function of that name.
func strftime(t time.Time, format string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		if format[i] == '-' && i+1 < len(format) { // without leading zeros
			i++
			s, err := strftime(t, "%"+format[i:i+1])
			if err != nil {
				return "", err
			}
			b.WriteString(strings.TrimLeft(s[:len(s)-1], "0 ") + s[len(s)-1:])
			continue
		}
		layout, known := map[byte]string{
			'Y': "2006", 'y': "06", 'm': "01", 'd': "02", 'e': "_2", 'H': "15", 'I': "03", 'M': "04", 'S': "05",
			'B': "January", 'b': "Jan", 'h': "Jan", 'A': "Monday", 'a': "Mon", 'p': "PM", 'Z': "MST", 'z': "-0700",
			'F': "2006-01-02", 'T': "15:04:05", 'D': "01/02/06", 'R': "15:04", 'j': "002",
		}[format[i]]
		switch {
		case known:
			b.WriteString(t.Format(layout))
		case format[i] == '%':
			b.WriteByte('%')
		default:
			return "", fmt.Errorf("strftime_now does not know %s", strconv.Quote(format[i-1:i+1]))
		}
	}
	return b.String(), nil
}
