package synth

import (
	"fmt"
	"strings"

	"github.com/tandemrun/tandem/quant"
)

// A mix says which tensor has which block type. The rules are llama-quantize's for models without experts and without an
// importance matrix.
type mix struct {
	name     string
	fileType uint32     // general.file_type
	base     quant.Type // of matrices without a rule
}

func mixes() []mix {
	return []mix{
		{"f32", 0, quant.F32}, {"f16", 1, quant.F16}, {"bf16", 32, quant.BF16},
		{"q8_0", 7, quant.Q8_0},
		{"q4_0", 2, quant.Q4_0}, {"q4_1", 3, quant.Q4_1}, {"q5_0", 8, quant.Q5_0}, {"q5_1", 9, quant.Q5_1},
		{"q2_k", 10, quant.Q2_K},
		{"q3_k_s", 11, quant.Q3_K}, {"q3_k_m", 12, quant.Q3_K}, {"q3_k_l", 13, quant.Q3_K},
		{"q4_k_s", 14, quant.Q4_K}, {"q4_k_m", 15, quant.Q4_K},
		{"q5_k_s", 16, quant.Q5_K}, {"q5_k_m", 17, quant.Q5_K},
		{"q6_k", 18, quant.Q6_K},
	}
}

// Types lists the names of the mixes of block types that can be written.
func Types() []string {
	var out []string
	for _, m := range mixes() {
		out = append(out, m.name)
	}
	return out
}

func mixNamed(name string) (mix, error) {
	for _, m := range mixes() {
		if strings.EqualFold(m.name, name) {
			return m, nil
		}
	}
	return mix{}, fmt.Errorf("synth: no type is named %q; known are %s", name, strings.Join(Types(), ", "))
}

// plain reports whether the mix is of floats.
func (m mix) plain() bool { return m.base.BlockSize() == 1 }

// typeOf returns the type of a matrix outside the layers. The models here have no output matrix of their own, so all
// embeddings, those for each layer too, have the type of one.
func (m mix) typeOf(name string, cols int) quant.Type {
	switch {
	case m.plain():
		return m.base
	case name == "per_layer_model_proj":
		return quant.BF16 // left as the model has it
	case m.base == quant.Q8_0:
		return fit(m.base, cols)
	}
	return fit(quant.Q6_K, cols)
}

// more picks about half of n layers: the first and last eighth, and every third between them.
func more(i, n int) bool { return i < n/8 || i >= 7*n/8 || (i-n/8)%3 == 2 }

// attnV returns the type of the i-th of n value projections; a KV head serves group query heads.
func (m mix) attnV(i, n, group int) quant.Type {
	switch {
	case m.name == "q2_k" && group < 4:
		return quant.Q3_K
	case m.name == "q2_k":
		return quant.Q4_K
	case m.name == "q3_k_m" && i < 2, m.name == "q3_k_l", m.name == "q4_k_s" && i < 4:
		return quant.Q5_K
	case m.name == "q3_k_m":
		return quant.Q4_K
	case (m.name == "q4_k_m" || m.name == "q5_k_m") && more(i, n):
		return quant.Q6_K
	}
	return m.base
}

// attnOutput returns the type of the output projections of attention.
func (m mix) attnOutput() quant.Type {
	switch m.name {
	case "q2_k":
		return quant.Q3_K
	case "q3_k_m":
		return quant.Q4_K
	case "q3_k_l":
		return quant.Q5_K
	}
	return m.base
}

// ffnDown returns the type of the i-th of n second matrices of the feed-forward part.
func (m mix) ffnDown(i, n int) quant.Type {
	switch {
	case m.name == "q2_k":
		return quant.Q3_K
	case m.name == "q3_k_m" && i < n/16, m.name == "q3_k_l", m.name == "q4_k_s" && i < n/8:
		return quant.Q5_K
	case m.name == "q3_k_m":
		return quant.Q4_K
	case (m.name == "q4_k_m" || m.name == "q5_k_m") && more(i, n):
		return quant.Q6_K
	}
	return m.base
}

// fit returns t, or what takes its place where rows of cols values are no whole blocks.
func fit(t quant.Type, cols int) quant.Type {
	if cols%t.BlockSize() == 0 {
		return t
	}
	instead := quant.F16
	switch t {
	case quant.Q2_K, quant.Q3_K:
		instead = quant.Q4_0
	case quant.Q4_K:
		instead = quant.Q5_0
	case quant.Q5_K:
		instead = quant.Q5_1
	case quant.Q6_K:
		instead = quant.Q8_0
	}
	return fit(instead, cols)
}
