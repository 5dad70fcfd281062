// Package tandem runs one language model on the compute units of a machine,
// split into chunks, and shows what each step takes.
//
// A [Model] is a GGUF file, mapped into memory, or the small trained model that
// is part of the package ([Embedded]). [Model.Open] lays it out over units as
// an [Engine]. A [Stream] is one conversation or text being generated; several
// run at once and share the weights.
//
//	m, err := tandem.Load("model.gguf")
//	...
//	defer m.Close()
//	e, err := m.Open(ctx, tandem.Options{})
//	...
//	defer e.Close()
//	s, err := e.NewStream(ctx)
//	...
//	defer s.Close()
//	r, err := s.Chat(ctx, []tandem.Message{{Role: "user", Content: "Hello"}}, tandem.Generation{})
//	fmt.Println(r.Text)
//
// # Promises
//
// On units of one kind the logits of a position are equal bit for bit whatever
// the number of chunks, their units, the threads, the block size and the other
// streams are; so temperature 0 gives the same text in every layout.
//
// A Model and an Engine are safe for concurrent use; a Stream is used by one
// goroutine at a time. Close what was opened in the reverse order. A cancelled
// context ends a call within one task of each unit.
//
// Nothing falls back in silence: a unit that is asked for and cannot be had, a
// key that is missing from a file, a context that does not fit into memory are
// errors that say so.
package tandem

import (
	"errors"
	"fmt"

	"github.com/tandemrun/tandem/chat"
	"github.com/tandemrun/tandem/gguf"
	"github.com/tandemrun/tandem/model"
	"github.com/tandemrun/tandem/model/catalog"
	"github.com/tandemrun/tandem/model/tiny"
	"github.com/tandemrun/tandem/tokenizer"
)

// A Model is a model file that has been read and checked. Its weights stay in
// the file.
type Model struct {
	file  *gguf.File
	model *model.Model
	vocab *tokenizer.Tokenizer // nil for a file without a vocabulary
	chat  *chat.Template       // nil likewise
	// chatErr is why the file's template cannot be used; it concerns only chats.
	chatErr error
}

// ErrNoVocab is the error of calls that need text when the file has no
// vocabulary (tokenizer.ggml.model is no_vocab).
var ErrNoVocab = tokenizer.ErrNoVocab

// Load maps a GGUF file and reads its metadata. All parts of a split file are
// found from any of them.
func Load(path string) (*Model, error) {
	f, err := gguf.Open(path)
	if err != nil {
		return nil, err
	}
	return read(f)
}

// Embedded reads the small trained model that is part of the package.
func Embedded() (*Model, error) {
	f, err := gguf.Read(tiny.Name, tiny.File())
	if err != nil {
		return nil, err
	}
	return read(f)
}

func read(f *gguf.File) (*Model, error) {
	m := &Model{file: f}
	err := m.read()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return m, nil
}

func (m *Model) read() error {
	var err error
	if m.model, err = catalog.Read(m.file); err != nil {
		return err
	}
	m.vocab, err = tokenizer.New(m.file)
	if errors.Is(err, tokenizer.ErrNoVocab) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: reading the vocabulary: %w", m.file.Name(), err)
	}
	if n := m.vocab.Size(); n > m.model.Vocab {
		return fmt.Errorf("%s: tokenizer.ggml.tokens has %d tokens, but the embedding table has %d rows", m.file.Name(), n, m.model.Vocab)
	}
	o := chat.Options{Arch: m.model.Arch, Specials: m.vocab.Specials()}
	if id, ok := m.vocab.BOS(); ok {
		o.BOS = m.vocab.Token(id)
	}
	if id, ok := m.vocab.EOS(); ok {
		o.EOS = m.vocab.Token(id)
	}
	if m.file.Has("tokenizer.chat_template") {
		if o.Source, err = m.file.String("tokenizer.chat_template"); err != nil {
			return err
		}
	}
	m.chat, m.chatErr = chat.New(o)
	return nil
}

// Close unmaps the file. Engines opened from the model have been closed before.
func (m *Model) Close() error { return m.file.Close() }

// Name is the path of the file, or the name of the embedded model.
func (m *Model) Name() string { return m.file.Name() }

// A Message is one turn of a conversation. Role is system, user or assistant.
type Message = chat.Message

// Prompt renders a conversation with the model's template, ready for the
// model's next turn, as tokens. What messages contain is text, even where it
// looks like a control token.
func (m *Model) Prompt(messages []Message) ([]int32, error) {
	if m.vocab == nil {
		return nil, m.noVocab()
	}
	if m.chatErr != nil {
		return nil, fmt.Errorf("%s: tokenizer.chat_template: %w", m.file.Name(), m.chatErr)
	}
	parts, err := m.chat.Render(messages, true)
	if err != nil {
		return nil, fmt.Errorf("%s: rendering the chat template: %w", m.file.Name(), err)
	}
	fragments := make([]tokenizer.Fragment, len(parts))
	for i, p := range parts {
		fragments[i] = tokenizer.Fragment(p)
	}
	return m.vocab.Encode(fragments, true)
}

// Tokenize turns text into tokens. With special, strings of control tokens
// become those tokens; with bos, the file's rule for a token at the beginning
// is followed.
func (m *Model) Tokenize(text string, special, bos bool) ([]int32, error) {
	if m.vocab == nil {
		return nil, m.noVocab()
	}
	return m.vocab.EncodeText(text, special, bos)
}

// Detokenize turns tokens into text; control tokens are left out unless
// special is set.
func (m *Model) Detokenize(ids []int32, special bool) (string, error) {
	if m.vocab == nil {
		return "", m.noVocab()
	}
	for _, id := range ids {
		if id < 0 || int(id) >= m.vocab.Size() {
			return "", fmt.Errorf("token %d is not in the vocabulary of %d", id, m.vocab.Size())
		}
	}
	return m.vocab.Decode(ids, special), nil
}

// Token is the string of a token as the vocabulary has it, or "" if there is
// no vocabulary or no such token.
func (m *Model) Token(id int32) string {
	if m.vocab == nil || id < 0 || int(id) >= m.vocab.Size() {
		return ""
	}
	return m.vocab.Token(id)
}

func (m *Model) noVocab() error {
	return fmt.Errorf("%s: %w: give token ids instead of text", m.file.Name(), ErrNoVocab)
}
