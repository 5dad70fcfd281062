// Package speed measures how fast an engine prefills and decodes, and how fast
// it could: the ceilings of the cores it runs on.
//
// A [Gauge] measures the ceilings: how many bytes a second some cores read from
// memory, and how many 8-bit integer operations a second they do in registers.
// A decode step reads every weight once and is held against the first; the
// prefill of a prompt is held against the second ([Operations] counts what it
// needs). The memory's speed wanders with the machine's other work, so a [Bench]
// takes a ceiling before each repetition and after the last, not once.
//
// # Promises
//
// Loading, filling the caches to a depth and a first, cold run are not part of
// a sample. Tokens are the same in each repetition and each run of the program.
//
// A Gauge and a Bench are used by one goroutine at a time, and the engine by
// nobody else meanwhile. Nothing is corrected for what else the machine does.
package speed

import (
	"math"
	"slices"
	"time"
)

// Mean is the arithmetic mean; 0 of nothing.
func Mean(x []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	var sum float64
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

// Deviation is the standard deviation of a sample (divided by n - 1); 0 of
// fewer than two values.
func Deviation(x []float64) float64 {
	if len(x) < 2 {
		return 0
	}
	mean, sum := Mean(x), 0.0
	for _, v := range x {
		sum += (v - mean) * (v - mean)
	}
	return math.Sqrt(sum / float64(len(x)-1))
}

// Median is the middle value, or the mean of the two in the middle; 0 of
// nothing.
func Median(x []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(x))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// Nanoseconds are durations as numbers.
func Nanoseconds(x []time.Duration) []float64 {
	out := make([]float64, len(x))
	for i, d := range x {
		out[i] = float64(d)
	}
	return out
}

// Rates are amounts a second, one for each duration.
func Rates(amount float64, x []time.Duration) []float64 {
	out := make([]float64, len(x))
	for i, d := range x {
		if d > 0 {
			out[i] = amount / d.Seconds()
		}
	}
	return out
}
