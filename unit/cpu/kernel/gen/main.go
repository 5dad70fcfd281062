// Command gen writes the assembly of package kernel, and its Go declarations. Run it with go generate in that
// package. It is a module of its own so that nobody who builds the project needs its dependencies.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"
	"github.com/mmcloughlin/avo/reg"
)

// asm is one file being written.
type asm struct {
	*build.Context
	labels int
}

func main() {
	dir := flag.String("o", ".", "folder to write to")
	flag.Parse()
	for _, file := range []struct {
		name  string
		write func(*asm)
	}{
		{"mul_avx512", func(c *asm) { mulAVX512(c); newAVX512(c).mulFloat() }},
		{"mul_amx", func(c *asm) { unpackAMX(c); mulAMX(c); ceilingAMX(c) }},
		{"mul_avx2", func(c *asm) { mulAVX2(c); newAVX2(c).mulFloat() }},
		{"vector_avx512", func(c *asm) { newAVX512(c).all() }},
		{"vector_avx2", func(c *asm) { newAVX2(c).all() }},
	} {
		if err := generate(*dir, file.name, file.write); err != nil {
			fmt.Fprintf(os.Stderr, "gen: %s: %+v\n", file.name, err)
			os.Exit(1)
		}
	}
	for name, write := range map[string]func(*arm){"mul_neon": mulNEON, "vector_neon": vectorNEON} {
		if err := generateARM(*dir, name, write); err != nil {
			fmt.Fprintf(os.Stderr, "gen: %s: %v\n", name, err)
			os.Exit(1)
		}
	}
}

// generate writes NAME_amd64.s and NAME_amd64.go.
func generate(dir, name string, write func(*asm)) error {
	c := &asm{Context: build.NewContext()}
	c.ConstraintExpr("!noasm")
	write(c)
	file, err := c.Result()
	if err != nil {
		return err
	}
	if err := pass.Compile.Execute(file); err != nil {
		return err
	}
	config := printer.Config{Name: "gen", Pkg: "kernel"}
	for ext, p := range map[string]printer.Printer{".s": printer.NewGoAsm(config), ".go": printer.NewStubs(config)} {
		text, err := p.Print(file)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name+"_amd64"+ext), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// begin starts a function whose pointers do not escape.
func (c *asm) begin(name, signature, doc string) {
	c.Function(name)
	c.Attributes(4) // NOSPLIT
	c.Pragma("noescape")
	c.SignatureExpr(signature)
	c.Doc(name + " " + doc)
}

// end leaves the function, with the upper halves of the vector registers clean.
func (c *asm) end() {
	c.VZEROUPPER()
	c.RET()
}

// param loads a parameter.
func (c *asm) param(name string, r reg.Register) { c.Load(c.Param(name), r) }

// label returns a name of its own.
func (c *asm) label(name string) string {
	c.labels++
	return fmt.Sprintf("%s%d", name, c.labels)
}

// loop repeats body, which keeps count, until count is 0; count is at least 1.
func (c *asm) loop(count reg.Register, body func()) {
	l := c.label("loop")
	c.Label(l)
	body()
	c.DECQ(count)
	c.JNZ(operand.LabelRef(l))
}

// at is memory at a displacement from a register.
func at(base reg.Register, disp int) operand.Mem { return operand.Mem{Base: base, Disp: disp} }

// repeated is a constant of n equal 32-bit words in memory.
func (c *asm) words(name string, words ...uint32) operand.Mem {
	m := c.StaticGlobal(name)
	c.DataAttributes(8 | 16) // RODATA | NOPTR
	for _, w := range words {
		c.AppendDatum(operand.U32(w))
	}
	return m
}

// imm is an immediate operand.
func imm(i int) operand.Op { return operand.Imm(uint64(i)) }

// add adds a constant to a register.
func (c *asm) add(n int, r reg.Register) { c.ADDQ(operand.U32(n), r) }

// stackParam is where a parameter lies.
func (c *asm) stackParam(name string) operand.Op {
	m, err := c.Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return m.Addr
}
