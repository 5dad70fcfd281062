package chat

import "strings"

// A form is a simple way to write conversations, for files without a template:
// each turn is open, role, after, content, close.
type form struct {
	open, close string            // special tokens; "" if none
	bos         bool              // the text begins with the token that begins texts
	after       string            // between role and content
	end         string            // after close
	roles       map[string]string // other names of roles
	trim        bool              // contents lose their outer white space
	noSystem    bool              // system messages open the next user turn
	prompt      string            // what follows the role of the turn to come
}

// formFor picks the form of an architecture, provided that the vocabulary has
// its tokens; else the form whose tokens it has; else plain words.
func formFor(arch string, s *specials) form {
	gemma := map[string]string{"assistant": "model"}
	switch {
	case arch == "gemma4" && s.has("<|turn>") && s.has("<turn|>"):
		return form{open: "<|turn>", close: "<turn|>", bos: true, after: "\n", end: "\n", roles: gemma, trim: true, prompt: "\n"}
	case arch == "gemma3" && s.has("<start_of_turn>") && s.has("<end_of_turn>"):
		return form{open: "<start_of_turn>", close: "<end_of_turn>", bos: true, after: "\n", end: "\n", roles: gemma, trim: true, noSystem: true, prompt: "\n"}
	case s.has("<|im_start|>") && s.has("<|im_end|>"):
		return form{open: "<|im_start|>", close: "<|im_end|>", after: "\n", end: "\n", prompt: "\n"}
	}
	return form{after: ": ", end: "\n", prompt: ":",
		roles: map[string]string{"system": "System", "user": "User", "assistant": "Assistant"}}
}

func (f form) render(msgs []Message, addGenerationPrompt bool, bos string) []Part {
	var w writer
	if f.bos {
		w.control(bos)
	}
	pending := "" // system text that waits for a user turn
	turn := func(role, content string) {
		w.control(f.open)
		w.text(f.name(role) + f.after + content)
		w.control(f.close)
		w.text(f.end)
	}
	for _, m := range msgs {
		content := m.Content
		if f.trim {
			content = strings.TrimSpace(content)
		}
		switch {
		case f.noSystem && m.Role == "system":
			pending += content + "\n\n"
		case m.Role == "user":
			turn(m.Role, pending+content)
			pending = ""
		default:
			turn(m.Role, content)
		}
	}
	if pending != "" {
		turn("user", strings.TrimSuffix(pending, "\n\n"))
	}
	if addGenerationPrompt {
		w.control(f.open)
		w.text(f.name("assistant") + f.prompt)
	}
	return w.parts
}

func (f form) name(role string) string {
	if name, ok := f.roles[role]; ok {
		return name
	}
	return role
}

// A writer collects parts; it drops empty ones and joins text to text.
type writer struct{ parts []Part }

func (w *writer) text(s string) {
	if n := len(w.parts); n > 0 && !w.parts[n-1].Control {
		w.parts[n-1].Text += s
	} else if s != "" {
		w.parts = append(w.parts, Part{Text: s})
	}
}

func (w *writer) control(s string) {
	if s != "" {
		w.parts = append(w.parts, Part{Text: s, Control: true})
	}
}
