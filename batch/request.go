package batch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tandemrun/tandem/chat"
)

// A Request is a line of the input. A line is a JSON object with prompt or
// messages; a field that is null counts as left out.
type Request struct {
	Line     int             // counted from 1
	ID       json.RawMessage // "id": a string or a number, as it is written; nil if there is none
	Prompt   string          // "prompt"
	Messages []chat.Message  // "messages": a conversation instead of a prompt; nil if there is none
	System   string          // "system": a system message in front
	Raw      bool            // "raw": Prompt is continued as it is, without the chat template
	// The others replace what is set for all prompts; nil if the line does not
	// say.
	MaxTokens   *int     // "max_tokens": most new tokens; 0 is no limit
	Seed        *uint64  // "seed"
	Temperature *float64 // "temperature"
}

// Conversation is the prompt as messages, with the system message in front.
func (q *Request) Conversation() []chat.Message {
	var out []chat.Message
	if q.System != "" {
		out = append(out, chat.Message{Role: "system", Content: q.System})
	}
	if q.Messages != nil {
		return append(out, q.Messages...)
	}
	return append(out, chat.Message{Role: "user", Content: q.Prompt})
}

// parse reads a line strictly: no unknown field, no field twice, no other case.
func parse(line []byte) (Request, error) {
	var q Request
	var prompt *string
	err := object(line, func(key string, value json.RawMessage) error {
		switch key {
		case "id":
			q.ID = value
			if value[0] != '"' && value[0] != '-' && (value[0] < '0' || value[0] > '9') {
				return errors.New("must be a string or a number")
			}
			return nil
		case "prompt":
			return scalar(value, "a string", &prompt)
		case "messages":
			return q.messages(value)
		case "system":
			return scalar(value, "a string", &q.System)
		case "raw":
			return scalar(value, "true or false", &q.Raw)
		case "max_tokens":
			return scalar(value, "a whole number", &q.MaxTokens)
		case "seed":
			return scalar(value, "a whole number from 0 to 18446744073709551615", &q.Seed)
		case "temperature":
			return scalar(value, "a number", &q.Temperature)
		}
		return errors.New("is no field of a prompt; there are id, prompt, messages, system, raw, max_tokens, seed and temperature")
	})
	switch {
	case err != nil:
		return q, err
	case prompt == nil && q.Messages == nil:
		return q, errors.New(`has neither "prompt" nor "messages"`)
	case prompt != nil && q.Messages != nil:
		return q, errors.New(`has both "prompt" and "messages"`)
	case q.Raw && q.Messages != nil:
		return q, errors.New(`"messages" need the chat template, which "raw" leaves out`)
	case q.Raw && q.System != "":
		return q, errors.New(`"system" needs the chat template, which "raw" leaves out`)
	case q.System != "" && slices.ContainsFunc(q.Messages, func(m chat.Message) bool { return m.Role == "system" }):
		return q, errors.New(`has "system" and a system message in "messages"`)
	case q.MaxTokens != nil && *q.MaxTokens < 0:
		return q, fmt.Errorf(`"max_tokens" is %d; it must be 0 (no limit) or more`, *q.MaxTokens)
	case q.Temperature != nil && *q.Temperature < 0:
		return q, fmt.Errorf(`"temperature" is %g; it must be 0 or more`, *q.Temperature)
	}
	if prompt != nil {
		q.Prompt = *prompt
	}
	return q, nil
}

// messages reads a conversation.
func (q *Request) messages(value json.RawMessage) error {
	var list []json.RawMessage
	if err := scalar(value, "a list of objects", &list); err != nil {
		return err
	}
	if len(list) == 0 {
		return errors.New("must have at least one message")
	}
	for i, x := range list {
		var role, content *string
		err := object(x, func(key string, value json.RawMessage) error {
			switch key {
			case "role":
				return scalar(value, "a string", &role)
			case "content":
				return scalar(value, "a string", &content)
			}
			return errors.New("is no field of a message; there are role and content")
		})
		switch {
		case err != nil:
		case role == nil || content == nil:
			err = errors.New(`has no "role" or no "content"`)
		case *role != "system" && *role != "user" && *role != "assistant":
			err = fmt.Errorf(`"role" is %q; it must be system, user or assistant`, *role)
		}
		if err != nil {
			return fmt.Errorf("message %d: %w", i+1, err)
		}
		q.Messages = append(q.Messages, chat.Message{Role: *role, Content: *content})
	}
	return nil
}

// scalar reads a value of one type.
func scalar(value json.RawMessage, want string, to any) error {
	if json.Unmarshal(value, to) != nil {
		return fmt.Errorf("must be %s", want)
	}
	return nil
}

// object reads one JSON object and calls each with its fields that are not
// null. encoding/json alone would take fields twice and in any case.
func object(text []byte, each func(key string, value json.RawMessage) error) error {
	if !utf8.Valid(text) {
		return errors.New("is not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	t, err := d.Token()
	if err != nil {
		return malformed(err)
	}
	if t != json.Delim('{') {
		return errors.New("is not a JSON object")
	}
	seen := map[string]bool{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return malformed(err)
		}
		key, value := t.(string), json.RawMessage(nil)
		if err := d.Decode(&value); err != nil {
			return malformed(err)
		}
		if seen[key] {
			return fmt.Errorf("has %q twice", key)
		}
		seen[key] = true
		if string(value) == "null" {
			continue
		}
		if err := each(key, value); err != nil {
			return fmt.Errorf("%q %w", key, err)
		}
	}
	if _, err := d.Token(); err != nil {
		return malformed(err)
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("has more than one JSON value")
	}
	return nil
}

func malformed(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return errors.New("is not whole JSON: it ends too early")
	}
	return fmt.Errorf("is not JSON: %s", strings.TrimPrefix(err.Error(), "json: "))
}
