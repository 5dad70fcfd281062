package shader

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The checked in modules are what the sources compile to. Compilers of other
// versions make other code, so the test needs the one that was used.
func TestGenerated(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles")
	}
	for _, x := range [][]string{{"spirv/compiler.txt", "glslangValidator", "--version"}, {"msl/compiler.txt", "spirv-cross", "--revision"}} {
		version, err := exec.Command(x[1], x[2]).CombinedOutput()
		if err != nil {
			t.Skipf("%s is not installed: %v", x[1], err)
		}
		used, err := os.ReadFile(x[0])
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(version, used) {
			t.Skipf("the kernels were made with %s, and %s is installed", used, version)
		}
	}
	dir := t.TempDir()
	if out, err := exec.Command("go", "run", "./gen", "-o", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	compare(t, dir, "spirv/*")
	compare(t, dir, "msl/*")
}

// compare compares the files of a pattern with those made anew.
func compare(t *testing.T, dir, pattern string) {
	t.Helper()
	made, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(made) == 0 {
		t.Fatalf("nothing was made (%v)", err)
	}
	here, err := filepath.Glob(pattern)
	if err != nil || len(here) != len(made) {
		t.Errorf("%d files are checked in and %d were made: run go generate ./unit/gpu/shader (%v)", len(here), len(made), err)
	}
	for _, name := range made {
		want, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(rel)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what its source compiles to: run go generate ./unit/gpu/shader (%v)", rel, err)
		}
	}
}

// instructions calls f for each instruction of a module.
func instructions(t *testing.T, code []byte, f func(op uint32, args []uint32)) {
	t.Helper()
	var words []uint32
	for i := 0; i+4 <= len(code); i += 4 {
		words = append(words, binary.LittleEndian.Uint32(code[i:]))
	}
	if len(words) < 5 || words[0] != 0x07230203 {
		t.Fatal("no SPIR-V")
	}
	for at := 5; at < len(words); {
		n := int(words[at] >> 16)
		if n == 0 || at+n > len(words) {
			t.Fatal("an instruction is cut off")
		}
		f(words[at]&0xffff, words[at+1:at+n])
		at += n
	}
}

// Instructions of SPIR-V that the tests look at (SPIR-V specification, 3.52).
const (
	opExtInst       = 12
	opExecutionMode = 16
	opCapability    = 17
	opTypeStruct    = 30
	opTypePointer   = 32
	opTypeInt       = 21
	opConstant      = 43
	opTypeArray     = 28
	opVariable      = 59
	opDecorate      = 71
	opMemberDec     = 72
	opFAdd          = 129
	opFSub          = 131
	opFMul          = 133
	opFDiv          = 136
)

// Every float operation that rounds is protected from being fused or
// reordered: it is what equal bits rest on.
func TestNothingIsContracted(t *testing.T) {
	for _, name := range Names() {
		k, err := Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		exact := map[uint32]bool{}
		instructions(t, k.SPIRV, func(op uint32, args []uint32) {
			const noContraction = 42
			if op == opDecorate && args[1] == noContraction {
				exact[args[0]] = true
			}
		})
		rounded, loose := 0, 0
		instructions(t, k.SPIRV, func(op uint32, args []uint32) {
			const fma = 50 // of GLSL.std.450
			if slices.Contains([]uint32{opFAdd, opFSub, opFMul, opFDiv}, op) || op == opExtInst && args[3] == fma {
				rounded++
				if !exact[args[1]] {
					loose++
				}
			}
		})
		if loose > 0 {
			t.Errorf("%s: %d of %d operations may be contracted: a variable is not precise", name, loose, rounded)
		}
	}
}

// Modules need nothing that a device may lack, and are as the table says.
func TestModules(t *testing.T) {
	for _, name := range Names() {
		k, err := Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		var capabilities, size []uint32
		bindings, constants, push := 0, 0, 0
		instructions(t, k.SPIRV, func(op uint32, args []uint32) {
			const binding, specID, offset, localSize = 33, 1, 35, 17
			switch {
			case op == opCapability:
				capabilities = append(capabilities, args[0])
			case op == opExecutionMode && args[1] == localSize:
				size = args[2:]
			case op == opDecorate && args[1] == binding:
				bindings = max(bindings, int(args[2])+1)
			case op == opDecorate && args[1] == specID:
				constants = max(constants, int(args[2])+1)
			case op == opMemberDec && args[2] == offset:
				push = max(push, int(args[3])/4+1)
			}
		})
		want := []uint32{1} // shaders
		if name == "matrow" {
			want = []uint32{1, 61, 64} // for a software driver: subgroups and their ballots
		}
		if !slices.Equal(capabilities, want) {
			t.Errorf("%s needs capabilities %v", name, capabilities)
		}
		if !slices.Equal(size, []uint32{Invocations, 1, 1}) {
			t.Errorf("%s has workgroups of %v", name, size)
		}
		if bindings != k.Bindings || constants != k.Constants || push != k.Push {
			t.Errorf("%s has %d bindings, %d constants and %d words of push constants, the table says %d, %d and %d", name, bindings, constants, push, k.Bindings, k.Constants, k.Push)
		}
	}
}

// The Metal sources take what the lists of dispatches give: buffers and push
// constants by number, specialisation constants, 64 invocations.
func TestMetalSources(t *testing.T) {
	buffer := regexp.MustCompile(`\[\[buffer\((\d+)\)\]\]`)
	constant := regexp.MustCompile(`\[\[function_constant\((\d+)\)\]\]`)
	for _, name := range Names() {
		k, err := Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		if name == "matrow" {
			continue
		}
		count := func(re *regexp.Regexp) map[string]int {
			out := map[string]int{}
			for _, m := range re.FindAllStringSubmatch(k.MSL, -1) {
				out[m[1]]++
			}
			return out
		}
		want := map[string]int{fmt.Sprint(PushIndex): 1}
		for i := range k.Bindings {
			want[fmt.Sprint(i)] = 1
		}
		if got := count(buffer); !maps.Equal(got, want) {
			t.Errorf("%s takes buffers %v", name, got)
		}
		want = map[string]int{}
		for i := range k.Constants {
			want[fmt.Sprint(i)] = 1
		}
		if got := count(constant); !maps.Equal(got, want) {
			t.Errorf("%s takes constants %v, not %d", name, got, k.Constants)
		}
		if !strings.Contains(k.MSL, "kernel void main0(") || !strings.Contains(k.MSL, "uint3(64u, 1u, 1u)") {
			t.Errorf("%s: no entry point main0 of 64 invocations", name)
		}
	}
}

func TestLookup(t *testing.T) {
	if _, err := Lookup("nothing"); err == nil {
		t.Error("a kernel that is not there was no error")
	}
}
