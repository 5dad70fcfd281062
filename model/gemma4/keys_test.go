package gemma4_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tandemrun/tandem/gguf"
	"github.com/tandemrun/tandem/model/catalog"
)

// altered is the tiny model's file with keys and tensors changed: a nil value
// leaves the key out.
func altered(t *testing.T, keys map[string]any, without string) []byte {
	t.Helper()
	f, err := gguf.Open(filepath.Join(testdata, "tiny", "tiny-q4_0.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := gguf.NewWriter()
	for _, key := range f.Keys() {
		if strings.HasPrefix(key, "tokenizer.") {
			continue
		}
		v, _ := f.Value(key)
		x, changed := keys[key]
		if !changed {
			x = v.Any()
		}
		if x == nil {
			continue
		}
		if err := w.Set(key, x); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range f.Tensors() {
		if x.Name == without {
			continue
		}
		if err := w.AddBytes(x.Name, x.Type, x.Dims, x.Data); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	if _, err := w.WriteTo(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// A missing or contradictory key, and a missing tensor, is an error that names
// it and the file.
func TestKeys(t *testing.T) {
	read := func(t *testing.T, keys map[string]any, without string) error {
		f, err := gguf.Read("altered.gguf", altered(t, keys, without))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		_, err = catalog.Read(f)
		return err
	}
	if err := read(t, nil, ""); err != nil {
		t.Fatalf("unchanged: %v", err)
	}
	cases := map[string]any{ // key without the architecture → value; nil for none
		"context_length": nil, "embedding_length": nil, "block_count": nil, "feed_forward_length": nil,
		"attention.head_count": nil, "attention.head_count_kv": nil, "rope.freq_base": nil, "rope.freq_base_swa": nil,
		"attention.layer_norm_rms_epsilon": nil, "attention.key_length": nil, "attention.value_length": nil,
		"attention.key_length_swa": nil, "attention.value_length_swa": nil, "final_logit_softcapping": nil,
		"attention.sliding_window": nil, "attention.shared_kv_layers": nil, "embedding_length_per_layer_input": nil,
		"attention.sliding_window_pattern": nil, "rope.dimension_count": nil, "rope.dimension_count_swa": nil,
	}
	for key, v := range cases {
		t.Run(key, func(t *testing.T) {
			wantError(t, read(t, map[string]any{"gemma4." + key: v}, ""), "altered.gguf", "gemma4."+key)
		})
	}
	for name, c := range map[string]struct {
		key   string
		value any
	}{
		"all layers share":    {"attention.shared_kv_layers", uint32(10)},
		"no layers":           {"block_count", uint32(0)},
		"a million layers":    {"block_count", uint32(1000000)},
		"short pattern":       {"attention.sliding_window_pattern", []bool{true, false}},
		"short ffn":           {"feed_forward_length", []int32{384}},
		"text for a number":   {"context_length", "long"},
		"heads do not divide": {"attention.head_count_kv", uint32(3)},
		"zero window":         {"attention.sliding_window", uint32(0)},
		"partial rotation":    {"rope.dimension_count", uint32(32)},
		"negative theta":      {"rope.freq_base", float32(-1)},
	} {
		t.Run(name, func(t *testing.T) {
			wantError(t, read(t, map[string]any{"gemma4." + c.key: c.value}, ""), "altered.gguf", c.key)
		})
	}
	for _, name := range []string{"token_embd.weight", "blk.3.attn_k.weight", "rope_freqs.weight", "blk.9.layer_output_scale.weight"} {
		t.Run(name, func(t *testing.T) { wantError(t, read(t, nil, name), "altered.gguf", name) })
	}
	t.Run("architecture", func(t *testing.T) {
		wantError(t, read(t, map[string]any{"general.architecture": "gemma9"}, ""), "altered.gguf", `"gemma9"`)
	})
}

func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("%q does not name %s", err, p)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("more than one line: %q", err)
	}
}
