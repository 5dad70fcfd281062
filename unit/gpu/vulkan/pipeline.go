package vulkan

import (
	"errors"
	"fmt"
	"slices"
	"time"
	"unsafe"
)

// Pipeline is a compiled shader.
type Pipeline struct {
	d        *Device
	bindings int
	push     int
	set      uint64 // layout of its descriptor set
	layout   uint64
	handle   uint64
	took     time.Duration
}

const (
	storageBuffer = 7
	computeStage  = 0x20
)

// Pipeline compiles a shader. Its entry point is main, its storage buffers are
// bindings 0 to bindings-1 of set 0, it takes push bytes of push constants, and
// spec are its specialization constants by id. The code is SPIR-V.
func (d *Device) Pipeline(code []byte, bindings, push int, spec map[uint32]uint32) (*Pipeline, error) {
	l := d.info.Limits
	switch {
	case len(code) < 20 || len(code)%4 != 0 || code[0] != 0x03 || code[1] != 0x02 || code[2] != 0x23 || code[3] != 0x07:
		return nil, errors.New("a shader that is not SPIR-V")
	case bindings < 1 || bindings > l.Bindings:
		return nil, fmt.Errorf("a shader of %d buffers: %s allows 1 to %d", bindings, d.info.Name, l.Bindings)
	case push < 0 || push > l.Push || push%4 != 0:
		return nil, fmt.Errorf("a shader of %d bytes of push constants: %s allows %d", push, d.info.Name, l.Push)
	}
	p := &Pipeline{d: d, bindings: bindings, push: push}
	start := time.Now()
	if err := p.make(code, spec); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	p.took = time.Since(start)
	d.made++
	return p, nil
}

func (p *Pipeline) make(code []byte, spec map[uint32]uint32) error {
	d := p.d
	if err := d.openCache(); err != nil {
		return err
	}
	list := make([]descriptorSetLayoutBinding, p.bindings)
	for i := range list {
		list[i] = descriptorSetLayoutBinding{binding: uint32(i), kind: storageBuffer, count: 1, stages: computeStage}
	}
	set := descriptorSetLayoutCreateInfo{next: next{sType: typeDescriptorSetLayoutCreateInfo}, bindingCount: uint32(p.bindings), bindings: &list[0]}
	if err := d.create(d.fn.createDescriptorSetLayout, unsafe.Pointer(&set), &p.set); err != nil {
		return err
	}
	layout := pipelineLayoutCreateInfo{next: next{sType: typePipelineLayoutCreateInfo}, setLayoutCount: 1, setLayouts: &p.set}
	if p.push > 0 {
		layout.pushConstantRangeCount, layout.pushConstantRanges = 1, &pushConstantRange{computeStage, 0, uint32(p.push)}
	}
	if err := d.create(d.fn.createPipelineLayout, unsafe.Pointer(&layout), &p.layout); err != nil {
		return err
	}
	words := make([]uint32, len(code)/4) // aligned as the API wants it
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), len(code)), code)
	module := shaderModuleCreateInfo{next: next{sType: typeShaderModuleCreateInfo}, codeSize: uintptr(len(code)), code: (*byte)(unsafe.Pointer(&words[0]))}
	var shader uint64
	if err := d.create(d.fn.createShaderModule, unsafe.Pointer(&module), &shader); err != nil {
		return err
	}
	defer d.destroy(d.fn.destroyShaderModule, &shader)
	info := computePipelineCreateInfo{
		next: next{sType: typeComputePipelineCreateInfo}, layout: p.layout,
		stage: pipelineShaderStageCreateInfo{
			next: next{sType: typePipelineShaderStageCreateInfo}, stage: computeStage, module: shader, name: cstring("main"), specialization: specialization(spec),
		},
	}
	if d.lost != nil {
		return d.lost
	}
	return d.note(d.fn.call(d.fn.createComputePipelines, d.handle, uintptr(d.cache), 1, uintptr(unsafe.Pointer(&info)), 0, uintptr(unsafe.Pointer(&p.handle))))
}

func specialization(spec map[uint32]uint32) *specializationInfo {
	if len(spec) == 0 {
		return nil
	}
	var ids []uint32
	for id := range spec {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	entries, data := make([]specializationMapEntry, len(ids)), make([]uint32, len(ids))
	for i, id := range ids {
		entries[i], data[i] = specializationMapEntry{id, uint32(4 * i), 4}, spec[id]
	}
	return &specializationInfo{uint32(len(ids)), &entries[0], uintptr(4 * len(ids)), &data[0]}
}

// Took is what compiling it took.
func (p *Pipeline) Took() time.Duration { return p.took }

// Close frees the pipeline.
func (p *Pipeline) Close() error {
	d := p.d
	d.destroy(d.fn.destroyPipeline, &p.handle)
	d.destroy(d.fn.destroyPipelineLayout, &p.layout)
	d.destroy(d.fn.destroyDescriptorSetLayout, &p.set)
	return nil
}
