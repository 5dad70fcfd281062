package tokenizer

import (
	"fmt"
	"math"
)

// The keys of a vocabulary.
const (
	keyModel       = "tokenizer.ggml.model"
	keyPre         = "tokenizer.ggml.pre"
	keyTokens      = "tokenizer.ggml.tokens"
	keyScores      = "tokenizer.ggml.scores"
	keyTypes       = "tokenizer.ggml.token_type"
	keyMerges      = "tokenizer.ggml.merges"
	keyBOS         = "tokenizer.ggml.bos_token_id"
	keyEOS         = "tokenizer.ggml.eos_token_id"
	keyEOT         = "tokenizer.ggml.eot_token_id"
	keyEOM         = "tokenizer.ggml.eom_token_id"
	keyUnknown     = "tokenizer.ggml.unknown_token_id"
	keyPadding     = "tokenizer.ggml.padding_token_id"
	keyAddBOS      = "tokenizer.ggml.add_bos_token"
	keyAddEOS      = "tokenizer.ggml.add_eos_token"
	keySpacePrefix = "tokenizer.ggml.add_space_prefix"
	keyTrimSpaces  = "tokenizer.ggml.remove_extra_whitespaces"
)

// New reads a vocabulary. Errors name the key and what is wrong with it;
// errors.Is(err, ErrNoVocab) if the file says it has none.
func New(m Metadata) (*Tokenizer, error) {
	kind, err := m.String(keyModel)
	if err != nil {
		return nil, fmt.Errorf("reading the vocabulary: %w", err)
	}
	t := &Tokenizer{kind: kind}
	switch kind {
	case "gemma4", "llama", "gpt2":
	case "no_vocab", "none":
		return nil, fmt.Errorf("%s is %q: %w", keyModel, kind, ErrNoVocab)
	default:
		return nil, fmt.Errorf("%s: the vocabulary kind %q is not known here; known are gemma4, gpt2, llama", keyModel, kind)
	}
	if err := t.read(m); err != nil {
		return nil, fmt.Errorf("reading the vocabulary: %w", err)
	}
	return t, nil
}

// read fills in a Tokenizer of a known kind.
func (t *Tokenizer) read(m Metadata) error {
	pre, err := t.readPre(m)
	if err != nil {
		return err
	}
	if err := t.readTokens(m); err != nil {
		return err
	}
	eom, err := t.readIDs(m)
	if err != nil {
		return err
	}
	if err := t.index(); err != nil {
		return err
	}
	t.findEnds(eom)
	if err := t.readRules(m, pre); err != nil {
		return err
	}
	return t.readModel(m, pre)
}

func (t *Tokenizer) note(format string, args ...any) {
	t.notes = append(t.notes, fmt.Sprintf(format, args...))
}

// readPre reads which pre-tokenizer a vocabulary of kind gpt2 wants.
func (t *Tokenizer) readPre(m Metadata) (preTokenizer, error) {
	if t.kind == "llama" || !m.Has(keyPre) {
		if t.kind == "gpt2" {
			t.note("%s is missing: the pre-tokenizer of GPT-2 is used.", keyPre)
		}
		return preGPT2, nil
	}
	name, err := m.String(keyPre)
	if err != nil {
		return preTokenizer{}, err
	}
	if t.kind == "gemma4" {
		if name != "gemma4" && name != "default" {
			return preTokenizer{}, fmt.Errorf("%s is %q, which does not go with %s gemma4", keyPre, name, keyModel)
		}
		return preGPT2, nil
	}
	if name == "default" {
		t.note("%s is \"default\": the pre-tokenizer of GPT-2 is used.", keyPre)
	}
	return findPreTokenizer(name)
}

// readTokens reads the tokens, their types and what they stand for.
func (t *Tokenizer) readTokens(m Metadata) error {
	var err error
	if t.tokens, err = m.Strings(keyTokens); err != nil {
		return err
	}
	if len(t.tokens) == 0 || len(t.tokens) > math.MaxInt32/2 {
		return fmt.Errorf("%s has %d entries", keyTokens, len(t.tokens))
	}
	t.types = make([]tokenType, len(t.tokens))
	if m.Has(keyTypes) {
		types, err := m.Ints(keyTypes)
		if err != nil {
			return err
		}
		if len(types) != len(t.tokens) {
			return fmt.Errorf("%s has %d entries, and %s has %d", keyTypes, len(types), keyTokens, len(t.tokens))
		}
		for id, typ := range types {
			if typ < int64(undefined) || typ > int64(byteValue) {
				return fmt.Errorf("%s: entry %d is %d, want 0 to %d", keyTypes, id, typ, byteValue)
			}
			t.types[id] = tokenType(typ)
		}
	}
	t.pieces = make([]string, len(t.tokens))
	spelling := t.alphabet()
	for id, token := range t.tokens {
		c, isByte := byteToken(token)
		if isByte && t.kind != "gpt2" && (t.types[id] == normal || t.types[id] == undefined) {
			t.types[id] = byteValue
		}
		switch typ := t.types[id]; {
		case typ == byteValue && !isByte:
			return fmt.Errorf("%s: entry %d is %q, which %s says is a byte; want <0x00> to <0xFF>", keyTokens, id, token, keyTypes)
		case typ == byteValue:
			t.pieces[id] = string([]byte{c})
		case typ.hidden():
			t.pieces[id] = token
		case typ == userDefined && t.kind == "gpt2":
			t.pieces[id] = token
		default:
			t.pieces[id] = spelling.piece(token)
		}
	}
	return nil
}

