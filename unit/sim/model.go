package sim

import (
	"fmt"

	"github.com/tandemrun/tandem/model"
	"github.com/tandemrun/tandem/program"
)

// Vocabulary is the number of tokens of a simulated model.
const Vocabulary = 1024

// Model is the model of a profile: a layer for each chunk, with the profile's
// sizes of handoffs and caches and nothing to compute. It is cut before each
// layer and nowhere else; see [Ranges].
//
// Chunks behind the last one with a cache of its own (one that reads no other
// chunk's) run for the wanted rows only, as in every model.
func Model(p *Profile) *model.Model {
	m := &model.Model{
		Arch: "sim", Name: p.Name, Context: 1 << 20, Vocab: Vocabulary, Hidden: p.Hidden,
		Notes: []string{"simulated: it computes nothing, its tokens are made up"},
	}
	for i, c := range p.Chunks {
		l := model.Layer{Kind: model.Full, Owner: i, Heads: 1, KVHeads: 1, KeyDim: c.KV / 2, ValueDim: c.KV / 2}
		if len(c.Reads) > 0 {
			l = m.Layers[p.chunk(c.Reads[0])]
		} else {
			m.OwnEnd = i + 1
		}
		m.Layers = append(m.Layers, l)
	}
	m.Build = func(first, last int) (*program.Program, error) {
		if last != first+1 {
			return nil, fmt.Errorf("%s is cut into the %d chunks of its profile; chunks cannot be joined", p.Name, len(p.Chunks))
		}
		return build(p, m, first), nil
	}
	return m
}

// Ranges are the layers of each chunk.
func Ranges(p *Profile) []model.Range {
	var out []model.Range
	for i := range p.Chunks {
		out = append(out, model.Range{First: i, Last: i + 1})
	}
	return out
}

// build writes the program of one chunk: what goes in and out, and no operations.
func build(p *Profile, m *model.Model, i int) *program.Program {
	rows := func(layer int) program.Rows { // of the state before a layer
		if layer < m.OwnEnd {
			return program.All
		}
		return program.Wanted
	}
	b := model.NewBuilder(i, i+1)
	in := b.Buffer("in", p.Hidden, rows(i))
	if i > 0 {
		b.Input(program.Hidden(i), 0, in)
	}
	extra := func(from, to int) (string, program.View) {
		name := fmt.Sprintf("%s for %s", p.Chunks[from].Name, p.Chunks[to].Name)
		return name, b.Buffer(name, p.Chunks[to].Takes[p.Chunks[from].Name], rows(to))
	}
	for from := range i {
		if p.Chunks[i].Takes[p.Chunks[from].Name] > 0 {
			name, v := extra(from, i)
			b.Input(name, 0, v)
		}
	}
	for to := i + 1; to < len(p.Chunks); to++ {
		if p.Chunks[to].Takes[p.Chunks[i].Name] > 0 {
			name, v := extra(i, to)
			b.Output(name, 0, v)
		}
	}
	if i+1 < len(m.Layers) {
		b.Output(program.Hidden(i+1), 0, b.Buffer("out", p.Hidden, rows(i+1)))
	} else {
		b.P.Logits = b.Buffer("logits", m.Vocab, program.Wanted).Buf
	}
	if p.Chunks[i].KV > 0 {
		b.Cache(m.Layers, i)
	}
	for _, name := range p.Chunks[i].Reads {
		b.Cache(m.Layers, p.chunk(name))
	}
	return b.P
}
