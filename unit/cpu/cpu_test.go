package cpu_test

import (
	"testing"

	"github.com/tandemrun/tandem/unit/conformance"
	"github.com/tandemrun/tandem/unit/cpu"
	"github.com/tandemrun/tandem/unit/cpu/kernel"
)

// The CPU unit conforms with every instruction set this machine has.
func TestConformance(t *testing.T) {
	sets := kernel.Available()
	if testing.Short() {
		sets = []kernel.ISA{kernel.Best()}
	}
	for _, isa := range sets {
		counts := []int{2}
		if isa == kernel.Best() && !testing.Short() {
			counts = []int{1, 3}
		}
		for _, threads := range counts {
			u, err := cpu.New(cpu.Config{Name: "cpu", Threads: threads, ISA: isa})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { u.Close() })
			t.Run(isa.String(), func(t *testing.T) {
				for _, c := range conformance.Checks() {
					t.Run(c.Name, func(t *testing.T) {
						if err := c.Run(t.Context(), u); err != nil {
							t.Error(err)
						}
					})
				}
			})
		}
	}
}
