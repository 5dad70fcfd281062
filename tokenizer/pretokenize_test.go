package tokenizer

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
)

func pieces(p preTokenizer, text string) []string {
	got := []string{}
	p.each(text, func(piece string) { got = append(got, piece) })
	return got
}

// The pieces in splits.json come from the regular expressions in the comments of
// the scan functions, run by Python's regex package.
func TestSplits(t *testing.T) {
	data, err := os.ReadFile("testdata/splits.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct {
		Text   string   `json:"text"`
		GPT2   []string `json:"gpt-2"`
		Llama3 []string `json:"llama-bpe"`
		Qwen2  []string `json:"qwen2"`
		SmolLM []string `json:"smollm"`
	}
	if err := json.Unmarshal(data, &vectors); err != nil {
		t.Fatal(err)
	}
	if len(vectors) == 0 {
		t.Fatal("no vectors")
	}
	for _, v := range vectors {
		for name, want := range map[string][]string{"gpt-2": v.GPT2, "llama-bpe": v.Llama3, "qwen2": v.Qwen2, "qwen3": v.Qwen2, "smollm": v.SmolLM} {
			p, err := findPreTokenizer(name)
			if err != nil {
				t.Fatal(err)
			}
			if got := pieces(p, v.Text); !slices.Equal(got, want) {
				t.Errorf("%s: %q is cut into %q, want %q", name, v.Text, got, want)
			}
		}
	}
}

func TestSplitsKeepEveryByte(t *testing.T) {
	for _, text := range []string{"\xff", "a\xe2\x96", "'\xc5", " \xf0\x9f 1\xff\xff", "\xe2\x96\x81\xe2", strings.Repeat("\xc2\n ", 9)} {
		for name, p := range preTokenizers {
			got := pieces(p, text)
			if strings.Join(got, "") != text || slices.Contains(got, "") {
				t.Errorf("%s: %q is cut into %q", name, text, got)
			}
		}
	}
}

func TestUnknownPreTokenizer(t *testing.T) {
	_, err := findPreTokenizer("no-such")
	if err == nil || !strings.Contains(err.Error(), keyPre) || !strings.Contains(err.Error(), `"no-such"`) {
		t.Errorf("got %v, want an error that names the key and the value", err)
	}
}
