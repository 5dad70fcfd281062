// Package kernel holds the arithmetic of the CPU unit: products of quantised weight matrices with activations, and the
// vector operations of a transformer, for several instruction sets.
//
// # One definition
//
// Every routine has one numerical definition, written in plain Go (the Generic set) down to the order of the additions
// and the place of each rounding; the assembly of every instruction set computes the same bits. docs/kernels.md states
// the definitions. (A NaN is a NaN everywhere, but its payload may differ.)
//
// An output of a product depends only on its row of weights and its own row of activations: not on how many rows of
// activations there are, which range of outputs a call covers, or how the weights are laid out.
//
// # Ownership and concurrency
//
// The package starts no goroutine and keeps no state but what a caller holds. A [Set] is immutable and a [Matrix] is so
// once packed: both may be used by any number of goroutines at once. An [Input] is written by SetInput and by
// QuantizeInput (from several goroutines for separate rows) and only read by Mul. Slices given to the routines are used
// only during the call, except the rows of an Input and the data of a Matrix that keeps the file's layout, which are
// views.
//
// Lengths that do not fit are a programming error of the caller and panic like any index out of range, before
// assembly runs.
//
// Assembly cannot be interrupted by the scheduler, so each call of it covers a bounded amount of work, about a
// quarter of a millisecond at most, and begins in a Go function that can be.
package kernel

import (
	"fmt"
	"strings"
	"sync"
)

// ISA names a set of instructions for which there are routines.
type ISA uint8

const (
	// Generic is plain Go.
	Generic ISA = iota
	// AVX2 needs AVX2, FMA and F16C.
	AVX2
	// AVX512 needs AVX-512 F, BW, DQ, VL and VNNI.
	AVX512
	// AMX is AVX512 with the tile registers of AMX for products of many rows.
	AMX
	// NEON is the base of arm64.
	NEON
	// NEONDot needs the dot product instructions of ARMv8.2.
	NEONDot
)

var isaNames = [...]string{"generic", "avx2", "avx512", "amx", "neon", "neondot"}

// String returns the name that ParseISA reads.
func (i ISA) String() string {
	if int(i) < len(isaNames) {
		return isaNames[i]
	}
	return fmt.Sprintf("isa(%d)", uint8(i))
}

// ParseISA returns the instruction set named s, in any case.
func ParseISA(s string) (ISA, error) {
	for i, name := range isaNames {
		if strings.EqualFold(name, s) {
			return ISA(i), nil
		}
	}
	return 0, fmt.Errorf("instruction set %q: it must be one of %s", s, strings.Join(isaNames[:], ", "))
}

// Available returns the instruction sets that this CPU and this build have, from slowest to fastest. Generic is
// always there; a build with the tag noasm has no other.
func Available() []ISA { return append([]ISA{Generic}, assembly()...) }

// Best returns the fastest instruction set available.
func Best() ISA {
	a := Available()
	return a[len(a)-1]
}

// A Set is the routines of one instruction set.
type Set struct {
	isa     ISA
	ahead   int       // how far ahead of a product of few rows to prefetch; 0 is not at all
	scratch sync.Pool // of *[]byte: panels of rows in file layout

	tiles       bool      // there are tile registers
	tileScratch sync.Pool // of *tileScratch
}

// New returns the routines of isa. It is an error if this CPU or this build lacks it.
func New(isa ISA) (*Set, error) {
	for _, a := range Available() {
		if a == isa {
			return newSet(isa), nil
		}
	}
	return nil, fmt.Errorf("this CPU or build has no %v routines: it has %v", isa, Available())
}

func newSet(isa ISA) *Set {
	s := &Set{isa: isa, ahead: prefetchAhead()}
	if isa == AMX {
		s.isa, s.tiles = AVX512, true
	}
	return s
}

// ISA returns the instruction set of s.
func (s *Set) ISA() ISA {
	if s.tiles {
		return AMX
	}
	return s.isa
}
