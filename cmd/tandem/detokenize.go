package main

import (
	"errors"
	"fmt"
	"strings"
)

type detokenizeCmd struct {
	modelFlags
	Special bool     `help:"Show control tokens."`
	JSON    bool     `name:"json" help:"Print one JSON object with the text."`
	IDs     []string `arg:"" name:"ids" sep:"none" help:"Token ids, separated by commas or spaces, or - to read them from stdin."`
}

// Help is shown by tandem detokenize --help.
func (detokenizeCmd) Help() string {
	return `Examples:

    tandem detokenize 807,8
    tandem tokenize "Hello" | tandem detokenize --special -`
}

type plainText struct {
	Text string `json:"text"`
}

// Run prints the text of tokens.
func (d *detokenizeCmd) Run(c *console) (err error) {
	m, err := d.load()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	list, err := c.text(strings.Join(d.IDs, " "))
	if err != nil {
		return err
	}
	ids, err := parseIDs(list)
	if err != nil {
		return err
	}
	text, err := m.Detokenize(ids, d.Special)
	if err != nil {
		return needsText(m, err)
	}
	if d.JSON {
		return c.jsonLine(plainText{text})
	}
	_, err = fmt.Fprintln(c.out, text)
	return err
}
