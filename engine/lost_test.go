package engine

import (
	"strings"
	"testing"

	"github.com/tandemrun/tandem/unit"
	"github.com/tandemrun/tandem/unit/sim"
)

// A stream whose cache rows are in no store ends with an error; the engine and
// its other streams go on.
func TestLostRows(t *testing.T) {
	p, err := sim.Find("mac-studio")
	if err != nil {
		t.Fatal(err)
	}
	clock := sim.NewVirtual()
	sim.Run(clock, func() {
		d := sim.NewDevice(p, clock)
		units, err := d.Place(nil)
		if err != nil {
			t.Error(err)
			return
		}
		e, err := New(t.Context(), sim.Model(p), Config{Ranges: sim.Ranges(p), Units: units, Slots: 2, Context: 64, Block: 8, KV: unit.F16, Clock: clock})
		if err != nil {
			t.Error(err)
			return
		}
		defer e.Close()
		var streams [2]*Stream
		for i := range streams {
			if streams[i], err = e.Stream(t.Context()); err != nil {
				t.Error(err)
				return
			}
			defer streams[i].Close()
			if err := streams[i].Forward(t.Context(), []int32{1, 2, 3}, Last, func(int, []float32) error { return nil }); err != nil {
				t.Error(err)
			}
		}
		clear(streams[0].held)
		next := func(s *Stream) error {
			return s.Forward(t.Context(), []int32{4}, Last, func(int, []float32) error { return nil })
		}
		if err := next(streams[0]); err == nil || !strings.Contains(err.Error(), "no longer hold") {
			t.Errorf("a stream without its rows: %v", err)
		}
		if err := next(streams[1]); err != nil {
			t.Errorf("another stream: %v", err)
		}
	})
}
