// Package chat turns a conversation into the text that a model was trained to
// continue, by the model's own template (the GGUF key tokenizer.chat_template,
// in the language Jinja) or, where a file has none, by a built-in form for its
// architecture.
//
// The result keeps apart what the template wrote and what people wrote: a
// special token is Control only if the template itself wrote it. Content comes
// out as text, whatever it contains, also where content and template together
// spell a special token. A template sees content unchanged, so that its tests
// and trimming work as anywhere else.
//
// A template is code out of the model file. It cannot reach files or the
// network; the size, nesting, recursion and iterations it may use are bounded,
// the memory it may fill is not. What a template asks for and the engine does
// not have is an error that names it, and so is a panic of the engine.
// docs/chat.md says what is supported and how content is kept apart.
//
// A Template does not change after New and may be used by any number of
// goroutines at once.
package chat

import (
	"fmt"
	"time"
)

// A Message is one turn of a conversation.
type Message struct {
	Role    string // "system", "user" or "assistant"
	Content string // text; special tokens in it have no power
}

// A Part is a piece of a rendered conversation: exactly one special token if
// Control, else plain text, in which the strings of special tokens are text.
type Part struct {
	Text    string
	Control bool
}

// Options say which template a model has and which tokens it knows.
type Options struct {
	Source   string           // the template; "" for the built-in form
	Arch     string           // general.architecture, which picks the built-in form
	BOS, EOS string           // strings of the tokens that begin and end a text; "" if the model has none
	Specials []string         // strings of all special tokens
	Now      func() time.Time // the clock of templates that write the date; nil for time.Now
}

// A Template renders conversations for one model.
type Template struct {
	form     form // the built-in form, if source is nil
	source   *source
	specials *specials
	bos, eos string
	now      func() time.Time
	std      *compiled // serves all contents but those with its private runes
}

// New prepares a model's template. Its errors say on which line the template
// is at fault and what is not understood.
func New(o Options) (*Template, error) {
	t := &Template{specials: newSpecials(o.Specials, o.BOS, o.EOS), bos: o.BOS, eos: o.EOS, now: o.Now}
	if t.now == nil {
		t.now = time.Now
	}
	if o.Source == "" {
		t.form = formFor(o.Arch, t.specials)
		return t, nil
	}
	var err error
	if t.source, err = parseSource(o.Source); err != nil {
		return nil, fmt.Errorf("the chat template cannot be used: %w", err)
	}
	if t.std, err = t.compile(nil); err != nil {
		return nil, fmt.Errorf("the chat template cannot be used: %w", err)
	}
	return t, nil
}

// Render returns the conversation as the model is to read it. With
// addGenerationPrompt it ends where the model's next turn begins. The texts of
// the parts together are what the template renders; no part is empty, and no
// two parts of text follow each other.
//
// A template may refuse a conversation, such as one with two user turns in
// a row: then the error is a *RefusedError.
func (t *Template) Render(msgs []Message, addGenerationPrompt bool) ([]Part, error) {
	if len(msgs) == 0 {
		return nil, fmt.Errorf("the conversation has no messages")
	}
	for i, m := range msgs {
		switch m.Role {
		case "system", "user", "assistant":
		default:
			return nil, fmt.Errorf("message %d has the role %q; roles are system, user and assistant", i+1, m.Role)
		}
	}
	if t.source == nil {
		return t.form.render(msgs, addGenerationPrompt, t.bos), nil
	}
	c := t.std
	if !c.twins.serve(msgs) {
		var err error
		if c, err = t.compile(msgs); err != nil {
			return nil, err
		}
	}
	now := t.now()
	text, err := c.execute(msgs, addGenerationPrompt, t, now)
	if err != nil {
		return nil, err
	}
	parts, mixed := c.twins.split(text)
	if !mixed {
		return parts, nil
	}
	broken, found := c.twins.broken(msgs)
	if !found {
		return parts, nil
	}
	if text, err = c.execute(broken, addGenerationPrompt, t, now); err != nil {
		return nil, err
	}
	parts, _ = c.twins.split(text)
	return parts, nil
}
