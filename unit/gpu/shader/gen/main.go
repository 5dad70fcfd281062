// Command gen compiles the kernels' sources. It is run by go generate in the
// folder of package shader, or in another one with -o, and needs
// glslangValidator and spirv-cross (Debian glslang-tools and spirv-cross).
//
// Every float operation of a module is decorated with NoContraction, so that a
// driver rounds each as it stands. The qualifier precise of GLSL should do that
// but does not reach elements of arrays (glslang 12).
package main

import (
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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
	spirv, msl := filepath.Join(out, "spirv"), filepath.Join(out, "msl")
	if err := errors.Join(os.MkdirAll(spirv, 0o777), os.MkdirAll(msl, 0o777)); err != nil {
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
		if name == "matrow" {
			continue // for software drivers
		}
		if err := translate(module, filepath.Join(msl, name+".metal")); err != nil {
			return fmt.Errorf("%s: %w", module, err)
		}
	}
	version, err := exec.Command("glslangValidator", "--version").Output()
	if err != nil {
		return err
	}
	first, _, _ := strings.Cut(string(version), "\n")
	if err := os.WriteFile(filepath.Join(spirv, "compiler.txt"), []byte(first+"\n"), 0o666); err != nil {
		return err
	}
	if version, err = exec.Command("spirv-cross", "--revision").CombinedOutput(); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(msl, "compiler.txt"), version, 0o666)
}

// translate makes Metal source of a module. Storage buffer i is buffer i there,
// and the push constants are buffer 8; spirv-cross gives them number 0 as well.
func translate(module, to string) error {
	if err := run("spirv-cross", module, "--msl", "--msl-version", "20100", "--msl-decoration-binding", "--output", to); err != nil {
		return err
	}
	source, err := os.ReadFile(to)
	if err != nil {
		return err
	}
	push := regexp.MustCompile(`(constant Push& \w+ \[\[buffer\()0(\)\]\])`)
	if len(push.FindAll(source, -1)) != 1 {
		return errors.New("the push constants were not found in the Metal source")
	}
	return os.WriteFile(to, push.ReplaceAll(source, []byte("${1}8${2}")), 0o666)
}

func run(name string, args ...string) error {
	cmd := exec.Command(name, args...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}
