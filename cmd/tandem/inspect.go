package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/tandemrun/tandem"
)

type inspectCmd struct {
	modelFlags
	layoutFlags
	Streams *int `placeholder:"N" help:"Streams at once, for the memory they need. Default: 1."`
	JSON    bool `name:"json" help:"Print one JSON object."`
}

// Help is shown by tandem inspect --help.
func (inspectCmd) Help() string {
	return `Examples:

    tandem inspect -m model.gguf
    tandem inspect -m model.gguf --chunks 6 --ctx 32768 --kv f16 --streams 4
    tandem inspect --json

Nothing is loaded: it also tells what a layout would need that does not fit.`
}

// Run describes a model file.
func (i *inspectCmd) Run(c *console) (err error) {
	o, err := i.options()
	if err != nil {
		return err
	}
	if n := i.Streams; n != nil {
		if *n < 1 {
			return fmt.Errorf("--streams %d: it must be at least 1", *n)
		}
		o.Streams = *n
	}
	m, err := i.load()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	info, err := m.Inspect(o)
	if err != nil {
		return err
	}
	if i.JSON {
		return c.json(info)
	}
	return errors.Join(
		describeFile(c.out, info),
		describeLayers(c.out, info),
		describeLayout(c.out, info),
	)
}

// table writes rows of tab-separated cells in columns.
func table(w io.Writer, rows func(w io.Writer)) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	rows(t)
	return t.Flush()
}

func describeFile(w io.Writer, info tandem.Info) error {
	err := table(w, func(w io.Writer) {
		fmt.Fprintf(w, "file\t%s (GGUF version %d, %s)\n", info.File, info.Version, size(info.Size))
		fmt.Fprintf(w, "architecture\t%s\n", info.Arch)
		if info.Name != "" {
			fmt.Fprintf(w, "name\t%s\n", info.Name)
		}
		fmt.Fprintf(w, "layers\t%d of width %d\n", len(info.Layers), info.Hidden)
		fmt.Fprintf(w, "context\t%d positions\n", info.Context)
		fmt.Fprintf(w, "vocabulary\t%d tokens, tokenizer %s, chat template: %s\n", info.Vocab, info.Tokenizer, info.Template)
		for _, n := range info.Notes {
			fmt.Fprintf(w, "note\t%s\n", n)
		}
	})
	fmt.Fprintln(w, "\nmetadata")
	return errors.Join(err, table(w, func(w io.Writer) {
		for _, kv := range info.Metadata {
			fmt.Fprintf(w, "  %s\t%s\t%s\n", kv.Key, kv.Type, oneLine(kv.Value))
		}
	}))
}

// oneLine is a value shortened for a table, without what would move the cursor.
func oneLine(s string) string {
	const most = 72
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + " ..."
	}
	return s
}

func describeLayers(w io.Writer, info tandem.Info) error {
	fmt.Fprintln(w, "\nlayers")
	err := table(w, func(w io.Writer) {
		fmt.Fprintln(w, "  layer\tkind\tKV of\theads\tKV heads\tkey\tvalue\tFFN\twindow")
		for _, l := range info.Layers {
			window := "-"
			if l.Window > 0 {
				window = fmt.Sprint(l.Window)
			}
			owner := "own"
			if l.Owner != l.Layer {
				owner = fmt.Sprint(l.Owner)
			}
			fmt.Fprintf(w, "  %d\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%s\n", l.Layer, l.Kind, owner, l.Heads, l.KVHeads, l.KeyDim, l.ValueDim, l.FFN, window)
		}
	})
	fmt.Fprintln(w, "\ntensors")
	return errors.Join(err, table(w, func(w io.Writer) {
		for _, t := range info.Types {
			fmt.Fprintf(w, "  %s\t%d\t%s\n", t.Type, t.Tensors, size(t.Bytes))
		}
	}))
}

func describeLayout(w io.Writer, info tandem.Info) error {
	fmt.Fprintln(w, "\nchunks")
	err := table(w, func(w io.Writer) {
		fmt.Fprintln(w, "  chunk\tlayers\tunit\tweights\ttables\tKV cache")
		for _, c := range info.Chunks {
			name := c.Unit
			if c.Prefill {
				name += " (prefill)"
			}
			fmt.Fprintf(w, "  %s\t%d-%d\t%s\t%s\t%s\t%s\n", c.Name, c.First, c.Last, name, size(c.Weights), size(c.Tables), size(c.KV))
		}
	})
	m := info.Memory
	fmt.Fprintf(w, "\nmemory for %d positions in each stream (streams: %d), blocks of %d, KV cache in %s\n", m.Context, m.Streams, m.Block, m.KVType)
	return errors.Join(err, table(w, func(w io.Writer) {
		fmt.Fprintf(w, "  weights\t%s\n  KV cache\t%s\n  buffers\t%s\n  total\t%s", size(m.Weights), size(m.KV), size(m.Buffers), size(m.Total))
		switch {
		case m.Available == 0:
			fmt.Fprint(w, "\n")
		case m.Total > m.Available:
			fmt.Fprintf(w, ": more than the %s available\n", size(m.Available))
		default:
			fmt.Fprintf(w, " of %s available\n", size(m.Available))
		}
		for _, u := range m.Units {
			fmt.Fprintf(w, "  on %s\t%s", u.Unit, size(u.Total))
			if u.Own {
				fmt.Fprintf(w, " of %s of its own", size(u.Available))
			}
			fmt.Fprintln(w)
		}
	}))
}
