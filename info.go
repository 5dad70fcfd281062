package tandem

import (
	"fmt"

	"github.com/tandemrun/tandem/machine"
	"github.com/tandemrun/tandem/model/catalog"
	"github.com/tandemrun/tandem/unit/cpu"
	"github.com/tandemrun/tandem/unit/cpu/kernel"
)

// Info describes a model file and what a layout of it needs.
type Info struct {
	File      string      `json:"file"`
	Version   uint32      `json:"gguf_version"`
	Size      int64       `json:"size_bytes"`
	Arch      string      `json:"architecture"`
	Name      string      `json:"name"`
	Context   int         `json:"context_length"`
	Vocab     int         `json:"vocabulary"`
	Hidden    int         `json:"embedding_length"`
	Tokenizer string      `json:"tokenizer"`       // kind, or "none"
	Template  string      `json:"chat_template"`   // "file", "fallback", "none", or why the file's cannot be used
	Notes     []string    `json:"notes,omitempty"` // defaults of the format that were used
	Metadata  []KeyValue  `json:"metadata"`
	Layers    []LayerInfo `json:"layers"`
	Types     []TypeInfo  `json:"tensor_types"`
	Chunks    []ChunkPlan `json:"chunks"`
	Memory    MemoryPlan  `json:"memory"`
}

// KeyValue is a key of the file's metadata. Long arrays are shortened.
type KeyValue struct {
	Key   string `json:"key"`
	Type  string `json:"type"`
	Value string `json:"value"`
}

// LayerInfo is the shape of a layer. Owner is the layer whose KV cache it
// reads: itself, or an earlier one.
type LayerInfo struct {
	Layer    int    `json:"layer"`
	Kind     string `json:"kind"`
	Owner    int    `json:"kv_owner"`
	Heads    int    `json:"heads"`
	KVHeads  int    `json:"kv_heads"`
	KeyDim   int    `json:"key_dim"`
	ValueDim int    `json:"value_dim"`
	FFN      int    `json:"ffn"`
	Window   int    `json:"window,omitempty"`
}

// TypeInfo counts the tensors of one type.
type TypeInfo struct {
	Type    string `json:"type"`
	Tensors int    `json:"tensors"`
	Bytes   int64  `json:"bytes"`
}

// ChunkPlan is a chunk before it is loaded.
type ChunkPlan struct {
	Name    string `json:"name"`
	First   int    `json:"first_layer"`
	Last    int    `json:"last_layer"`
	Unit    string `json:"unit"`
	Prefill bool   `json:"prefill,omitempty"` // loaded once more, for prefill
	Weights int64  `json:"weight_bytes"`      // read in every decode step
	Tables  int64  `json:"table_bytes"`       // looked up by row
	KV      int64  `json:"kv_bytes"`
}

// MemoryPlan is what a layout needs, in bytes.
type MemoryPlan struct {
	Context int    `json:"context"`
	Streams int    `json:"streams"`
	Block   int    `json:"block"`
	KVType  string `json:"kv_type"`
	Weights int64  `json:"weight_bytes"`
	KV      int64  `json:"kv_bytes"`
	Buffers int64  `json:"buffer_bytes"`
	Total   int64  `json:"total_bytes"`
	// Available is what the machine has now; 0 if it does not tell.
	Available int64 `json:"available_bytes"`
	// Units is the same by unit.
	Units []UnitNeed `json:"units"`
}

