package synth

import "math"

// keys returns the model's keys, as llama.cpp's converter writes them.
func (s Shape) keys(m mix) []keyValue {
	list := []keyValue{
		{"general.architecture", s.Arch},
		{"general.type", "model"},
		{"general.name", s.Title + " shape, random weights"},
		{"general.description", "Random weights in the shape of a real model, to measure speed with. It knows nothing."},
	}
	set := func(key string, value any) { list = append(list, keyValue{s.Arch + "." + key, value}) }
	n := func(i int) uint32 { return uint32(i) }
	set("context_length", n(s.Context))
	set("embedding_length", n(s.Hidden))
	set("block_count", n(s.Layers))
	if s.Double {
		widths := make([]int32, s.Layers)
		for i := range widths {
			widths[i] = int32(s.ffn(i))
		}
		set("feed_forward_length", widths)
	} else {
		set("feed_forward_length", n(s.FFN))
	}
	set("attention.head_count", n(s.Heads))
	set("attention.head_count_kv", n(s.KVHeads))
	set("attention.key_length", n(s.HeadDim))
	set("attention.value_length", n(s.HeadDim))
	set("attention.layer_norm_rms_epsilon", s.Epsilon)
	set("rope.freq_base", s.Theta)
	set("vocab_size", n(s.Vocab))
	if s.Arch != "gemma3" {
		set("rope.dimension_count", n(s.HeadDim))
	}
	if s.Stretch > 0 {
		set("rope.scaling.type", "linear")
		set("rope.scaling.factor", s.Stretch)
	}
	if s.Window > 0 {
		set("attention.sliding_window", n(s.Window))
	}
	if s.Arch == "gemma4" {
		sliding := make([]bool, s.Layers)
		for i := range sliding {
			sliding[i] = s.sliding(i)
		}
		set("attention.sliding_window_pattern", sliding)
		set("attention.key_length_swa", n(s.SlidingDim))
		set("attention.value_length_swa", n(s.SlidingDim))
		set("attention.shared_kv_layers", n(s.Shared))
		set("embedding_length_per_layer_input", n(s.PLE))
		set("final_logit_softcapping", s.Softcap)
		set("rope.dimension_count_swa", n(s.SlidingDim))
		set("rope.freq_base_swa", s.SlidingTheta)
	}
	return append(list,
		keyValue{"general.file_type", m.fileType},
		keyValue{"general.quantization_version", uint32(2)})
}

// ropeFactors returns what RoPE's frequencies of full layers are divided by, nil if nothing.
func (s Shape) ropeFactors() []float32 {
	out := make([]float32, s.HeadDim/2)
	switch {
	case s.Arch == "gemma4": // the first quarter of the pairs rotates, the others do not
		for i := range out {
			if out[i] = 1; i >= len(out)/4 {
				out[i] = 1e30
			}
		}
	case s.Factors != nil:
		for i := range out {
			out[i] = s.Factors.at(2 * math.Pi * math.Pow(float64(s.Theta), 2*float64(i)/float64(s.HeadDim)))
		}
	default:
		return nil
	}
	return out
}

// at returns the factor for a wavelength, in positions.
func (f Factors) at(wavelength float64) float32 {
	turns := float64(f.Original) / wavelength
	switch {
	case turns >= f.High:
		return 1
	case turns <= f.Low:
		return float32(f.Factor)
	}
	smooth := (turns - f.Low) / (f.High - f.Low)
	return float32(1 / ((1-smooth)/f.Factor + smooth))
}