// readIDs reads which tokens have a role, and makes those of BOS, EOS, EOT and EOM
// control tokens if the file does not: plain text must not give them.
func (t *Tokenizer) readIDs(m Metadata) (eom int32, err error) {
	padding := int32(-1)
	for _, role := range []struct {
		key     string
		id      *int32
		llama   int32 // default for kind llama
		control bool
	}{
		{keyBOS, &t.bos, 1, true},
		{keyEOS, &t.eos, 2, true},
		{keyEOT, &t.eot, -1, true},
		{keyEOM, &eom, -1, true},
		{keyUnknown, &t.unknown, 0, false},
		{keyPadding, &padding, -1, false},
	} {
		*role.id = -1
		switch {
		case m.Has(role.key):
			id, err := m.Uint(role.key)
			if err != nil {
				return -1, err
			}
			if id >= uint64(len(t.tokens)) {
				return -1, fmt.Errorf("%s is %d, and there are %d tokens", role.key, id, len(t.tokens))
			}
			*role.id = int32(id)
		case t.kind == "llama" && role.llama >= 0 && int(role.llama) < len(t.tokens):
			if !m.Has(keyTypes) || t.types[role.llama].hidden() {
				*role.id = role.llama
			}
		}
		if id := *role.id; id >= 0 && role.control && !t.types[id].hidden() {
			if m.Has(keyTypes) {
				t.note("%s names %q, which %s does not call a control token: it is taken for one.", role.key, t.tokens[id], keyTypes)
			}
			t.types[id], t.pieces[id] = control, t.tokens[id]
		}
	}
	return eom, nil
}

// index builds the maps from text to ids.
func (t *Tokenizer) index() error {
	t.ids = make(map[string]int32, len(t.tokens))
	t.special = make(map[string]int32)
	spelling := t.alphabet()
	var trusted, inText []match
	for i, token := range t.tokens {
		id, typ := int32(i), t.types[i]
		if token == "" {
			continue // never matched
		}
		piece := t.pieces[id]
		if typ.special() {
			piece = spelling.piece(token)
		}
		twin, ok := t.special[token]
		if !ok {
			twin, ok = t.ids[piece]
		}
		if ok && t.tokens[twin] == token {
			return fmt.Errorf("%s: entries %d and %d are both %q", keyTokens, twin, id, token)
		}
		if typ.special() {
			t.special[token] = id
			trusted = append(trusted, match{token, id})
			if typ == userDefined {
				inText = append(inText, match{token, id})
			}
		}
		if typ.plain() && spelling.reachable(token) {
			t.ids[piece] = id
		}
	}
	t.trusted, t.userDefined = newMatcher(trusted), newMatcher(inText)
	return nil
}

// readRules reads what to add to text.
func (t *Tokenizer) readRules(m Metadata, pre preTokenizer) error {
	t.addBOS = t.kind != "gpt2" || pre.addBOS
	t.spacePrefix = t.kind == "llama"
	for _, rule := range []struct {
		key string
		on  *bool
	}{
		{keyAddBOS, &t.addBOS}, {keyAddEOS, &t.addEOS},
		{keySpacePrefix, &t.spacePrefix}, {keyTrimSpaces, &t.trimSpaces},
	} {
		if !m.Has(rule.key) {
			continue
		}
		var err error
		if *rule.on, err = m.Bool(rule.key); err != nil {
			return err
		}
	}
	if t.kind == "gemma4" && !t.addBOS {
		t.note("%s is false, but Gemma 4 needs a BOS token: it is added.", keyAddBOS)
		t.addBOS = true
	}
	if t.kind == "gpt2" && t.spacePrefix {
		t.note("%s is true, but byte-level vocabularies take no prefix: it is not added.", keySpacePrefix)
		t.spacePrefix = false
	}
	if t.addBOS && t.bos < 0 {
		return fmt.Errorf("%s is missing, and a BOS token is to be added (%s)", keyBOS, keyAddBOS)
	}
	if t.addEOS && t.eos < 0 {
		return fmt.Errorf("%s is missing, and an EOS token is to be added (%s)", keyEOS, keyAddEOS)
	}
	return nil
}

// readModel reads scores or merges.
func (t *Tokenizer) readModel(m Metadata, pre preTokenizer) error {
	if t.kind == "llama" || m.Has(keyScores) {
		scores, err := m.Floats(keyScores)
		if err != nil {
			return err
		}
		if len(scores) != len(t.tokens) {
			return fmt.Errorf("%s has %d entries, and %s has %d", keyScores, len(scores), keyTokens, len(t.tokens))
		}
		if t.kind == "llama" {
			t.model, err = newSPM(t, scores)
			return err
		}
	}
	list, err := m.Strings(keyMerges)
	if err != nil {
		return err
	}
	if len(list) > math.MaxInt32/4 {
		return fmt.Errorf("%s has %d entries", keyMerges, len(list))
	}
	if t.kind == "gemma4" {
		t.model, err = newLineBPE(t, list)
	} else {
		t.model, err = newByteBPE(t, list, pre)
	}
	return err
}
