package unit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tandemrun/tandem/program"
	"github.com/tandemrun/tandem/quant"
)

// KV is the type of the values in a KV cache. Rows are rounded to it when they
// are written and read only as they were written. Units that exchange rows
// ([Chunk].ReadKV) store them alike.
type KV uint8

const (
	// F32 keeps rows as they are computed.
	F32 KV = iota
	// F16 rounds them to IEEE half precision, to nearest even.
	F16
	// Q8_0 rounds them as package quant rounds to blocks of that name: 32 values
	// that follow each other take 34 bytes, a scale in half precision and 32
	// signed bytes. No block reaches over the end of a head ([KV.Check]).
	Q8_0
)

// kvTypes are the block formats of the types, in their order.
var kvTypes = [...]quant.Type{F32: quant.F32, F16: quant.F16, Q8_0: quant.Q8_0}

// KVs are all types, from the largest to the smallest.
func KVs() []KV { return []KV{F32, F16, Q8_0} }

// Type is the block format of a row.
func (k KV) Type() quant.Type { return kvTypes[k] }

// Size is the number of bytes of n values, which are whole blocks.
func (k KV) Size(n int) int64 {
	t := k.Type()
	block := t.BlockSize()
	return int64((n+block-1)/block) * int64(t.BlockBytes())
}

// String is the name that ParseKV reads.
func (k KV) String() string { return strings.ToLower(k.Type().String()) }

// ParseKV reads a KV type's name.
func ParseKV(s string) (KV, error) {
	for _, k := range KVs() {
		if k.String() == s {
			return k, nil
		}
	}
	return 0, fmt.Errorf("KV type %q: it must be f32, f16 or q8_0", s)
}

// Check tells whether the caches of a program can have the type k on a unit
// that has the given types. Otherwise its error is a [KVError]. Units call it
// in Compile.
func (k KV) Check(p *program.Program, has ...KV) error {
	if !slices.Contains(has, k) {
		var names []string
		for _, x := range has {
			names = append(names, x.String())
		}
		return &KVError{k, fmt.Sprintf("this unit has no caches of it, but of %s", strings.Join(names, ", "))}
	}
	for _, c := range p.Caches {
		if err := k.CheckHeads(c.Layer, c.KeyDim, c.ValueDim); err != nil {
			return err
		}
	}
	return nil
}

// CheckHeads tells whether the cache of a layer can have the type k with heads
// of so many keys and values; if not, its error is a [KVError].
func (k KV) CheckHeads(layer, keys, values int) error {
	if block := k.Type().BlockSize(); keys%block != 0 || values%block != 0 {
		return &KVError{k, fmt.Sprintf("the heads of layer %d have %d keys and %d values, and it needs multiples of %d; use f16", layer, keys, values, block)}
	}
	return nil
}

// A KVError says that a cache cannot have a type.
type KVError struct {
	KV     KV
	Reason string
}

func (e *KVError) Error() string { return fmt.Sprintf("KV type %s: %s", e.KV, e.Reason) }
