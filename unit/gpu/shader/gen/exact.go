package main

import (
	"encoding/binary"
	"errors"
	"os"
)

// rewrite makes the float operations of a module exact.
func rewrite(file string) error {
	code, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	words := make([]uint32, len(code)/4)
	for i := range words {
		words[i] = binary.LittleEndian.Uint32(code[4*i:])
	}
	if words, err = exact(words); err != nil {
		return err
	}
	out := make([]byte, 0, 4*len(words))
	for _, w := range words {
		out = binary.LittleEndian.AppendUint32(out, w)
	}
	return os.WriteFile(file, out, 0o666)
}

// exact adds the decoration NoContraction to every float operation of a module
// that has none (SPIR-V specification, 2.3 and 3.52).
func exact(words []uint32) ([]uint32, error) {
	const (
		extInst, decorate, memberDecorate = 12, 71, 72
		firstFloat, lastFloat             = 129, 148 // FAdd to Dot
		noContraction, fma                = 42, 50
	)
	if len(words) < 5 || words[0] != 0x07230203 {
		return nil, errors.New("no SPIR-V")
	}
	integer := map[uint32]bool{130: true, 132: true, 134: true, 135: true, 137: true, 138: true, 139: true}
	has := map[uint32]bool{}
	var results []uint32
	end := 0 // of the decorations
	for at := 5; at < len(words); {
		n, op := int(words[at]>>16), words[at]&0xffff
		if n == 0 || at+n > len(words) {
			return nil, errors.New("an instruction is cut off")
		}
		args := words[at+1 : at+n]
		at += n
		switch {
		case op == decorate || op == memberDecorate:
			end = at
			if op == decorate && args[1] == noContraction {
				has[args[0]] = true
			}
		case op >= firstFloat && op <= lastFloat && !integer[op], op == extInst && args[3] == fma:
			results = append(results, args[1])
		}
	}
	if end == 0 {
		return nil, errors.New("no decorations to add to")
	}
	out := append([]uint32(nil), words[:end]...)
	for _, id := range results {
		if !has[id] {
			out = append(out, 3<<16|decorate, id, noContraction)
		}
	}
	return append(out, words[end:]...), nil
}
