// Command gen compiles the kernels' sources. It is run by go generate in the
// folder of package shader, or in another one with -o, and needs
// glslangValidator (Debian glslang-tools).
//
// Every float operation of a module is decorated with NoContraction, so that a
// driver rounds each as it stands. The qualifier precise of GLSL should do that
// but does not reach elements of arrays (glslang 12).
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	log.SetFlags(0)
	out := flag.String("o", ".", "folder to write spirv/ into")
	flag.Parse()
	if err := generate(*out); err != nil {
		log.Fatal(err)
	}
}

func generate(out string) error {
	sources, err := filepath.Glob("glsl/*.comp")
	if err != nil || len(sources) == 0 {
		return fmt.Errorf("no sources in glsl/ (%v): run it in the folder of package shader", err)
	}
	spirv := filepath.Join(out, "spirv")
	if err := os.MkdirAll(spirv, 0o777); err != nil {
		return err
	}
	for _, source := range sources {
		name := strings.TrimSuffix(filepath.Base(source), ".comp")
		module := filepath.Join(spirv, name+".spv")
		if err := run("glslangValidator", "--quiet", "-V", "--target-env", "vulkan1.2", "-o", module, source); err != nil {
			return err
		}
		if err := rewrite(module); err != nil {
			return fmt.Errorf("%s: %w", module, err)
		}
	}
	version, err := exec.Command("glslangValidator", "--version").Output()
	if err != nil {
		return err
	}
	first, _, _ := strings.Cut(string(version), "\n")
	return os.WriteFile(filepath.Join(spirv, "compiler.txt"), []byte(first+"\n"), 0o666)
}

func run(name string, args ...string) error {
	cmd := exec.Command(name, args...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}
