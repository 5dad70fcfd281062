package power

import (
	"encoding/json"
)

// macmon reads what `macmon pipe` prints: a JSON object a line, in watts, degrees
// and MHz.
type macmon struct{}

type macmonLine struct {
	CPU      *float64  `json:"cpu_power"`
	GPU      *float64  `json:"gpu_power"`
	ANE      *float64  `json:"ane_power"`
	Combined *float64  `json:"all_power"` // CPU, GPU and ANE
	DRAM     *float64  `json:"ram_power"`
	Machine  *float64  `json:"sys_power"`
	Fast     []float64 `json:"pcpu_usage"` // MHz of the fast cores, and their use
	Temp     struct {
		CPU *float64 `json:"cpu_temp_avg"`
		GPU *float64 `json:"gpu_temp_avg"`
	} `json:"temp"`
}

func (macmon) line(text string) *block {
	var x macmonLine
	if err := json.Unmarshal([]byte(text), &x); err != nil {
		return nil
	}
	b := &block{watts: map[Part]float64{}}
	for _, v := range []struct {
		part  Part
		watts *float64
	}{{CPU, x.CPU}, {GPU, x.GPU}, {ANE, x.ANE}, {Combined, x.Combined}, {DRAM, x.DRAM}, {Machine, x.Machine}} {
		if v.watts != nil && *v.watts >= 0 && *v.watts <= plausible {
			b.watts[v.part] = *v.watts
		}
	}
	if m, ok := b.watts[Machine]; ok && m == 0 {
		delete(b.watts, Machine) // no machine that runs draws nothing
	}
	if len(b.watts) == 0 {
		return nil
	}
	for _, c := range []*float64{x.Temp.CPU, x.Temp.GPU} {
		if c != nil && *c > 0 && *c < 200 && (b.celsius == nil || *c > *b.celsius) {
			b.celsius = c
		}
	}
	if len(x.Fast) > 0 && x.Fast[0] > 0 {
		b.mhz = new(x.Fast[0])
	}
	return b
}
