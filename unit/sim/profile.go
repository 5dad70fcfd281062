package sim

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// A Profile says what a device takes to run a model that is cut into chunks. It
// is read from JSON; docs/devices.md describes each field. Times are in
// milliseconds. A Profile is not changed after it was read.
type Profile struct {
	Name        string  `json:"name"`
	Description string  `json:"description"`
	Source      string  `json:"source"` // where the figures come from
	Model       string  `json:"model"`
	Hidden      int     `json:"hidden"`  // values in a row handed from chunk to chunk
	HostMS      float64 `json:"host_ms"` // of a stream's own work before each step, beside the units
	// CopiesMS is what of a step\'s chunk times was copying rows back, where that
	// was measured. It is for people and changes nothing that is played.
	CopiesMS *float64       `json:"copies_ms"`
	Units    []UnitProfile  `json:"units"`
	Chunks   []ChunkProfile `json:"chunks"`
	Handoffs []Handoff      `json:"handoffs"`
}

// A UnitProfile is one unit.
type UnitProfile struct {
	Name    string   `json:"name"`
	Driver  string   `json:"driver"` // units with one driver run one task at a time; "" is the unit's own
	Busy    *float64 `json:"busy_watts"`
	Idle    *float64 `json:"idle_watts"`
	Watts   string   `json:"watts"` // how the watts are known: measured, stated or estimated
	Buffers *Buffers `json:"buffers"`
}

// Buffers are a driver's rules about the memory of inputs and outputs.
type Buffers struct {
	// Backed outputs are written straight into the buffer that the engine gives.
	Backed bool `json:"backed"`
	// InputLocks says that a buffer that was an input of a task cannot back an
	// output later. FallbackMS is what each such output costs.
	InputLocks bool    `json:"input_locks"`
	FallbackMS float64 `json:"fallback_ms"`
}

// A ChunkProfile is one chunk.
type ChunkProfile struct {
	Name  string          `json:"name"`
	KV    int             `json:"kv"`    // values of keys and values that a position adds to what later chunks read
	Reads []string        `json:"reads"` // chunks whose caches it reads, having none of its own
	Takes map[string]int  `json:"takes"` // values in a row that it takes from earlier chunks, beside the state
	On    map[string]Cost `json:"on"`    // by unit
}

// Cost is what a chunk takes on a unit.
type Cost struct {
	MS       float64  `json:"ms"`        // a task of one row
	RowMS    *float64 `json:"row_ms"`    // each further row of a stream; nil is MS
	StreamMS *float64 `json:"stream_ms"` // the first row of each further stream; nil takes one stream a task
	ColdMS   *float64 `json:"cold_ms"`   // in place of MS, the first time; nil is MS
}

// A Handoff is what it takes to bring something from one unit to another: rows
// of one input of one stream, or new cache rows of one layer of one stream.
type Handoff struct {
	From      string  `json:"from"`
	To        string  `json:"to"`
	CallMS    float64 `json:"call_ms"`
	NSPerByte float64 `json:"ns_per_byte"`
}

//go:embed devices/*.json
var devices embed.FS

// Profiles lists the names of the profiles that ship.
func Profiles() []string {
	var out []string
	entries, _ := fs.ReadDir(devices, "devices") // embedded: it is there
	for _, e := range entries {
		out = append(out, strings.TrimSuffix(e.Name(), ".json"))
	}
	return out
}

// Find reads the profile that ships under a name, or else that of a file.
func Find(nameOrFile string) (*Profile, error) {
	if slices.Contains(Profiles(), nameOrFile) {
		data, err := devices.ReadFile(path.Join("devices", nameOrFile+".json"))
		if err != nil {
			return nil, err
		}
		return Parse(nameOrFile, data)
	}
	f, err := os.Open(nameOrFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("device %q: there is no such file, and no such profile: there are %s", nameOrFile, strings.Join(Profiles(), ", "))
	}
	if err != nil {
		return nil, fmt.Errorf("device profile: %w", err)
	}
	defer f.Close()
	const most = 1 << 20
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("device profile: %w", err)
	case len(data) > most:
		return nil, fmt.Errorf("device profile %s: it is larger than a megabyte", nameOrFile)
	}
	return Parse(nameOrFile, data)
}

// Parse reads a profile and checks it. Errors name the file and the field.
func Parse(file string, data []byte) (*Profile, error) {
	p := new(Profile)
	err := decode(data, p)
	if err == nil {
		err = p.check()
	}
	if err != nil {
		return nil, fmt.Errorf("device profile %s: %w", file, err)
	}
	return p, nil
}

