package machine

import "fmt"

// notes collects what could not be learnt. The same trouble of many CPUs is
// one note with a count, told by its first case.
type notes struct {
	keys  []string
	first map[string]string
	count map[string]int
}

// add records a trouble; key groups like ones.
func (n *notes) add(key, format string, args ...any) {
	if n.count == nil {
		n.first, n.count = map[string]string{}, map[string]int{}
	}
	if n.count[key] == 0 {
		n.keys = append(n.keys, key)
		n.first[key] = fmt.Sprintf(format, args...)
	}
	n.count[key]++
}

func (n *notes) list() []string {
	var out []string
	for _, key := range n.keys {
		text := n.first[key]
		if more := n.count[key] - 1; more > 0 {
			text += fmt.Sprintf(" (and %d more like it)", more)
		}
		out = append(out, text)
	}
	return out
}
