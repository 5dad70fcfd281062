package vulkan

import "context"

// stagingSize is how much a transfer moves at once.
const stagingSize = 4 << 20

// A Move copies between a range and memory of the host: Data to the device, or
// from it if Read is set. Data has at most the size of the range.
type Move struct {
	Range Range
	Data  []byte
	Read  bool
}

// Transfer makes moves, with one submission for as many as fit into the staging
// buffer, and with none where the host can reach the memory. Ranges of reads
// and writes in one call do not overlap.
func (d *Device) Transfer(moves ...Move) error {
	if d.lost != nil {
		return d.lost
	}
	var batch []Move
	room := int64(0)
	for _, m := range moves {
		if at := m.Range.Bytes(); at != nil {
			if m.Read {
				copy(m.Data, at)
			} else {
				copy(at, m.Data)
			}
			continue
		}
		for len(m.Data) > 0 {
			n := min(int64(len(m.Data)), stagingSize-room)
			if n > 0 {
				batch = append(batch, Move{m.Range.Buffer.Range(m.Range.Offset, n), m.Data[:n], m.Read})
				m.Range.Offset, m.Data = m.Range.Offset+n, m.Data[n:]
				room += (n + 15) / 16 * 16
			}
			if room >= stagingSize {
				if err := d.stage(batch); err != nil {
					return err
				}
				batch, room = batch[:0], 0
			}
		}
	}
	if len(batch) == 0 {
		return nil
	}
	return d.stage(batch)
}

// stage makes moves through the staging buffer.
func (d *Device) stage(batch []Move) error {
	if d.staging == nil {
		var err error
		if d.staging, err = d.Buffer(stagingSize, Readback); err != nil {
			return err
		}
	}
	at := int64(0)
	each := func(f func(m Move, at Range)) {
		at = 0
		for _, m := range batch {
			n := int64(len(m.Data))
			f(m, d.staging.Range(at, n))
			at += (n + 15) / 16 * 16
		}
	}
	each(func(m Move, at Range) {
		if !m.Read {
			copy(at.Bytes(), m.Data)
		}
	})
	r, err := d.Record(func(c *Commands) {
		each(func(m Move, at Range) {
			if m.Read {
				c.Copy(at, m.Range)
			} else {
				c.Copy(m.Range, at)
			}
		})
	})
	if err != nil {
		return err
	}
	defer r.Close()
	if err := d.Submit(context.Background(), r); err != nil {
		return err
	}
	each(func(m Move, at Range) {
		if m.Read {
			copy(m.Data, at.Bytes())
		}
	})
	return nil
}
