// Package catalog knows the architectures: it reads a file with the package
// that understands its general.architecture.
package catalog

import (
	"fmt"
	"strings"

	"github.com/tandemrun/tandem/gguf"
	"github.com/tandemrun/tandem/model"
	"github.com/tandemrun/tandem/model/gemma3"
	"github.com/tandemrun/tandem/model/gemma4"
	"github.com/tandemrun/tandem/model/llama"
	"github.com/tandemrun/tandem/model/qwen"
)

// readers returns the architectures in the order people see them.
func readers() []reader {
	return []reader{
		{gemma4.Arch, gemma4.Read},
		{gemma3.Arch, gemma3.Read},
		{llama.Arch, llama.Read},
		{qwen.Arch2, qwen.Read2},
		{qwen.Arch3, qwen.Read3},
	}
}

type reader struct {
	arch string
	read func(*gguf.File) (*model.Model, error)
}

// Names lists the architectures this build can read.
func Names() []string {
	var out []string
	for _, r := range readers() {
		out = append(out, r.arch)
	}
	return out
}

// Read reads the model in f. The file must stay open while the model is used.
func Read(f *gguf.File) (*model.Model, error) {
	arch, err := f.String("general.architecture")
	if err != nil {
		return nil, err
	}
	for _, r := range readers() {
		if r.arch == arch {
			return r.read(f)
		}
	}
	return nil, fmt.Errorf("%s: general.architecture is %q, which tandem does not know; it knows %s", f.Name(), arch, strings.Join(Names(), ", "))
}
