package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

type tokenizeCmd struct {
	modelFlags
	Special bool   `help:"Read control tokens in the text as such, not as text."`
	NoBOS   bool   `name:"no-bos" help:"Leave out the token at the beginning that the file's rule adds."`
	Pieces  bool   `help:"Print a line for each token: its id and its string in the vocabulary."`
	JSON    bool   `name:"json" help:"Print one JSON object with ids and pieces."`
	Text    string `arg:"" help:"The text, or - to read it from stdin as it is."`
}

// Help is shown by tandem tokenize --help.
func (tokenizeCmd) Help() string {
	return `Examples:

    tandem tokenize "Hello"
    tandem tokenize --special --pieces "<|turn>user"
    tandem tokenize --json - < text.txt`
}

type tokens struct {
	Tokens []int32  `json:"tokens"`
	Pieces []string `json:"pieces"`
}

// Run prints the tokens of a text.
func (t *tokenizeCmd) Run(c *console) (err error) {
	m, err := t.load()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	text, err := c.text(t.Text)
	if err != nil {
		return err
	}
	ids, err := m.Tokenize(text, t.Special, !t.NoBOS)
	if err != nil {
		return needsText(m, err)
	}
	out := tokens{append([]int32{}, ids...), []string{}}
	for _, id := range ids {
		out.Pieces = append(out.Pieces, m.Token(id))
	}
	switch {
	case t.JSON:
		return c.jsonLine(out)
	case t.Pieces:
		return table(c.out, func(w io.Writer) {
			for i, id := range ids {
				fmt.Fprintf(w, "%d\t%s\n", id, strconv.Quote(out.Pieces[i]))
			}
		})
	}
	var list []string
	for _, id := range ids {
		list = append(list, strconv.Itoa(int(id)))
	}
	_, err = fmt.Fprintln(c.out, strings.Join(list, ","))
	return err
}

// parseIDs reads token ids that are separated by commas or white space.
func parseIDs(s string) ([]int32, error) {
	fields := strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(", \t\r\n", r) })
	if len(fields) == 0 {
		return nil, errors.New("there are no token ids; give numbers separated by commas, such as 2,105")
	}
	var ids []int32
	for _, f := range fields {
		id, err := strconv.ParseInt(f, 10, 32)
		if err != nil || id < 0 {
			return nil, fmt.Errorf("%q is no token id; give numbers separated by commas, such as 2,105", f)
		}
		ids = append(ids, int32(id))
	}
	return ids, nil
}