// Inspect describes the model and the layout that o asks for; nothing is
// loaded.
func (m *Model) Inspect(o Options) (Info, error) {
	f, x := m.file, m.model
	info := Info{
		File: f.Name(), Version: f.Version(), Size: f.Size(), Arch: x.Arch, Name: x.Name, Context: x.Context,
		Vocab: x.Vocab, Hidden: x.Hidden, Tokenizer: "none", Template: "none", Notes: x.Notes,
	}
	if m.vocab != nil {
		info.Tokenizer, info.Template = m.vocab.Kind(), "fallback"
		if f.Has("tokenizer.chat_template") {
			info.Template = "file"
		}
		if m.chatErr != nil {
			info.Template = m.chatErr.Error()
		}
	}
	for _, key := range f.Keys() {
		v, _ := f.Value(key)
		info.Metadata = append(info.Metadata, KeyValue{key, v.Type().String(), v.String()})
	}
	for i, l := range x.Layers {
		info.Layers = append(info.Layers, LayerInfo{i, l.Kind.String(), l.Owner, l.Heads, l.KVHeads, l.KeyDim, l.ValueDim, l.FFN, l.Window})
	}
	at := map[string]int{}
	for _, t := range f.Tensors() {
		name := t.Type.String()
		if _, ok := at[name]; !ok {
			at[name] = len(info.Types)
			info.Types = append(info.Types, TypeInfo{Type: name})
		}
		c := &info.Types[at[name]]
		c.Tensors++
		c.Bytes += int64(len(t.Data))
	}
	l, err := m.layout(o)
	if err != nil {
		return info, err
	}
	plans, err := m.plan(l)
	if err != nil {
		return info, err
	}
	info.Memory = MemoryPlan{Context: l.o.Context, Streams: l.o.Slots, Block: l.o.Block, KVType: l.o.KV.String()}
	for k, p := range plans {
		i, names, twin := k, l.names, k >= len(l.ranges)
		if twin {
			i, names = l.twins[k-len(l.ranges)], l.prefill
		}
		info.Chunks = append(info.Chunks, ChunkPlan{
			fmt.Sprintf("c%d", i+1), l.ranges[i].First, l.ranges[i].Last - 1, names[i], twin, p.Weights, p.Tables, p.KV,
		})
		info.Memory.Weights += p.Weights
		info.Memory.KV += p.KV
		info.Memory.Buffers += p.Buffers
	}
	info.Memory.Total = info.Memory.Weights + info.Memory.KV + info.Memory.Buffers
	host, err := machine.Detect()
	if err != nil {
		return info, fmt.Errorf("finding the cores of this machine: %w", err)
	}
	for _, name := range l.units() {
		if _, err := unitCores(name, host); err != nil {
			return info, err
		}
	}
	info.Memory.Available = host.Memory.Available
	info.Memory.Units, err = l.memory(plans)
	return info, err
}

// Architectures lists the architectures this build can read.
func Architectures() []string { return catalog.Names() }

// UnitInfo describes a unit that this build knows.
type UnitInfo struct {
	Name   string `json:"name"`
	Usable bool   `json:"usable"`
	Why    string `json:"why,omitempty"` // why it is not usable
	Cores  []int  `json:"cores,omitempty"`
	Kind   string `json:"kind,omitempty"` // units of one kind give equal bits
	Detail string `json:"detail,omitempty"`
	GPU    *GPU   `json:"gpu,omitempty"`
}

// Host describes the machine as far as this process may use it.
type Host struct {
	OS        string      `json:"os"`
	Arch      string      `json:"arch"`
	Model     string      `json:"model,omitempty"`
	Cores     []int       `json:"cores"` // the system's numbers, in the order of cpu:0, cpu:1, ...
	Quota     float64     `json:"quota,omitempty"`
	ISA       []string    `json:"instruction_sets"`
	Kernels   string      `json:"kernels"` // the instruction set the kernels use
	Caches    []HostCache `json:"caches,omitempty"`
	Memory    int64       `json:"memory_bytes,omitempty"`
	Available int64       `json:"available_bytes,omitempty"`
	Notes     []string    `json:"notes,omitempty"`
	Units     []UnitInfo  `json:"units"`
}

// HostCache is a cache of the machine.
type HostCache struct {
	Level int   `json:"level"`
	Bytes int64 `json:"bytes"`
	Cores []int `json:"cores,omitempty"`
}

// Units describes this machine and every unit this build knows, usable or not.
func Units() (Host, error) {
	m, err := machine.Detect()
	if err != nil {
		return Host{}, fmt.Errorf("finding the cores of this machine: %w", err)
	}
	h := Host{OS: m.OS, Arch: m.Arch, Model: m.Model, Cores: m.Usable(), Quota: m.Quota, ISA: m.ISA,
		Kernels: kernel.Best().String(), Memory: m.Memory.Total, Available: m.Memory.Available, Notes: m.Notes}
	for _, c := range m.Caches {
		h.Caches = append(h.Caches, HostCache{c.Level, c.Bytes, c.CPUs})
	}
	names := []string{"cpu"}
	for i := range h.Cores {
		names = append(names, fmt.Sprintf("cpu:%d", i))
	}
	for _, k := range []machine.Kind{machine.Performance, machine.Efficiency} {
		names = append(names, "cpu:"+string(k))
	}
	for _, name := range names {
		u := UnitInfo{Name: name}
		if cores, err := cpu.Cores(name, m); err != nil {
			u.Why = err.Error()
		} else {
			u.Usable, u.Cores, u.Kind = true, cores, "cpu/"+h.Kernels
			if m.OS != "linux" {
				u.Detail = "workers are not pinned to cores on " + m.OS
			}
		}
		h.Units = append(h.Units, u)
	}
	h.Units = append(h.Units, gpuUnits()...)
	return h, nil
}

// PeakMemory is the largest resident set of this process so far, mapped pages
// included, in bytes; false where the system does not tell.
func PeakMemory() (int64, bool) { return machine.PeakRSS() }
