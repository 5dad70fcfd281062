package gpu

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tandemrun/tandem/unit/gpu/vulkan"
)

// A HandoffCost is what it takes to bring something to the device or from it:
// Call once, and PerByte nanoseconds for each byte.
type HandoffCost struct {
	What    string // "rows in", "rows out", "cache in", "cache out"
	Call    time.Duration
	PerByte float64
}

// handoffSizes are the sizes that are measured: from a decode step's row to a
// block of a prompt.
var handoffSizes = []int{4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20}

const handoffTrials = 15

// MeasureHandoffs measures what handoffs between this unit and others cost. Rows
// of tasks are copied by the host to memory that the device reads, and by the
// device to where it computes, and back; the time that the device takes is its
// own, since these copies go with a task's commands. Cache rows go by
// themselves: in place where host and device share the memory, and else with a
// submission each time. It is called with no Run in flight.
func (u *Unit) MeasureHandoffs(ctx context.Context) ([]HandoffCost, error) {
	v, ok := u.dev.(*vulkanDevice)
	if !ok {
		return nil, fmt.Errorf("unit %s: handoffs are measured on Vulkan devices only", u.Name())
	}
	most := int64(handoffSizes[len(handoffSizes)-1])
	var buffers []*vulkan.Buffer
	defer func() {
		for _, b := range buffers {
			_ = b.Close() // it frees and cannot fail
		}
	}()
	for _, kind := range []vulkan.Kind{vulkan.Upload, vulkan.Local, vulkan.Readback} {
		b, err := v.d.Buffer(most, kind)
		if err != nil {
			return nil, u.fail(cause(err))
		}
		buffers = append(buffers, b)
	}
	up, local, down := buffers[0], buffers[1], buffers[2]
	host := make([]byte, most)
	copied := func(dst, src vulkan.Range) (time.Duration, error) {
		r, err := v.d.Record(func(c *vulkan.Commands) {
			c.Timestamp()
			c.Copy(dst, src)
			c.Timestamp()
		})
		if err != nil {
			return 0, err
		}
		err = v.d.Submit(ctx, r)
		var stamps []time.Duration
		if err == nil {
			stamps, err = r.Times()
		}
		if err = errors.Join(err, r.Close()); err != nil || len(stamps) < 2 {
			return 0, err
		}
		return stamps[1], nil
	}
	timed := func(f func()) time.Duration {
		start := time.Now()
		f()
		return time.Since(start)
	}
	var out []HandoffCost
	for _, x := range []struct {
		what string
		once func(n int) (time.Duration, error)
	}{
		{"rows in", func(n int) (time.Duration, error) {
			took := timed(func() { copy(up.Bytes(), host[:n]) })
			device, err := copied(local.Range(0, int64(n)), up.Range(0, int64(n)))
			return took + device, err
		}},
		{"rows out", func(n int) (time.Duration, error) {
			device, err := copied(down.Range(0, int64(n)), local.Range(0, int64(n)))
			return device + timed(func() { copy(host[:n], down.Bytes()) }), err
		}},
		{"cache in", func(n int) (took time.Duration, err error) {
			return timed(func() { err = v.d.Transfer(vulkan.Move{Range: local.Range(0, int64(n)), Data: host[:n]}) }), err
		}},
		{"cache out", func(n int) (took time.Duration, err error) {
			return timed(func() { err = v.d.Transfer(vulkan.Move{Range: local.Range(0, int64(n)), Data: host[:n], Read: true}) }), err
		}},
	} {
		var took []float64
		for _, n := range handoffSizes {
			trials := make([]time.Duration, handoffTrials)
			for i := range trials {
				var err error
				if trials[i], err = x.once(n); err != nil {
					return nil, u.fail(cause(err))
				}
			}
			slices.Sort(trials)
			took = append(took, float64(trials[len(trials)/2]))
		}
		call, perByte := line(handoffSizes, took)
		out = append(out, HandoffCost{x.what, time.Duration(max(call, 0)), max(perByte, 0)})
	}
	return out, nil
}

// line is the line a + b·x through points, with the least squares of the
// differences relative to the sizes: small handoffs count as much as large ones.
func line(x []int, y []float64) (a, b float64) {
	var w, wx, wy, wxx, wxy float64
	for i := range x {
		v := float64(x[i])
		k := 1 / (v * v)
		w, wx, wy, wxx, wxy = w+k, wx+k*v, wy+k*y[i], wxx+k*v*v, wxy+k*v*y[i]
	}
	b = (w*wxy - wx*wy) / (w*wxx - wx*wx)
	return (wy - b*wx) / w, b
}