// check returns the first thing that is wrong with a profile.
func (p *Profile) check() error {
	var err error
	ok := func(good bool, field, format string, args ...any) {
		if !good && err == nil {
			err = fmt.Errorf("%s: %s", field, fmt.Sprintf(format, args...))
		}
	}
	amount := func(x float64, field string) {
		const most = 1e7 // of any unit that is here; about three hours
		ok(x >= 0 && x <= most, field, "%g is not between 0 and %g", x, most)
	}
	maybe := func(x *float64, field string) {
		if x != nil {
			amount(*x, field)
		}
	}
	ok(p.Name != "", "name", "it is missing")
	ok(p.Hidden >= 1 && p.Hidden <= 1<<20, "hidden", "%d is not between 1 and %d", p.Hidden, 1<<20)
	amount(p.HostMS, "host_ms")
	maybe(p.CopiesMS, "copies_ms")
	ok(len(p.Units) >= 1 && len(p.Units) <= 64, "units", "%d of them; there must be 1 to 64", len(p.Units))
	ok(len(p.Chunks) >= 1 && len(p.Chunks) <= 1024, "chunks", "%d of them; there must be 1 to 1024", len(p.Chunks))
	for i, u := range p.Units {
		at := fmt.Sprintf("units[%d].", i)
		ok(u.Name != "" && u.Name != "*" && !strings.ContainsAny(u.Name, "=, "), at+"name", "%q: it must be a word without = and comma", u.Name)
		ok(p.unit(u.Name) == i, at+"name", "%q is there already", u.Name)
		maybe(u.Busy, at+"busy_watts")
		maybe(u.Idle, at+"idle_watts")
		known := u.Watts == "measured" || u.Watts == "stated" || u.Watts == "estimated"
		ok(known || u.Watts == "" && u.Busy == nil && u.Idle == nil, at+"watts", "%q: it must say how the watts are known: measured, stated or estimated", u.Watts)
		if u.Buffers != nil {
			amount(u.Buffers.FallbackMS, at+"buffers.fallback_ms")
		}
	}
	for i, c := range p.Chunks {
		at := fmt.Sprintf("chunks[%d].", i)
		ok(c.Name != "" && !strings.ContainsAny(c.Name, "=, "), at+"name", "%q: it must be a word without = and comma", c.Name)
		ok(p.chunk(c.Name) == i, at+"name", "%q is there already", c.Name)
		ok(c.KV >= 0 && c.KV <= 1<<20 && c.KV%2 == 0, at+"kv", "%d is not an even number between 0 and %d", c.KV, 1<<20)
		ok(c.KV == 0 || len(c.Reads) == 0, at+"reads", "a chunk with a cache of its own reads no other")
		for k, name := range c.Reads {
			from := p.chunk(name)
			field := fmt.Sprintf("%sreads[%d]", at, k)
			ok(from >= 0 && from < i, field, "%q is not an earlier chunk", name)
			ok(from < 0 || p.Chunks[max(from, 0)].KV > 0, field, "%q has no cache; give it kv", name)
			ok(slices.Index(c.Reads, name) == k, field, "%q is there already", name)
		}
		for name, n := range c.Takes {
			field := at + "takes." + name
			from := p.chunk(name)
			ok(from >= 0 && from < i, field, "it is not an earlier chunk")
			ok(n >= 1 && n <= 1<<20, field, "%d is not between 1 and %d", n, 1<<20)
		}
		ok(len(c.On) > 0, at+"on", "the chunk is on no unit")
		for name, cost := range c.On {
			at := at + "on." + name
			ok(p.unit(name) >= 0, at, "there is no such unit")
			amount(cost.MS, at+".ms")
			ok(cost.MS > 0, at+".ms", "it is missing or 0")
			maybe(cost.RowMS, at+".row_ms")
			maybe(cost.StreamMS, at+".stream_ms")
			maybe(cost.ColdMS, at+".cold_ms")
		}
	}
	for i, h := range p.Handoffs {
		at := fmt.Sprintf("handoffs[%d].", i)
		ok(h.From == "*" || p.unit(h.From) >= 0, at+"from", "there is no unit %q", h.From)
		ok(h.To == "*" || p.unit(h.To) >= 0, at+"to", "there is no unit %q", h.To)
		amount(h.CallMS, at+"call_ms")
		amount(h.NSPerByte, at+"ns_per_byte")
	}
	return err
}

func (p *Profile) unit(name string) int {
	return slices.IndexFunc(p.Units, func(u UnitProfile) bool { return u.Name == name })
}

func (p *Profile) chunk(name string) int {
	return slices.IndexFunc(p.Chunks, func(c ChunkProfile) bool { return c.Name == name })
}

// handoff is what it takes to bring n bytes from one unit to another, by the
// first entry that fits.
func (p *Profile) handoff(from, to string, n int64) time.Duration {
	for _, h := range p.Handoffs {
		if (h.From == from || h.From == "*") && (h.To == to || h.To == "*") {
			return ms(h.CallMS) + time.Duration(h.NSPerByte*float64(n))
		}
	}
	return 0
}

// Host is what a stream does on its own before each step.
func (p *Profile) Host() time.Duration { return ms(p.HostMS) }

// Place completes a placement, chunk names to unit names: chunks that it does
// not name go to the first unit of the profile that they can be on. It returns
// the units' names in the order of the chunks.
func (p *Profile) Place(placement map[string]string) ([]string, error) {
	out := make([]string, len(p.Chunks))
	for name := range placement {
		if p.chunk(name) < 0 {
			var names []string
			for _, c := range p.Chunks {
				names = append(names, c.Name)
			}
			return nil, fmt.Errorf("placement: %s has no chunk %q; it has %s", p.Name, name, strings.Join(names, ", "))
		}
	}
	for i, c := range p.Chunks {
		var can []string
		for _, u := range p.Units {
			if _, ok := c.On[u.Name]; ok {
				can = append(can, u.Name)
			}
		}
		name, named := placement[c.Name]
		switch {
		case !named:
			out[i] = can[0]
		case slices.Contains(can, name):
			out[i] = name
		default:
			return nil, fmt.Errorf("placement: %s says nothing of %s on %q; it can be on %s", p.Name, c.Name, name, strings.Join(can, ", "))
		}
	}
	return out, nil
}

// ms is a number of milliseconds.
func ms(x float64) time.Duration { return time.Duration(x*1e6 + 0.5) }
