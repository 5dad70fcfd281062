package power

import (
	"regexp"
	"strconv"
	"strings"
)

// powermetrics reads what powermetrics of macOS prints. A block begins with a
// line of three stars; it can be used from its line of combined power on.
//
//	*** Sampled system activity (Fri Sep 11 13:41:46 2026 -0700) (1002.90ms elapsed) ***
//	...
//	CPU Power: 823 mW
//	Combined Power (CPU + GPU + ANE): 1172 mW
//	...
//	Current pressure level: Nominal
type powermetrics struct {
	current *block
	usable  *block
}

// powerLine is a line with watts: what stands before the colon may have
// anything in brackets, and the number is the one before mW.
var (
	powerLine    = regexp.MustCompile(`^\s*(CPU|GPU|ANE|DRAM|Combined|Package) Power\s*(?:\([^)]*\))?\s*:\s*([0-9]+(?:\.[0-9]+)?)\s*mW\s*$`)
	clusterLine  = regexp.MustCompile(`^\s*(\w+)-Cluster HW active frequency:\s*([0-9]+(?:\.[0-9]+)?)\s*MHz\s*$`)
	pressureLine = regexp.MustCompile(`^\s*Current pressure level:\s*(\w+)\s*$`)
)

var powermetricsParts = map[string]Part{"CPU": CPU, "GPU": GPU, "ANE": ANE, "DRAM": DRAM, "Combined": Combined, "Package": Combined}

// macPressure are the levels of macOS.
var macPressure = map[string]string{"nominal": Nominal, "moderate": Fair, "heavy": Serious, "trapping": Critical, "sleeping": Critical}

func (p *powermetrics) line(text string) *block {
	if strings.HasPrefix(text, "*** ") {
		p.current = &block{watts: map[Part]float64{}}
		return p.usable
	}
	if p.current == nil {
		return nil
	}
	if m := powerLine.FindStringSubmatch(text); m != nil {
		mw, err := strconv.ParseFloat(m[2], 64)
		if err != nil || mw/1000 > plausible {
			return p.usable
		}
		part := powermetricsParts[m[1]]
		if _, twice := p.current.watts[part]; !twice { // the GPU's own section says it again
			p.current.watts[part] = mw / 1000
		}
		if part == Combined {
			p.usable = p.current
		}
		return p.usable
	}
	if m := clusterLine.FindStringSubmatch(text); m != nil {
		// Efficiency clusters are E; the fastest of the others counts.
		mhz, err := strconv.ParseFloat(m[2], 64)
		if err == nil && mhz > 0 && !strings.HasPrefix(m[1], "E") && (p.current.mhz == nil || mhz > *p.current.mhz) {
			p.current.mhz = new(mhz)
		}
	}
	if m := pressureLine.FindStringSubmatch(text); m != nil {
		p.current.pressure = macPressure[strings.ToLower(m[1])]
	}
	return p.usable
}
