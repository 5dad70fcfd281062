package tandem_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// floor of each package; a package imports only from lower floors, or what is
// listed beside it. See docs/architecture.md.
var floors = map[string]struct {
	floor  int
	beside []string
}{
	"quant":            {1, nil},
	"gguf":             {1, []string{"quant"}},
	"tokenizer":        {1, nil},
	"chat":             {1, nil},
	"machine":          {1, nil},
	"sampler":          {1, nil},
	"agreement":        {1, nil},
	"prompts":          {1, nil},
	"power":            {1, nil},
	"verdict":          {1, nil},
	"perplexity":       {1, nil},
	"budget":           {1, nil},
	"internal/golden":  {1, nil},
	"program":          {2, nil},
	"model":            {3, nil},
	"model/tiny":       {3, nil},
	"model/decoder":    {3, []string{"model"}},
	"model/gemma4":     {3, []string{"model"}},
	"model/gemma3":     {3, []string{"model", "model/decoder"}},
	"model/llama":      {3, []string{"model", "model/decoder"}},
	"model/qwen":       {3, []string{"model", "model/decoder"}},
	"model/catalog":    {3, []string{"model", "model/gemma3", "model/gemma4", "model/llama", "model/qwen"}},
	"synth":            {3, nil},
	"unit":             {3, nil},
	"unit/conformance": {4, nil},
	"unit/cpu":         {4, []string{"unit/cpu/kernel"}},
	"unit/cpu/kernel":  {4, nil},
	"unit/sim":         {4, nil},
	"unit/gpu":         {4, []string{"unit/gpu/compute", "unit/gpu/metal", "unit/gpu/shader", "unit/gpu/vulkan"}},
	"unit/gpu/compute": {4, nil},
	"unit/gpu/shader":  {4, nil},
	"unit/gpu/metal":   {4, []string{"unit/gpu/compute", "unit/gpu/shader"}},
	"unit/gpu/vulkan":  {4, []string{"unit/gpu/compute", "unit/gpu/shader"}},
	"engine":           {5, nil},
	"unit/sim/play":    {6, nil},
	"probe":            {6, nil},
	"plan":             {6, nil},
	"measure":          {7, nil},
	"trace":            {6, nil},
	"speed":            {6, nil},
	"tally":            {6, nil},
	"ab":               {1, nil},
	"sustain":          {2, nil},
	"batch":            {7, nil},
	"oracle":           {7, nil},
	"spike":            {7, nil},
	"":                 {8, nil},
	"cmd/tandem":       {9, nil},
}

const module = "github.com/tandemrun/tandem"

// Packages import only from lower floors, and the command only the root.
func TestFloors(t *testing.T) {
	seen := 0
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || d.Name() == "gen" || d.Name() == "bench" || strings.HasPrefix(d.Name(), ".") && p != ".") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(p, ".go") || strings.HasSuffix(p, "_test.go") {
			return nil
		}
		seen++
		pkg := path.Clean(filepath.ToSlash(filepath.Dir(p)))
		if pkg == "." {
			pkg = ""
		}
		own, ok := floors[pkg]
		if !ok {
			t.Errorf("package %s stands on no floor: add it to the table and to docs/architecture.md", pkg)
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), p, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, i := range f.Imports {
			name, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			dep, ours := strings.CutPrefix(name, module)
			if !ours {
				continue
			}
			dep = strings.TrimPrefix(dep, "/")
			if pkg == "cmd/tandem" && dep != "" {
				t.Errorf("%s imports %s; the command uses the root package alone", p, dep)
			}
			allowed := floors[dep].floor < own.floor
			for _, b := range own.beside {
				allowed = allowed || b == dep
			}
			if !allowed {
				t.Errorf("%s imports %s, which is not on a lower floor", p, dep)
			}
		}
		return nil
	})
	if err != nil || seen == 0 {
		t.Fatalf("%d files seen: %v", seen, err)
	}
}
