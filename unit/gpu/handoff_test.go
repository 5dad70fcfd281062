package gpu

import (
	"math"
	"testing"

	"github.com/tandemrun/tandem/unit/gpu/vulkan"
)

func TestLine(t *testing.T) {
	var y []float64
	for _, n := range handoffSizes {
		y = append(y, 5000+0.25*float64(n))
	}
	if a, b := line(handoffSizes, y); math.Abs(a-5000) > 1e-6 || math.Abs(b-0.25) > 1e-9 {
		t.Errorf("%g + %g·x", a, b)
	}
}

// Both where host and device share the memory and where what moves is staged.
func TestMeasureHandoffs(t *testing.T) {
	for name, kind := range map[string]vulkan.DeviceType{"shared": vulkan.CPU, "staged": vulkan.Discrete} {
		u := open(t, Config{Vulkan: vulkan.Config{Alter: func(i *vulkan.Info) { i.Type = kind }}})
		costs, err := u.MeasureHandoffs(t.Context())
		if err != nil || len(costs) != 4 {
			t.Fatalf("%s: %v, %v", name, costs, err)
		}
		for _, c := range costs {
			t.Logf("%s: %s: %v and %.3f ns a byte", name, c.What, c.Call, c.PerByte)
		}
	}
}
