package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tandemrun/tandem"
)

type unitsCmd struct {
	Measure bool `help:"Measure what handing rows to each GPU and back costs."`
	JSON    bool `name:"json" help:"Print one JSON object."`
}

// Help is shown by tandem units --help.
func (unitsCmd) Help() string {
	return `Examples:

    tandem units
    tandem units --measure
    tandem units --json

The names are those that --place takes. Cores are those that this process may use.`
}

// Run describes this machine.
func (u *unitsCmd) Run(c *console) error {
	h, err := tandem.Units()
	if err != nil {
		return err
	}
	if u.Measure {
		ctx, stop := c.context()
		defer stop()
		if err := tandem.MeasureGPUs(ctx, &h); err != nil {
			return cause(ctx, err)
		}
	}
	if u.JSON {
		return c.json(h)
	}
	err = table(c.out, func(w io.Writer) {
		fmt.Fprintln(w, "UNIT\tUSABLE\t")
		for _, u := range h.Units {
			if !u.Usable {
				fmt.Fprintf(w, "%s\tno\t%s\n", u.Name, u.Why)
				continue
			}
			if u.GPU != nil {
				fmt.Fprintf(w, "%s\tyes\t%s\n", u.Name, describeGPU(u.GPU))
				continue
			}
			detail := ""
			if u.Detail != "" {
				detail = "; " + u.Detail
			}
			fmt.Fprintf(w, "%s\tyes\tcores %s (%s)%s\n", u.Name, ranges(u.Cores), u.Kind, detail)
		}
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(c.out)
	return table(c.out, func(w io.Writer) { describeHost(w, h) })
}

func describeGPU(g *tandem.GPU) string {
	memory := size(g.Memory)
	if g.Free > 0 {
		memory += ", " + size(g.Free) + " free"
	}
	out := fmt.Sprintf("%s (%s, %s, driver %s); memory %s; at most %s a buffer", g.Device, g.Type, g.API, g.Driver, memory, size(g.Binding))
	if g.Workgroup > 0 {
		out += fmt.Sprintf(", %d in a workgroup, %d in a subgroup", g.Workgroup, g.Subgroup)
	}
	if len(g.Lacks) > 0 {
		out += "; without " + strings.Join(g.Lacks, ", ")
	}
	for _, x := range g.Handoffs {
		out += fmt.Sprintf("; %s: %.1f µs and %.3f ns a byte", x.What, x.CallUS, x.NSPerByte)
	}
	return out
}

func describeHost(w io.Writer, h tandem.Host) {
	fmt.Fprintf(w, "system\t%s/%s\n", h.OS, h.Arch)
	if h.Model != "" {
		fmt.Fprintf(w, "processor\t%s\n", h.Model)
	}
	cores := ranges(h.Cores)
	if h.Quota > 0 {
		cores += fmt.Sprintf(" (time for %.4g of them)", h.Quota)
	}
	fmt.Fprintf(w, "cores\t%s\n", cores)
	for _, k := range h.Caches {
		fmt.Fprintf(w, "cache L%d\t%s", k.Level, size(k.Bytes))
		if len(k.Cores) > 0 {
			fmt.Fprintf(w, " for cores %s", ranges(k.Cores))
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "instructions\t%s\n", strings.Join(h.ISA, " "))
	fmt.Fprintf(w, "kernels use\t%s\n", h.Kernels)
	if h.Memory > 0 {
		fmt.Fprintf(w, "memory\t%s, %s available\n", size(h.Memory), size(h.Available))
	}
	for _, n := range h.Notes {
		fmt.Fprintf(w, "note\t%s\n", n)
	}
}

// ranges writes numbers in the form 0-3,8.
func ranges(numbers []int) string {
	var out []string
	sorted := slices.Sorted(slices.Values(numbers))
	for i := 0; i < len(sorted); {
		j := i
		for j+1 < len(sorted) && sorted[j+1] == sorted[j]+1 {
			j++
		}
		if i == j {
			out = append(out, fmt.Sprint(sorted[i]))
		} else {
			out = append(out, fmt.Sprintf("%d-%d", sorted[i], sorted[j]))
		}
		i = j + 1
	}
	return strings.Join(out, ",")
}
