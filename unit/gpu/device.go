package gpu

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/tandemrun/tandem/unit/gpu/compute"
	"github.com/tandemrun/tandem/unit/gpu/shader"
	"github.com/tandemrun/tandem/unit/gpu/vulkan"
)

// vulkanDevice is a Vulkan device as lists of dispatches need it.
type vulkanDevice struct {
	d         *vulkan.Device
	pipelines map[compute.Variant]*vulkan.Pipeline
}

func newVulkan(d *vulkan.Device) *vulkanDevice {
	return &vulkanDevice{d, map[compute.Variant]*vulkan.Pipeline{}}
}

// cause makes the errors of the device those of package compute.
func cause(err error) error {
	switch {
	case errors.Is(err, vulkan.DeviceLost):
		return errors.Join(compute.ErrLost, err)
	case errors.Is(err, vulkan.OutOfMemory), errors.Is(err, vulkan.OutOfHostMemory):
		return errors.Join(compute.ErrMemory, err)
	}
	return err
}

func (v *vulkanDevice) Limits() compute.Limits {
	i := v.d.Info()
	l := compute.Limits{Binding: i.Limits.StorageRange, Align: i.Limits.StorageAlign, Allocation: i.Limits.Allocation, Groups: i.Limits.Groups}
	if i.Type == vulkan.CPU && i.Features.SubgroupBallot {
		// Wider subgroups are used as several of 32 lanes.
		l.Lanes = 1
		for l.Lanes < 32 && 2*l.Lanes <= i.Limits.Subgroup {
			l.Lanes *= 2
		}
	}
	if i.Features.HostImport {
		l.Import = i.Limits.ImportAlign
	}
	return l
}

func (v *vulkanDevice) Alloc(size int64, m compute.Memory) (compute.Buffer, error) {
	b, err := v.d.Buffer(size, [...]vulkan.Kind{vulkan.Local, vulkan.Upload, vulkan.Readback}[m])
	if err != nil {
		return nil, cause(err)
	}
	return b, nil
}

func (v *vulkanDevice) Import(begin *byte, size int64) (compute.Binding, error) {
	r, err := v.d.Import(begin, size)
	if err != nil {
		return compute.Binding{}, cause(err)
	}
	return compute.Binding{Buffer: r.Buffer, Offset: r.Offset, Size: r.Size}, nil
}

func area(b compute.Binding) vulkan.Range {
	return b.Buffer.(*vulkan.Buffer).Range(b.Offset, b.Size)
}

func (v *vulkanDevice) Transfer(moves ...compute.Move) error {
	list := make([]vulkan.Move, len(moves))
	for i, m := range moves {
		list[i] = vulkan.Move{Range: area(m.At), Data: m.Data, Read: m.Read}
	}
	return cause(v.d.Transfer(list...))
}

func (v *vulkanDevice) Clear(at compute.Binding) error {
	r, err := v.d.Record(func(c *vulkan.Commands) { c.Fill(area(at), 0) })
	if err != nil {
		return cause(err)
	}
	return cause(errors.Join(v.d.Submit(context.Background(), r), r.Close()))
}

func (v *vulkanDevice) pipeline(x compute.Variant) (*vulkan.Pipeline, error) {
	if p, ok := v.pipelines[x]; ok {
		return p, nil
	}
	k, err := shader.Lookup(x.Kernel)
	if err != nil {
		return nil, err
	}
	constants := map[uint32]uint32{}
	for i, c := range x.Constants[:k.Constants] {
		constants[uint32(i)] = c
	}
	p, err := v.d.Pipeline(k.SPIRV, k.Bindings, 4*k.Push, constants)
	if err != nil {
		return nil, fmt.Errorf("building the kernel %s: %w", x.Kernel, cause(err))
	}
	v.pipelines[x] = p
	return p, nil
}

// vulkanCommands have a timestamp before all dispatches and one behind all, or
// behind each if they are timed.
type vulkanCommands struct {
	*vulkan.Recorded
	timed bool
}

// Times are the differences of the timestamps around the dispatches.
func (c vulkanCommands) Times() ([]time.Duration, error) {
	if !c.timed {
		return nil, nil
	}
	stamps, err := c.Recorded.Times()
	if err != nil || len(stamps) < 2 {
		return nil, cause(err)
	}
	out := make([]time.Duration, len(stamps)-1)
	for i := range out {
		out[i] = stamps[i+1] - stamps[i]
	}
	return out, nil
}

// Busy is the difference of the first timestamp and the last.
func (c vulkanCommands) Busy() (time.Duration, error) {
	stamps, err := c.Recorded.Times()
	if err != nil || len(stamps) == 0 {
		return 0, cause(err)
	}
	return stamps[len(stamps)-1], nil
}

func (v *vulkanDevice) Record(list []compute.Dispatch, timed bool) (compute.Commands, error) {
	var err error
	r, rerr := v.d.Record(func(c *vulkan.Commands) {
		c.Timestamp()
		for i, x := range list {
			var p *vulkan.Pipeline
			if p, err = v.pipeline(x.Variant); err != nil {
				return
			}
			if x.Barrier {
				c.Barrier()
			}
			bind := make([]vulkan.Range, len(x.Bind))
			for i, b := range x.Bind {
				bind[i] = area(b)
			}
			push := make([]byte, 0, 4*len(x.Push))
			for _, w := range x.Push {
				push = binary.LittleEndian.AppendUint32(push, w)
			}
			c.Bind(p, bind...)
			c.Push(push)
			c.Dispatch(x.Groups[0], x.Groups[1], x.Groups[2])
			if timed || i == len(list)-1 {
				c.Timestamp()
			}
		}
	})
	if err != nil || rerr != nil {
		if r != nil {
			err = errors.Join(err, r.Close())
		}
		return nil, cause(errors.Join(err, rerr))
	}
	return vulkanCommands{r, timed}, nil
}

func (v *vulkanDevice) Run(ctx context.Context, c compute.Commands) error {
	return cause(v.d.Submit(ctx, c.(vulkanCommands).Recorded))
}

func (v *vulkanDevice) Close() error {
	var err error
	for _, p := range v.pipelines {
		err = errors.Join(err, p.Close())
	}
	return errors.Join(err, v.d.Close())
}
