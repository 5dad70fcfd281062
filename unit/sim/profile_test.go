package sim

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

const small = `{"name": "d", "hidden": 8, "units": [{"name": "A"}, {"name": "B"}], "chunks": [
	{"name": "x", "kv": 4, "on": {"A": {"ms": 5}, "B": {"ms": 6}}},
	{"name": "y", "reads": ["x"], "takes": {"x": 3}, "on": {"B": {"ms": 5}}}]}`

// Every mistake is an error that names the file and the field.
func TestParseErrors(t *testing.T) {
	if _, err := Parse("d.json", []byte(small)); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct{ from, to, want string }{
		{`"hidden": 8`, `"hiden": 8`, "hiden: there is no such field; there are chunks, copies_ms, description"},
		{`{"ms": 5}}}]`, `{"ms": 5, "warm": 1}}}]`, "chunks[1].on.B.warm: there is no such field; there are cold_ms, ms, row_ms, stream_ms"},
		{`"hidden": 8`, `"hidden": 8, "Hidden": 8`, "Hidden: there is no such field"},
		{`"hidden": 8`, `"hidden": 8, "hidden": 9`, "hidden: given twice"},
		{`"hidden": 8`, `"hidden": null`, "hidden: null"},
		{`"hidden": 8`, `"hidden": "8"`, "hidden: a string where a whole number is wanted"},
		{`"hidden": 8`, `"hidden": 8.5`, "hidden: a number 8.5 where a whole number is wanted"},
		{`"hidden": 8`, `"hidden": 0`, "hidden: 0 is not between"},
		{`"hidden": 8`, `"hidden": 8, "host_ms": -1`, "host_ms: -1 is not between"},
		{`{"ms": 6}`, `{"ms": 1e99}`, "chunks[0].on.B.ms: 1e+99 is not between"},
		{`{"ms": 6}`, `{"ms": 1e999}`, "ms"},
		{`{"ms": 6}`, `{}`, "chunks[0].on.B.ms: it is missing or 0"},
		{`"B": {"ms": 6}`, `"C": {"ms": 6}`, "chunks[0].on.C: there is no such unit"},
		{`{"name": "B"}`, `{"name": "A"}`, `units[1].name: "A" is there already`},
		{`{"name": "B"}`, `{"name": "B", "busy_watts": 2}`, "units[1].watts"},
		{`"name": "y"`, `"name": "x"`, `chunks[1].name: "x" is there already`},
		{`"kv": 4`, `"kv": 5`, "chunks[0].kv: 5 is not an even number"},
		{`"kv": 4,`, ``, `chunks[1].reads[0]: "x" has no cache`},
		{`["x"]`, `["y"]`, `chunks[1].reads[0]: "y" is not an earlier chunk`},
		{`{"x": 3}`, `{"z": 3}`, "chunks[1].takes.z: it is not an earlier chunk"},
		{`"hidden": 8`, `"hidden": 8, "handoffs": [{"from": "A", "to": "C"}]`, `handoffs[0].to: there is no unit "C"`},
		{`}}}]}`, `}}}]`, "not whole JSON"},
		{`}}}]}`, `}}}]} x`, "behind the closing brace"},
		{small, `[]`, "a array where an object is wanted"},
		{small, ``, "not whole JSON"},
	} {
		text := strings.Replace(small, x.from, x.to, 1)
		if text == small {
			t.Fatalf("%s is not in the profile", x.from)
		}
		_, err := Parse("d.json", []byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), "device profile d.json: ") || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, not %q", x.to, err, x.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(small))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Parse("fuzz", data)
		if err != nil {
			return
		}
		m := Model(p)
		if _, err := p.Place(nil); err != nil {
			t.Error(err)
		}
		for i := range p.Chunks {
			if _, err := m.Program(i, i+1); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestFind(t *testing.T) {
	if got := Profiles(); !reflect.DeepEqual(got, []string{"iphone-17-pro", "mac-studio"}) {
		t.Errorf("profiles %v", got)
	}
	for _, name := range Profiles() {
		p, err := Find(name)
		if err != nil || p.Name != name || p.Source == "" {
			t.Errorf("%s: %v, %+v", name, err, p)
		}
	}
	file := filepath.Join(t.TempDir(), "d.json")
	if err := os.WriteFile(file, []byte(small), 0o666); err != nil {
		t.Fatal(err)
	}
	if p, err := Find(file); err != nil || p.Name != "d" {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := Find("mac"); err == nil || !strings.Contains(err.Error(), "iphone-17-pro, mac-studio") {
		t.Errorf("a name that is neither: %v", err)
	}
}

// The handoffs of the shipped profiles have the sizes of the models: hidden
// rows, per-layer embeddings of 256 values a layer, keys and values of the two
// layers that are shared.
func TestModel(t *testing.T) {
	p, err := Find("mac-studio")
	if err != nil {
		t.Fatal(err)
	}
	m := Model(p)
	if m.OwnEnd != 2 {
		t.Errorf("layers from %d on share caches, not from 2 on", m.OwnEnd)
	}
	want := []struct{ in, out, kv int }{{0, 1536 + 1792 + 2*2560, 0}, {1536 + 1792, 1536, 512 + 1024}, {1536 + 2560, 1536, 512 + 1024}, {1536 + 2560, 0, 512 + 1024}}
	for i, w := range want {
		prog, err := m.Program(i, i+1)
		if err != nil {
			t.Fatal(err)
		}
		in, out, kv := 0, 0, 0
		for _, x := range prog.Inputs {
			in += x.View.Width
		}
		for _, x := range prog.Outputs {
			out += x.View.Width
		}
		for _, x := range prog.Caches {
			kv += x.KeyWidth() + x.ValueWidth()
			if x.Own != (i == 1) || x.Layer != 1 {
				t.Errorf("chunk %d: %+v", i, x)
			}
		}
		if in != w.in || out != w.out || kv != w.kv {
			t.Errorf("chunk %d: %d values in, %d out, %d of cache; not %+v", i, in, out, kv, w)
		}
	}
	if _, err := m.Program(0, 2); err == nil {
		t.Error("two chunks were joined")
	}
}

// docs/devices.md has every field.
func TestDocumented(t *testing.T) {
	data, err := os.ReadFile("../../docs/devices.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []any{Profile{}, UnitProfile{}, Buffers{}, ChunkProfile{}, Cost{}, Handoff{}} {
		for name := range fields(reflect.TypeOf(x)) {
			if !strings.Contains(string(data), "`"+name+"`") {
				t.Errorf("docs/devices.md does not tell of %s of %T", name, x)
			}
		}
	}
}
