package model

import (
	"fmt"
)

// A Range is layers [First, Last).
type Range struct {
	First, Last int
}

// DefaultSplit is the four chunks of the seed documents: the layers with a KV
// cache of their own in two halves, the first the larger, and the layers that
// share caches in two halves. A model in which every layer has its own cache
// is balanced over four chunks instead, and one with fewer than four layers
// has a chunk for each.
func (m *Model) DefaultSplit() ([]Range, error) {
	n, own := len(m.Layers), m.OwnEnd
	if rest := n - own; own >= 2 && rest >= 2 {
		a, b := (own+1)/2, own+(rest+1)/2
		return []Range{{0, a}, {a, own}, {own, b}, {b, n}}, nil
	}
	return m.Balanced(min(4, n))
}

// SplitAt cuts the layers before each of the given ones, which must ascend.
func (m *Model) SplitAt(firsts []int) ([]Range, error) {
	out := []Range{{0, len(m.Layers)}}
	for _, f := range firsts {
		last := &out[len(out)-1]
		if f <= last.First || f >= len(m.Layers) {
			return nil, fmt.Errorf("split before layer %d: the layers must ascend from 1 to %d", f, len(m.Layers)-1)
		}
		last.Last = f
		out = append(out, Range{f, len(m.Layers)})
	}
	return out, nil
}

// Balanced cuts the layers into n runs so that the largest number of weight
// bytes that a run reads in a decode step is as small as possible. The output
// head counts with the last layer.
func (m *Model) Balanced(n int) ([]Range, error) {
	layers := len(m.Layers)
	if n < 1 || n > layers {
		return nil, fmt.Errorf("%d chunks: the model has %d layers, so 1 to %d chunks are possible", n, layers, layers)
	}
	sum := make([]int64, layers+1) // bytes of layers [0, i)
	for i := range layers {
		p, err := m.Program(i, i+1)
		if err != nil {
			return nil, err
		}
		w, _ := p.Bytes()
		sum[i+1] = sum[i] + w
	}
	// cost[k][i]: the smallest possible largest run when layers [0, i) are cut into k runs.
	cost, from := make([][]int64, n+1), make([][]int, n+1)
	for k := range cost {
		cost[k], from[k] = make([]int64, layers+1), make([]int, layers+1)
	}
	for i := 1; i <= layers; i++ {
		cost[1][i] = sum[i]
	}
	for k := 2; k <= n; k++ {
		for i := k; i <= layers; i++ {
			cost[k][i] = 1<<63 - 1
			for j := k - 1; j < i; j++ {
				if c := max(cost[k-1][j], sum[i]-sum[j]); c < cost[k][i] {
					cost[k][i], from[k][i] = c, j
				}
			}
		}
	}
	out := make([]Range, n)
	for k, end := n, layers; k >= 1; k-- {
		begin := 0
		if k > 1 {
			begin = from[k][end]
		}
		out[k-1] = Range{begin, end}
		end = begin
	}
	return out, nil
}
