package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/tandemrun/tandem"
)

type logitsCmd struct {
	modelFlags
	layoutFlags
	Tokens string `required:"" placeholder:"IDS|@FILE" help:"Token ids, separated by commas or spaces; @FILE reads them from a file."`
	Top    int    `default:"10" placeholder:"K" help:"How many of the highest logits to print. Default: 10."`
	All    bool   `help:"Print every position, not only the last."`
	JSON   bool   `name:"json" help:"JSON is what this command always prints."`
}

// Help is shown by tandem logits --help.
func (logitsCmd) Help() string {
	return `Examples:

    tandem logits --tokens 2,105,394,4
    tandem logits -m model.gguf --chunks 3 --block 64 --tokens @ids.txt --all --top 5

Logits are printed with as many digits as give the same float32 again. Of
equal logits the one with the lower id comes first.`
}

type logits struct {
	Chunks    []chunk    `json:"chunks"`
	Positions []position `json:"positions"`
}

type position struct {
	Pos int     `json:"pos"`
	Top []logit `json:"top"`
}

// logit is [id, value] in JSON.
type logit [2]any

// Run evaluates tokens.
func (l *logitsCmd) Run(c *console) (err error) {
	if l.Top < 1 {
		return fmt.Errorf("--top %d: it must be at least 1", l.Top)
	}
	list := l.Tokens
	if path, ok := strings.CutPrefix(list, "@"); ok {
		b, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("--tokens: %w", err)
		}
		list = string(b)
	}
	ids, err := parseIDs(list)
	if err != nil {
		return fmt.Errorf("--tokens: %w", err)
	}
	ctx, stop := c.context()
	defer stop()
	s, err := c.prepare(ctx, l.modelFlags, l.layoutFlags, func(*tandem.Model) error { return nil })
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.fits(ids); err != nil {
		return err
	}
	out := logits{Chunks: chunksOf(s.engine)}
	err = s.stream.Logits(ctx, ids, l.All, func(pos int, row []float32) error {
		p := position{Pos: pos}
		for _, id := range highest(row, l.Top) {
			p.Top = append(p.Top, logit{id, row[id]})
		}
		out.Positions = append(out.Positions, p)
		return nil
	})
	if err != nil {
		return cause(ctx, err)
	}
	return c.jsonLine(out)
}

// highest returns the ids of the n highest logits, highest first and lower ids
// first among equal ones.
func highest(row []float32, n int) []int {
	var top []int
	n = min(n, len(row))
	for id, v := range row {
		if len(top) == n && v <= row[top[n-1]] {
			continue
		}
		at, _ := slices.BinarySearchFunc(top, v, func(have int, v float32) int {
			if row[have] >= v {
				return -1
			}
			return 1
		})
		if len(top) == n {
			top = top[:n-1]
		}
		top = slices.Insert(top, at, id)
	}
	return top
}
